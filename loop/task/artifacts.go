package task

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/journal"
	"hone/model"
)

// The phases that state.toml names.
const (
	phaseIdle      = "idle"
	phaseExecution = "execution"
	phaseReview    = "review"
)

// Artifacts writes CodeScribe's files as a run's events come (ruling S1). They are for
// the user; hone never reads them. They follow from the events alone, so that a resumed
// run writes the same again.
type Artifacts struct {
	loop Loop
	run  *hone.Run // its limits, tree and id; asking its journal would wait for the event that is shown

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
func (l Loop) Record(r *hone.Run) *Artifacts {
	a := &Artifacts{loop: l, run: r, begins: map[journal.Identity]history.Event{}, files: map[string]string{}}
	for _, e := range r.Past().Events() {
		a.fold(e)
	}
	a.write()
	r.Journal.Observe(history.Observer(func(e history.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.fold(e)
		a.write()
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

func (a *Artifacts) fold(e history.Event) {
	if err := a.add(e); err != nil && a.err == nil {
		a.err = fmt.Errorf("event log: %w", err)
	}
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
		if s != nil && s.agent {
			s.commit(p)
		}
	case history.Asked:
		if s == nil || s.round != e.Step.Round || s.number != e.Step.Session {
			s = a.open(e, p)
		}
		s.ask(e)
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

// The begin of a session is when a user sees that it is at work.
func (a *Artifacts) open(e history.Event, p history.Asked) *sessionLog {
	s := &sessionLog{get: a.run.Journal.Home().Get, round: e.Step.Round, number: e.Step.Session, role: a.loop.Executor, phase: phaseExecution, agent: p.Command, begun: e, logs: []*eventLog{&a.execution}}
	if p.Role == a.loop.Reviewer.Name {
		s.role, s.phase, s.logs = a.loop.Reviewer, phaseReview, []*eventLog{&a.reviews}
		s.role.Bounds.Turns = a.loop.reviewTurns()
	} else {
		a.execution = eventLog{replace: true}
		if a.loop.Log != "" {
			s.logs = append(s.logs, &a.executions)
		}
	}
	s.start()
	if a.session != nil {
		a.used = a.used.Add(a.session.used)
	}
	a.session = s
	a.state(e, s.phase)
	return s
}

func (a *Artifacts) close(e history.Event) error {
	facts, err := history.ReadResult[LoopSummary](e.Event, a.session.get)
	if err != nil {
		return err
	}
	s := a.session
	s.end(e, facts)
	m := s.metadata(facts, e)
	m["run_id"], m["task_file"], m["workdir"] = a.run.Journal.Run(), a.taskPath(), a.run.Tree.Dir()
	phase := "author"
	if m["model"] = a.executor(); s.phase == phaseExecution {
		a.loops = s.round
	} else {
		phase, m["model"] = phaseReview, a.reviewer()
	}
	m["phase"] = phase
	text, err := toml.Marshal(m)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("loop_%03d_%s.toml", s.round, phase)
	a.files["metadata/"+name] = string(text)
	a.phases = append(a.phases, quote(name))
	a.state(e, phaseIdle)
	return nil
}

// state notes the files that describe the run as a whole.
func (a *Artifacts) state(now history.Event, phase string) {
	if a.session == nil {
		return
	}
	id, dir, file := pair{"run_id", a.run.Journal.Run()}, pair{"workdir", a.run.Tree.Dir()}, pair{"task_file", a.taskPath()}
	used := a.used.Add(a.session.used)
	run := []pair{
		id,
		{"created_at", stamp(a.created)},
		dir,
		file,
		{"model", a.executor()},
		{"agent_loops", max(1, a.run.Limits.Rounds)},
		{"agent_iterations", a.loop.Executor.Bounds.Resolved().Turns},
		{"cumulative_input_tokens", used.Input},
		{"cumulative_output_tokens", used.Output},
		{"cumulative_cache_creation_tokens", used.CacheWrite},
		{"cumulative_cache_read_tokens", used.CacheRead},
		{"loops_completed", a.loops},
	}
	if a.loop.Reviewer.Called != a.loop.Executor.Called {
		run = append(run, pair{"review_model", a.reviewer()})
	}
	state := []pair{id, dir, file, {"loop_index", a.session.round}, {"phase", phase}, {"updated_at", stamp(now.Time)}}
	if a.end.Kind != "" {
		state = append(state, pair{"result", string(a.end.Kind)}) // hone's own
	}
	a.files["run.toml"], a.files["state.toml"] = encode(run), encode(state)
	a.files["metadata/manifest.toml"] = fmt.Sprintf("phase_files = [%s]\n%s\n[run]\n%s", strings.Join(a.phases, ", "), encode([]pair{{"updated_at", stamp(now.Time)}}), encode(run))
}

func (a *Artifacts) executor() string { return cmp.Or(a.loop.Typed, a.loop.Executor.Called) }

func (a *Artifacts) reviewer() string {
	return cmp.Or(a.loop.ReviewerTyped, a.loop.Typed, a.loop.Reviewer.Called)
}

func (a *Artifacts) taskPath() string {
	if a.loop.File == "" {
		return ""
	}
	return filepath.Join(a.run.Tree.Dir(), filepath.FromSlash(a.loop.File))
}

// CodeScribe formats times like this.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

func (a *Artifacts) write() {
	if a.session == nil || a.err != nil {
		return
	}
	tree := a.run.Tree.Dir()
	if !a.made {
		a.err, a.made = makeHome(tree), true
	}
	logs := map[string]*eventLog{"execution.toml": &a.execution, "review.toml": &a.reviews}
	maps.DeleteFunc(logs, func(_ string, log *eventLog) bool { return len(log.text) == 0 })
	if a.err == nil {
		for name, text := range a.files {
			a.err = cmp.Or(a.err, artifact.Write(tree, artifactsFolder+"/"+name, strings.NewReader(text)))
		}
		for name, log := range logs {
			a.err = cmp.Or(a.err, log.write(tree, artifactsFolder+"/"+name))
		}
		clear(a.files)
	}
	if len(a.executions.text) > 0 && a.err == nil {
		base, name, err := logBase(tree, a.loop.Log)
		if err == nil {
			err = os.MkdirAll(base, 0o755)
		}
		if err == nil {
			err = a.executions.write(base, name)
		}
		if err != nil {
			a.err = fmt.Errorf("log %s: %w", a.loop.Log, err)
		}
	}
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
