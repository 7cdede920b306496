package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

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

// Artifacts writes CodeScribe's files as a run's events come (ruling S1), in its forms of spring and of July 2026. They are for
// the user; hone never reads them. They follow from the events alone, so that a resumed run writes the same again.
type Artifacts struct {
	loop *Loop
	run  *hone.Run // its limits, tree and id; asking its journal would wait for the event that is shown

	mu      sync.Mutex
	err     error
	begins  map[journal.Identity]history.Event // without a record
	created string
	used    model.Usage // of all sessions
	loops   int         // completed
	phases  []any       // files below metadata
	session *sessionLog // the last one; nil before the first
	end     any         // the result; nil while the run goes on

	files      map[string]table // to be replaced, by their names below artifactsFolder
	execution  eventLog         // of the last session
	reviews    eventLog
	executions eventLog // for --log
}

// Record writes the files of a run: what follows from its events so far, and from then on what each event adds. It must not be
// called for a replayed run.
func (l *Loop) Record(r *hone.Run) *Artifacts {
	tree := r.Tree.Dir()
	a := &Artifacts{loop: l, run: r, begins: map[journal.Identity]history.Event{}, files: map[string]table{},
		execution: eventLog{dir: tree, name: artifactsFolder + "/execution.toml"}, reviews: eventLog{dir: tree, name: artifactsFolder + "/review.toml"}}
	if l.Log != "" {
		a.executions.dir, a.executions.name, a.err = logBase(tree, l.Log)
	}
	add := func(events ...history.Event) {
		for _, e := range events {
			a.err = cmp.Or(a.err, a.add(e))
		}
		if a.session != nil {
			a.err = cmp.Or(a.err, a.write())
		}
	}
	add(r.Past().Events()...)
	r.Journal.Observe(history.Observer(func(e history.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		add(e)
	}))
	return a
}

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
	a.created = cmp.Or(a.created, stamp(e.Time))
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
		a.end = p.Kind
		a.state(e, "idle")
	case history.Resumed:
		a.end = nil
	case history.Commit:
		if s != nil && s.agent && p.Usage != nil {
			s.charged = s.charged.Add(*p.Usage)
		}
	case history.Asked:
		if s == nil || s.round != e.Step.Round || s.number != e.Step.Session {
			s = a.open(e, p)
		}
		s.endTurn(e)
		s.turn = e.Step.Turn
		s.event(e, "iteration_start", "iteration", s.turn)
	case history.Replied:
		return a.reply(e, begin, p)
	case history.ToolCall:
		args, err := p.Arguments(s.get)
		if s.called = true; p.Refused == "" {
			s.event(e, "tool_start", "iteration", s.turn, "tool", p.Tool, "args", args, "model_reasoning", given(s.said))
			return err
		}
		s.rejected = append(s.rejected, table{"name", p.Tool, "args", object(args), "reason", p.Refused})
		s.event(e, "tool_rejected", "iteration", s.turn, "tool", p.Tool, "args", args, "reason", p.Refused)
		return err
	case history.ToolResult:
		if call, ok := begin.Payload.(history.ToolCall); ok && call.Refused == "" {
			return s.result(e, begin, call)
		}
	case history.StepResult:
		if s != nil && !s.ended && (e.Step.Name == stepSummary || e.Step.Name == stepReviewSummary) {
			return a.close(e)
		}
	}
	return nil
}

// The begin of a session is when a user sees that it is at work. CodeScribe's ids have the local time.
func (a *Artifacts) open(e history.Event, p history.Asked) *sessionLog {
	s := &sessionLog{get: a.run.Journal.Home().Get, round: e.Step.Round, number: e.Step.Session, agent: p.Command, begun: e,
		id: fmt.Sprintf("%s-%06x", e.Time.Local().Format("20060102-150405"), e.Seq)}
	mode, turns, phase := "native_tools", a.loop.Executor.Bounds.Resolved().Turns, "execution"
	if s.review = p.Role == a.loop.Reviewer.Name; s.review {
		s.logs, turns, phase = []*eventLog{&a.reviews}, a.loop.reviewTurns(), "review"
	} else {
		a.execution = eventLog{dir: a.execution.dir, name: a.execution.name, alone: true}
		s.logs = []*eventLog{&a.execution, &a.executions}
	}
	if s.agent {
		mode, turns = "agent", 1
	}
	s.event(e, "run_start", "mode", mode, "max_iterations", turns)
	a.session = s
	a.state(e, phase)
	return s
}

func (a *Artifacts) reply(e, begin history.Event, p history.Replied) error {
	s := a.session
	reply, err := history.ReadReply(p, s.get)
	if err != nil {
		return err
	}
	s.said = reply.Text()
	var usage, calls, tools any = nil, len(reply.Calls()), nil
	u := p.Usage
	if s.agent {
		u, calls, tools = nil, nil, agentsOwn
		if s.charged != (model.Usage{}) {
			u = &s.charged
		}
	}
	if u != nil {
		s.used, a.used = s.used.Add(*u), a.used.Add(*u)
		usage = fmt.Sprintf(`{"input": %d, "output": %d, "reasoning": %d, "cache_write": %d, "cache_read": %d, "total": %d}`,
			u.Input, u.Output, u.Reasoning, u.CacheWrite, u.CacheRead, u.Total())
	}
	s.event(e, "model_response", "iteration", s.turn, "duration_ms", took(begin, e), "text_chars", utf8.RuneCountInString(s.said),
		"tool_calls", calls, "tools", tools, "usage", usage, "model_text", given(short(s.said, maxText)))
	return nil
}

// CodeScribe's names for how a session ended, but for its answer.
var stopReasons = map[string]string{hone.EndedTurns: "max_iterations", hone.EndedCalls: "tool_budget", hone.EndedBudget: "token_budget",
	hone.EndedDiscarded: "no_progress", hone.EndedRepeats: "no_progress"}

// It also writes the session's file below metadata, in the form of July 2026.
func (a *Artifacts) close(e history.Event) error {
	s, failed, phase, name := a.session, 0, "author", a.loop.typed()
	facts, err := history.ReadResult[LoopSummary](e.Event, s.get)
	if err != nil {
		return err
	}
	var changed any
	if facts.Agent {
		changed = facts.filesText()
	}
	u, stop := s.used, cmp.Or(stopReasons[facts.Ended], "final_text")
	s.endTurn(e)
	s.event(e, "run_end", "iteration", s.turn, "stop_reason", stop, "total_input_tokens", u.Input, "total_output_tokens", u.Output,
		"total_reasoning_tokens", u.Reasoning, "total_cache_creation_tokens", u.CacheWrite, "total_cache_read_tokens", u.CacheRead, "files", changed)
	if s.ended = true; s.review {
		phase, name = "review", a.loop.reviewerTyped()
	} else {
		a.loops = s.round
	}
	for _, c := range s.calls {
		if slices.Contains(c.(table), any(false)) { // ok
			failed++
		}
	}
	file := fmt.Sprintf("loop_%03d_%s.toml", s.round, phase)
	a.phases = append(a.phases, file)
	a.files["metadata/"+file] = append(a.about(), "phase", phase, "model", name, "loop_index", s.round, "stop_reason", stop,
		"final_text_present", facts.missingAnswer() == "", "iterations", s.turn, "duration_s", float64(e.Active-s.begun.Active)/1000, "created_at", stamp(e.Time),
		"usage", table{"input", u.Input, "output", u.Output, "reasoning", u.Reasoning, "cache_write", u.CacheWrite, "cache_read", u.CacheRead},
		"tool_calls", table{"executed", len(s.calls), "rejected", len(s.rejected), "errors", failed, "ok", len(s.calls) - failed},
		"tools", s.calls, "rejected_calls", s.rejected)
	a.state(e, "idle")
	return nil
}

func (a *Artifacts) about() table {
	var file any = ""
	if a.loop.File != "" {
		file = filepath.Join(a.run.Tree.Dir(), filepath.FromSlash(a.loop.File))
	}
	return table{"run_id", a.run.Journal.Run(), "workdir", a.run.Tree.Dir(), "task_file", file}
}

func (l *Loop) typed() string { return cmp.Or(l.Typed, l.Executor.Called) }

func (l *Loop) reviewerTyped() string { return cmp.Or(l.ReviewerTyped, l.Typed, l.Reviewer.Called) }

// The result in state.toml is hone's own.
func (a *Artifacts) state(now history.Event, phase string) {
	if a.session == nil {
		return
	}
	var reviewer any
	if a.loop.Reviewer.Called != a.loop.Executor.Called {
		reviewer = a.loop.reviewerTyped()
	}
	run := append(a.about(), "created_at", a.created, "model", a.loop.typed(), "agent_loops", max(1, a.run.Limits.Rounds),
		"agent_iterations", a.loop.Executor.Bounds.Resolved().Turns, "cumulative_input_tokens", a.used.Input, "cumulative_output_tokens", a.used.Output,
		"cumulative_cache_creation_tokens", a.used.CacheWrite, "cumulative_cache_read_tokens", a.used.CacheRead, "loops_completed", a.loops, "review_model", reviewer)
	a.files["run.toml"] = run
	a.files["state.toml"] = append(a.about(), "loop_index", a.session.round, "phase", phase, "updated_at", stamp(now.Time), "result", a.end)
	a.files["metadata/manifest.toml"] = table{"phase_files", a.phases, "updated_at", stamp(now.Time), "run", run}
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

func (a *Artifacts) write() error {
	tree := a.run.Tree.Dir()
	if len(a.files) > 0 {
		if err := makeHome(tree); err != nil {
			return err
		}
	}
	for name, t := range a.files {
		if err := artifact.Write(tree, artifactsFolder+"/"+name, strings.NewReader(t.lines())); err != nil {
			return err
		}
	}
	clear(a.files)
	return cmp.Or(a.execution.write(), a.reviews.write(), a.executions.write())
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

// eventLog is a file of events. Users follow it with "tail -f", so that it is only appended to.
type eventLog struct {
	dir, name string // none without a name
	alone     bool   // the file has nothing from before
	text      []byte // not written yet
	start     string // of the run's first session in it
	opened    bool   // by this process
}

// An earlier process of the run may have written some of the text, and died in the middle of an event.
func (g *eventLog) write() error {
	if len(g.text) == 0 || g.name == "" {
		return nil
	}
	f, err := artifact.OpenAppend(g.dir, g.name)
	if err != nil {
		return fmt.Errorf("log %s: %w", g.name, err)
	}
	text := g.text
	if !g.opened {
		old, readErr := io.ReadAll(f)
		if at := bytes.Index(old, []byte(g.start)); at >= 0 {
			old = old[:at]
		} else if len(old) > 0 && old[len(old)-1] != '\n' {
			text = append([]byte("\n"), text...)
		}
		if g.alone {
			old = nil
		}
		err = cmp.Or(readErr, f.Truncate(int64(len(old))))
	}
	if err == nil {
		_, err = f.Write(text)
	}
	g.text, g.opened = nil, true
	return errors.Join(err, f.Close())
}

// sessionLog is one session of an agent as CodeScribe's event log, which is TOML, shows it.
type sessionLog struct {
	get           history.Get
	logs          []*eventLog
	round, number int
	review        bool
	agent         bool // it is a command-line agent's
	begun         history.Event
	id            string
	turn          int
	called        bool        // the turn has calls
	said          string      // the turn's text
	charged       model.Usage // of an agent's model calls: of the run's ledger, not what the agent reports
	used          model.Usage
	ended         bool
	calls         []any
	rejected      []any
}

func (s *sessionLog) event(at history.Event, name string, more ...any) {
	t := slices.Concat(table{"event", name, "run_id", s.id}, more, table{"ts", stamp(at.Time)})
	for _, log := range s.logs {
		log.start = cmp.Or(log.start, "[[event]]\n"+t[:4].lines())
		log.text = append(log.text, "[[event]]\n"+t.lines()+"\n"...)
	}
}

func (s *sessionLog) endTurn(e history.Event) {
	if s.called {
		s.event(e, "iteration_end", "iteration", s.turn, "stop_reason", "tool_calls")
	}
	s.called, s.said = false, ""
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
	preview, fault := short(got.Text, maxText), ""
	if got.Refused {
		s.rejected = append(s.rejected, table{"name", c.Tool, "args", object(args), "reason", "refused"})
	} else {
		s.calls = append(s.calls, table{"name", c.Tool, "args", object(args), "ok", !got.Failed, "output_preview", preview})
	}
	if got.Failed {
		fault = short(strings.TrimPrefix(got.Text, "Error: "), maxText)
	}
	s.event(e, "tool_end", "iteration", s.turn, "tool", c.Tool, "ok", !got.Failed, "error", given(fault), "duration_ms", took(begin, e),
		"output_chars", utf8.RuneCountInString(got.Text), "output_preview", preview)
	return nil
}

func took(begin, record history.Event) int64 {
	return max(0, record.Time.Sub(begin.Time).Milliseconds())
}

// given is nil for an empty text, which CodeScribe leaves out.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// table has keys, each with its value after it. A nil value is left out.
type table []any

func (t table) lines() (text string) {
	sections := ""
	for i := 0; i < len(t); i += 2 {
		if section, is := t[i+1].(table); is {
			sections += fmt.Sprintf("\n[%s]\n%s", t[i], section.lines())
		} else if t[i+1] != nil {
			text += fmt.Sprintf("%s = %s\n", t[i], inTOML(t[i+1]))
		}
	}
	return text + sections
}

// A reader gets every string back unchanged, except that each sequence of bytes that are not UTF-8, which TOML cannot
// represent, becomes U+FFFD.
func inTOML(v any) string {
	var parts []string
	switch v := v.(type) {
	case nil:
		return `""`
	case string:
		return quote(v)
	case history.Kind:
		return quote(string(v))
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return v.String()
		}
		if n, err := v.Float64(); err == nil {
			return fmt.Sprint(n)
		}
		return quote(v.String())
	case []any:
		for _, one := range v {
			parts = append(parts, inTOML(one))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case table:
		for i := 0; i < len(v); i += 2 {
			parts = append(parts, fmt.Sprintf("%s = %s", v[i], inTOML(v[i+1])))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, onOneLine(key)+" = "+inTOML(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// quote returns a string as CodeScribe writes it: between three apostrophes if it has several lines, or on one line if it cannot be written
// that way.
func quote(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	if strings.Contains(s, "\n") && !strings.Contains(s, "'''") && !strings.HasSuffix(s, "'") && !strings.ContainsFunc(s, control) {
		return "'''\n" + s + "'''"
	}
	return onOneLine(s)
}

func onOneLine(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b) // JSON's escapes are TOML's too
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}

// CodeScribe formats times like this.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// maxText is how many characters of a text CodeScribe keeps.
const maxText = 500

func short(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// object returns the arguments of a call; empty if they are not JSON. CodeScribe cuts their strings.
func object(args string) map[string]any {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v map[string]any
	_ = d.Decode(&v)
	for key, one := range v {
		if text, ok := one.(string); ok {
			if n := utf8.RuneCountInString(text); n > maxText {
				v[key] = fmt.Sprintf("%s... [truncated, %d chars total]", short(text, maxText), n)
			}
		}
	}
	return v
}
