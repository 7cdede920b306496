package task

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/tool"
)

// The directories of the loop's own files, relative to the tree's root.
const (
	artifactsHome   = ".codescribe"
	artifactsFolder = artifactsHome + "/loop"
)

// The phases that state.toml names.
const (
	phaseIdle      = "idle"
	phaseExecution = "execution"
	phaseReview    = "review"
)

// Artifacts writes CodeScribe's files as a run's events come (ruling S1), in its forms of spring and of July 2026. They are for
// the user; hone never reads them. They follow from the events alone, so that a resumed run writes the same again.
type Artifacts struct {
	loop  *Loop
	run   *hone.Run // its limits, tree and id; asking its journal would wait for the event that is shown
	about []pair    // what the files say of every run

	mu      sync.Mutex
	err     error
	made    bool                               // the directory
	begins  map[journal.Identity]history.Event // without a record
	created time.Time
	used    model.Usage // of all sessions but the last
	loops   int         // completed
	phases  []string    // files below metadata
	session *sessionLog // the last one; nil before the first
	end     history.End // zero while the run goes on

	files      map[string]string // to be replaced, by their names below artifactsFolder
	execution  eventLog          // of the last one
	reviews    eventLog
	executions eventLog // for --log
}

// Record writes the files of a run: what follows from its events so far, and from then on what each event adds. It must not be
// called for a replayed run.
func (l *Loop) Record(r *hone.Run) *Artifacts {
	file := ""
	if l.File != "" {
		file = filepath.Join(r.Tree.Dir(), filepath.FromSlash(l.File))
	}
	a := &Artifacts{loop: l, run: r, begins: map[journal.Identity]history.Event{}, files: map[string]string{},
		about: []pair{{"run_id", r.Journal.Run()}, {"workdir", r.Tree.Dir()}, {"task_file", file}}}
	fold := func(e history.Event) {
		if err := a.add(e); err != nil && a.err == nil {
			a.err = fmt.Errorf("event log: %w", err)
		}
	}
	for _, e := range r.Past().Events() {
		fold(e)
	}
	a.write()
	r.Journal.Observe(history.Observer(func(e history.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		fold(e)
		a.write()
	}))
	return a
}

func (l *Loop) typed() string { return cmp.Or(l.Typed, l.Executor.Called) }

func (l *Loop) reviewerTyped() string { return cmp.Or(l.ReviewerTyped, l.Typed, l.Reviewer.Called) }

// Round is the loop's round. It fails if a file cannot be written.
func (a *Artifacts) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	found, err := a.loop.Round(ctx, r, prior)
	a.mu.Lock()
	defer a.mu.Unlock()
	return found, cmp.Or(err, a.err)
}

// Summary returns CodeScribe's line for the end of a run (ruling S9).
func Summary(r *hone.Run) string {
	loops := 0
	for _, e := range r.Past().Records(stepSummary) {
		loops = e.Step.Round
	}
	return fmt.Sprintf("completed %d/%d loop(s) — run: %s — artifacts: %s", loops, max(1, r.Limits.Rounds),
		r.Journal.Run(), filepath.Join(r.Tree.Dir(), filepath.FromSlash(artifactsFolder)))
}

func (a *Artifacts) add(e history.Event) error {
	if a.created.IsZero() {
		a.created = e.Time
	}
	var begin history.Event
	if e.Step != nil && e.Phase == journal.Begin {
		_, again := a.begins[*e.Step]
		if a.begins[*e.Step] = e; again {
			return nil // a resumed process starts a step again that was not recorded
		}
	} else if e.Step != nil {
		begin = a.begins[*e.Step]
		delete(a.begins, *e.Step)
	}
	s := a.session
	switch p := e.Payload.(type) {
	case history.Unreadable:
		return p.Err
	case history.End:
		a.end = p
		a.state(e, phaseIdle)
	case history.Resumed:
		a.end = history.End{}
	case history.Commit:
		if s != nil && s.agent && p.Usage != nil {
			sum := *p.Usage
			if s.usage != nil {
				sum = sum.Add(*s.usage)
			}
			s.usage = &sum
		}
	case history.Asked:
		if s == nil || s.round != e.Step.Round || s.number != e.Step.Session {
			s = a.open(e, p)
		}
		s.endTurn(e.Time)
		s.turn = e.Step.Turn
		s.event("iteration_start", e.Time, pair{"iteration", s.turn})
	case history.Replied:
		return s.reply(e, begin, p)
	case history.ToolCall:
		return s.call(e, p)
	case history.ToolResult:
		if call, ok := begin.Payload.(history.ToolCall); ok && call.Refused == "" {
			return s.result(e, begin, call)
		}
	case history.StepResult:
		if s != nil && s.ended == "" && (e.Step.Name == stepSummary || e.Step.Name == stepReviewSummary) {
			return a.close(e)
		}
	}
	return nil
}

// The begin of a session is when a user sees that it is at work. CodeScribe's ids have the local time.
func (a *Artifacts) open(e history.Event, p history.Asked) *sessionLog {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", e.Run, e.Step.Round, e.Step.Session))
	s := &sessionLog{get: a.run.Journal.Home().Get, round: e.Step.Round, number: e.Step.Session, agent: p.Command, begun: e,
		phase: phaseExecution, id: fmt.Sprintf("%s-%x", e.Time.Local().Format("20060102-150405"), sum[:3])}
	mode, turns := "native_tools", a.loop.Executor.Bounds.Resolved().Turns
	switch {
	case p.Role == a.loop.Reviewer.Name:
		s.phase, s.logs, turns = phaseReview, []*eventLog{&a.reviews}, a.loop.reviewTurns()
	default:
		a.execution = eventLog{replace: true}
		if s.logs = []*eventLog{&a.execution}; a.loop.Log != "" {
			s.logs = append(s.logs, &a.executions)
		}
	}
	for _, log := range s.logs {
		log.start = cmp.Or(log.start, "[[event]]\nevent = \"run_start\"\nrun_id = "+quote(s.id)+"\n")
	}
	if s.agent {
		mode, turns = "agent", 1
	}
	s.event("run_start", e.Time, pair{"mode", mode}, pair{"max_iterations", turns})
	if a.session != nil {
		a.used = a.used.Add(a.session.used)
	}
	a.session = s
	a.state(e, s.phase)
	return s
}

// It also writes the session's file below metadata, in the form of July 2026.
func (a *Artifacts) close(e history.Event) error {
	s := a.session
	facts, err := history.ReadResult[LoopSummary](e.Event, s.get)
	if err != nil {
		return err
	}
	s.end(e, facts)
	phase, name, failed, u := "author", a.loop.typed(), 0, s.used
	if s.phase == phaseExecution {
		a.loops = s.round
	} else {
		phase, name = phaseReview, a.loop.reviewerTyped()
	}
	for _, c := range s.calls {
		if c["ok"] == false {
			failed++
		}
	}
	m := map[string]any{"phase": phase, "model": name, "loop_index": s.round, "stop_reason": s.ended, "final_text_present": facts.missingAnswer() == "", "iterations": s.turn,
		"duration_s": float64(e.Active-s.begun.Active) / 1000, "created_at": stamp(e.Time), "tools": s.calls, "rejected_calls": s.rejected,
		"usage":      map[string]int64{"input": u.Input, "output": u.Output, "reasoning": u.Reasoning, "cache_write": u.CacheWrite, "cache_read": u.CacheRead},
		"tool_calls": map[string]int{"executed": len(s.calls), "rejected": len(s.rejected), "errors": failed, "ok": len(s.calls) - failed}}
	for _, p := range a.about {
		m[p.key] = p.value
	}
	text, err := toml.Marshal(m)
	if err != nil {
		return err
	}
	file := fmt.Sprintf("loop_%03d_%s.toml", s.round, phase)
	a.files["metadata/"+file] = string(text)
	a.phases = append(a.phases, quote(file))
	a.state(e, phaseIdle)
	return nil
}

func (a *Artifacts) state(now history.Event, phase string) {
	if a.session == nil {
		return
	}
	used := a.used.Add(a.session.used)
	run := []pair{
		a.about[0],
		{"created_at", stamp(a.created)},
		a.about[1],
		a.about[2],
		{"model", a.loop.typed()},
		{"agent_loops", max(1, a.run.Limits.Rounds)},
		{"agent_iterations", a.loop.Executor.Bounds.Resolved().Turns},
		{"cumulative_input_tokens", used.Input},
		{"cumulative_output_tokens", used.Output},
		{"cumulative_cache_creation_tokens", used.CacheWrite},
		{"cumulative_cache_read_tokens", used.CacheRead},
		{"loops_completed", a.loops},
	}
	if a.loop.Reviewer.Called != a.loop.Executor.Called {
		run = append(run, pair{"review_model", a.loop.reviewerTyped()})
	}
	updated := pair{"updated_at", stamp(now.Time)}
	state := append(a.about[:3:3], pair{"loop_index", a.session.round}, pair{"phase", phase}, updated)
	if a.end.Kind != "" {
		state = append(state, pair{"result", string(a.end.Kind)}) // hone's own
	}
	a.files["run.toml"], a.files["state.toml"] = encode(run), encode(state)
	a.files["metadata/manifest.toml"] = fmt.Sprintf("phase_files = [%s]\n%s\n[run]\n%s", strings.Join(a.phases, ", "), encode([]pair{updated}), encode(run))
}

func (a *Artifacts) write() {
	if a.session == nil || a.err != nil {
		return
	}
	tree := a.run.Tree.Dir()
	if !a.made {
		a.err, a.made = makeHome(tree), true
	}
	for name, text := range a.files {
		if a.err == nil {
			a.err = artifact.Write(tree, artifactsFolder+"/"+name, strings.NewReader(text))
		}
	}
	clear(a.files)
	a.err = cmp.Or(a.err, a.execution.write(tree, artifactsFolder+"/execution.toml"), a.reviews.write(tree, artifactsFolder+"/review.toml"))
	if len(a.executions.text) > 0 && a.err == nil {
		base, name, err := logBase(tree, a.loop.Log)
		if err == nil {
			err = cmp.Or(os.MkdirAll(base, 0o755), a.executions.write(base, name))
		}
		if err != nil {
			a.err = fmt.Errorf("log %s: %w", a.loop.Log, err)
		}
	}
}

// Git ignores what is in a new directory, so that the user does not commit it by accident. A directory that exists stays as it
// is: CodeScribe's users may have theirs in git.
func makeHome(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, artifactsHome))
	if !errors.Is(err, fs.ErrNotExist) {
		return loop.MakeDir(dir, artifactsHome)
	}
	return artifact.Create(dir, artifactsHome+"/.gitignore", []byte("*\n"), 0o644)
}

// Links below base are not followed: base is the tree, or the directory in which --log puts the standard log. If the user named
// a file elsewhere, base is its directory once links are followed.
func logBase(tree, log string) (base, name string, err error) {
	for at := filepath.Dir(log); at != filepath.Dir(at); at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil && real == tree {
			base = at // the topmost, because links in the tree may lead to its root
		}
	}
	if at, ok := strings.CutSuffix(log, string(filepath.Separator)+filepath.FromSlash(standardLog)); ok && base == "" {
		base = at
	}
	if base == "" {
		if real, err := filepath.EvalSymlinks(log); err == nil {
			log = real
		}
		base = filepath.Dir(log)
	}
	rel, err := filepath.Rel(base, log)
	return base, filepath.ToSlash(rel), err
}

// maxLog limits the size of a log from before a run, in bytes.
const maxLog = 256 << 20

// eventLog is a file of events. Users follow it with "tail -f", so that a process appends to it wherever that is enough.
type eventLog struct {
	text    []byte // not written yet
	start   string // of the run's first session in it
	opened  bool   // by this process
	replace bool   // the file gets only the text
}

// An earlier process of the run may have written some of the text, and died in the middle of an event.
func (g *eventLog) write(dir, name string) error {
	if len(g.text) == 0 {
		return nil
	}
	text, replace := g.text, g.replace
	if !g.opened && !replace {
		old, err := artifact.Read(dir, name, maxLog)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if i := bytes.Index(old, []byte(g.start)); i >= 0 {
			replace, text = true, append(old[:i:i], text...)
		} else if len(old) > 0 && old[len(old)-1] != '\n' {
			text = append([]byte("\n"), text...)
		}
	}
	g.text, g.opened, g.replace = nil, true, false
	if replace {
		return artifact.Write(dir, name, bytes.NewReader(text))
	}
	f, err := artifact.OpenAppend(dir, name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// sessionLog is one session of an agent as CodeScribe's event log, which is TOML, shows it.
type sessionLog struct {
	get           history.Get
	logs          []*eventLog
	round, number int
	phase         string
	agent         bool // it is a command-line agent's
	begun         history.Event
	id            string
	turn          int
	called        bool         // the turn has calls
	said          string       // the turn's text
	usage         *model.Usage // of an agent's model calls: of the run's ledger, not what the agent reports; nil if not known
	used          model.Usage
	ended         string // CodeScribe's word; empty while it goes on
	calls         []map[string]any
	rejected      []map[string]any
}

func (s *sessionLog) event(name string, at time.Time, pairs ...pair) {
	all := append([]pair{{"event", name}, {"run_id", s.id}}, pairs...)
	text := "[[event]]\n" + encode(append(all, pair{"ts", stamp(at)})) + "\n"
	for _, log := range s.logs {
		log.text = append(log.text, text...)
	}
}

func (s *sessionLog) endTurn(at time.Time) {
	if s.called {
		s.event("iteration_end", at, pair{"iteration", s.turn}, pair{"stop_reason", "tool_calls"})
	}
	s.called, s.said = false, ""
}

func (s *sessionLog) reply(e, begin history.Event, p history.Replied) error {
	reply, err := history.ReadReply(p, s.get)
	if err != nil {
		return err
	}
	s.said = reply.Text()
	used, tools := p.Usage, pair{"tool_calls", len(reply.Calls())}
	if s.agent {
		used, tools = s.usage, pair{"tools", agentsOwn}
	}
	pairs := []pair{{"iteration", s.turn}, took(begin, e), {"text_chars", utf8.RuneCountInString(s.said)}, tools}
	if used != nil {
		s.used = s.used.Add(*used)
		pairs = append(pairs, pair{"usage", fmt.Sprintf(`{"input": %d, "output": %d, "reasoning": %d, "cache_write": %d, "cache_read": %d, "total": %d}`,
			used.Input, used.Output, used.Reasoning, used.CacheWrite, used.CacheRead, used.Total())})
	}
	if s.said != "" {
		pairs = append(pairs, pair{"model_text", short(s.said, 500)})
	}
	s.event("model_response", e.Time, pairs...)
	return nil
}

func took(begin, record history.Event) pair {
	return pair{"duration_ms", max(0, record.Time.Sub(begin.Time).Milliseconds())}
}

func (s *sessionLog) call(e history.Event, c history.ToolCall) error {
	s.called = true
	args, err := c.Arguments(s.get)
	if err != nil {
		return err
	}
	pairs := []pair{{"iteration", s.turn}, {"tool", c.Tool}, {"args", args}}
	switch {
	case c.Refused != "":
		s.rejected = append(s.rejected, map[string]any{"name": c.Tool, "args": object(args), "reason": c.Refused})
		s.event("tool_rejected", e.Time, append(pairs, pair{"reason", c.Refused})...)
		return nil
	case s.said != "":
		pairs = append(pairs, pair{"model_reasoning", s.said})
	}
	s.event("tool_start", e.Time, pairs...)
	return nil
}

func (s *sessionLog) result(e, begin history.Event, c history.ToolCall) error {
	got, err := history.ReadResult[tool.Result](e.Event, s.get)
	if err != nil {
		return err
	}
	args, err := c.Arguments(s.get)
	if err != nil {
		return err
	}
	preview := short(got.Text, 500)
	if call := map[string]any{"name": c.Tool, "args": object(args)}; got.Refused {
		call["reason"] = "refused"
		s.rejected = append(s.rejected, call)
	} else {
		call["ok"], call["output_preview"] = !got.Failed, preview
		s.calls = append(s.calls, call)
	}
	pairs := []pair{{"iteration", s.turn}, {"tool", c.Tool}, {"ok", !got.Failed}}
	if got.Failed {
		pairs = append(pairs, pair{"error", short(strings.TrimPrefix(got.Text, "Error: "), 500)})
	}
	s.event("tool_end", e.Time, append(pairs, took(begin, e), pair{"output_chars", utf8.RuneCountInString(got.Text)}, pair{"output_preview", preview})...)
	return nil
}

func (s *sessionLog) end(e history.Event, facts LoopSummary) {
	s.endTurn(e.Time)
	switch s.ended = "final_text"; facts.Ended { // CodeScribe's names
	case hone.EndedTurns:
		s.ended = "max_iterations"
	case hone.EndedCalls:
		s.ended = "tool_budget"
	case hone.EndedBudget:
		s.ended = "token_budget"
	case hone.EndedDiscarded, hone.EndedRepeats:
		s.ended = "no_progress"
	}
	pairs := []pair{
		{"iteration", s.turn},
		{"stop_reason", s.ended},
		{"total_input_tokens", s.used.Input},
		{"total_output_tokens", s.used.Output},
		{"total_reasoning_tokens", s.used.Reasoning},
		{"total_cache_creation_tokens", s.used.CacheWrite},
		{"total_cache_read_tokens", s.used.CacheRead},
	}
	if facts.Agent {
		pairs = append(pairs, pair{"files", facts.filesText()})
	}
	s.event("run_end", e.Time, pairs...)
}

// pair is a key with its value: a string, an int64, an int or a bool.
type pair struct {
	key   string
	value any
}

// A reader gets every string back unchanged, except that each sequence of bytes that are not UTF-8, which TOML cannot
// represent, becomes U+FFFD.
func encode(pairs []pair) string {
	var b strings.Builder
	for _, p := range pairs {
		if text, ok := p.value.(string); ok {
			p.value = quote(text)
		}
		fmt.Fprintf(&b, "%s = %v\n", p.key, p.value)
	}
	return b.String()
}

// quote returns a string as CodeScribe writes it: between ”' if it has several lines,
// or on one line if it cannot be written that way.
func quote(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	if strings.Contains(s, "\n") && !strings.Contains(s, "'''") && !strings.HasSuffix(s, "'") && !strings.ContainsFunc(s, control) {
		return "'''\n" + s + "'''"
	}
	var b strings.Builder
	e := json.NewEncoder(&b) // JSON's escapes are TOML's too
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}

// CodeScribe formats times like this.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// most is in characters.
func short(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// object returns the arguments of a call in a form that TOML has; empty if they are not JSON.
func object(args string) map[string]any {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v map[string]any
	if d.Decode(&v) != nil {
		return map[string]any{}
	}
	return inTOML(v).(map[string]any)
}

// CodeScribe cuts strings as well.
func inTOML(v any) any {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if n := utf8.RuneCountInString(v); n > 500 {
			return fmt.Sprintf("%s... [truncated, %d chars total]", short(v, 500), n)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64()
		return n
	case []any:
		for i := range v {
			v[i] = inTOML(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = inTOML(v[key])
		}
	}
	return v
}
