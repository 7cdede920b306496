package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/internal/artifact"
)

// The phases that state.toml names.
const (
	phaseIdle      = "idle"
	phaseExecution = "execution"
	phaseReview    = "review"
)

// Each artifact is computed from the journal, so that writing it again changes nothing. They are for the user; hone never reads
// them.
func (l Loop) record(ctx context.Context, r *hone.Run, phase string) error {
	before, ok, err := hone.First[logsBefore](r, stepLogs)
	if err != nil {
		return err
	}
	if !ok {
		if before, err = l.measureLogs(ctx, r); err != nil {
			return err
		}
	}
	_, err = inTree(ctx, r, "artifacts", phase, func(root *os.Root) (done, error) {
		return done{}, l.write(r, root, before, state{phase: phase})
	})
	return err
}

// Finish writes the artifacts when a run has ended, possibly in the middle of a
// session. state.toml then contains the kind of end and the program's exit status.
// It may be called again.
func (l Loop) Finish(r *hone.Run, end hone.End, exit int) error {
	before, ok, err := hone.First[logsBefore](r, stepLogs)
	if err != nil || !ok {
		return err // no session was started
	}
	root, err := os.OpenRoot(r.Tree.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	return l.write(r, root, before, state{phaseIdle, end.Kind, exit})
}

// Summary returns CodeScribe's line for the end of a run (ruling S9).
func Summary(r *hone.Run) string {
	return fmt.Sprintf("completed %d/%d loop(s) — run: %s — artifacts: %s", loopsCompleted(r), max(1, r.Limits.Rounds),
		r.Journal.Run(), filepath.Join(r.Tree.Dir(), filepath.FromSlash(artifactsFolder)))
}

func loopsCompleted(r *hone.Run) int {
	records := r.Past().Records(stepSummary)
	if len(records) == 0 {
		return 0
	}
	return records[len(records)-1].Step.Round
}

// stepLogs is the step that measures the logs to which a run appends.
const stepLogs = "logs before"

// logsBefore is the contents of the logs before the run.
type logsBefore struct {
	Review prefix `json:"review"`
	Log    prefix `json:"log"`
}

func (l Loop) measureLogs(ctx context.Context, r *hone.Run) (logsBefore, error) {
	return inTree(ctx, r, stepLogs, nil, func(root *os.Root) (logsBefore, error) {
		var before logsBefore
		err := makeHome(r.Tree.Dir())
		if err != nil {
			return before, err
		}
		if before.Review, err = measure(root, artifactsFolder+"/review.toml"); err != nil {
			return before, err
		}
		err = l.withLog(r.Tree.Dir(), func(folder *os.Root, name string) error {
			before.Log, err = measure(folder, name)
			return err
		})
		return before, err
	})
}

func (l Loop) withLog(tree string, do func(base *os.Root, name string) error) error {
	if l.Log == "" {
		return nil
	}
	base, name, err := logBase(tree, l.Log)
	if err == nil {
		err = os.MkdirAll(base, 0o755)
	}
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer root.Close()
	if err := do(root, name); err != nil {
		return fmt.Errorf("log %s: %w", l.Log, err)
	}
	return nil
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

// state is what state.toml contains in addition to the journal.
type state struct {
	phase string
	kind  hone.Kind // of the end of a run; empty if it has not ended
	exit  int
}

func (l Loop) write(r *hone.Run, root *os.Root, before logsBefore, s state) error {
	round := r.Round()
	execution, err := sessionLog(r, l.Executor, stepSummary, func(n int) bool { return n == round })
	if err != nil {
		return err
	}
	all, err := sessionLog(r, l.Executor, stepSummary, func(int) bool { return true })
	if err != nil {
		return err
	}
	role := l.Reviewer
	role.Bounds.Turns = l.reviewTurns()
	reviews, err := sessionLog(r, role, stepReviewSummary, func(int) bool { return true })
	if err != nil {
		return err
	}
	return errors.Join(
		artifact.Write(root, artifactsFolder+"/run.toml", strings.NewReader(encode(l.runPairs(r)))),
		artifact.Write(root, artifactsFolder+"/state.toml", strings.NewReader(encode(l.statePairs(r, s)))),
		artifact.Write(root, artifactsFolder+"/execution.toml", bytes.NewReader(execution)),
		addTo(root, artifactsFolder+"/review.toml", before.Review, reviews),
		l.withLog(r.Tree.Dir(), func(folder *os.Root, name string) error { return addTo(folder, name, before.Log, all) }),
	)
}

func addTo(root *os.Root, name string, before prefix, events []byte) error {
	text, err := readPrefix(root, name, before)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		events = slices.Concat(text, []byte("\n\n"), events)
	}
	return artifact.Write(root, name, bytes.NewReader(events))
}

func (l Loop) runPairs(r *hone.Run) []pair {
	var m meter
	for _, e := range r.Past().Events() {
		m.add(e)
	}
	pairs := []pair{
		{"run_id", r.Journal.Run()},
		{"created_at", stamp(r.Past().First().Time)},
		{"workdir", r.Tree.Dir()},
		{"task_file", l.taskPath(r)},
		{"model", l.Executor.Called},
		{"agent_loops", max(1, r.Limits.Rounds)},
		{"agent_iterations", l.Executor.Bounds.Resolved().Turns},
		{"cumulative_input_tokens", m.all.Input},
		{"cumulative_output_tokens", m.all.Output},
		{"cumulative_cache_creation_tokens", m.all.CacheWrite},
		{"cumulative_cache_read_tokens", m.all.CacheRead},
		{"loops_completed", loopsCompleted(r)},
	}
	if l.Reviewer.Called != l.Executor.Called {
		pairs = append(pairs, pair{"review_model", l.Reviewer.Called})
	}
	return pairs
}

// result is hone's own key; CodeScribe has none.
func (l Loop) statePairs(r *hone.Run, s state) []pair {
	pairs := []pair{
		{"run_id", r.Journal.Run()},
		{"workdir", r.Tree.Dir()},
		{"task_file", l.taskPath(r)},
		{"loop_index", r.Round()},
		{"phase", s.phase},
		{"updated_at", stamp(r.Past().Last().Time)},
	}
	if s.kind != "" {
		pairs = append(pairs, pair{"result", string(s.kind)}, pair{"exit", s.exit})
	}
	return pairs
}

func (l Loop) taskPath(r *hone.Run) string {
	if l.File == "" {
		return ""
	}
	return filepath.Join(r.Tree.Dir(), filepath.FromSlash(l.File))
}

// CodeScribe formats times like this.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }
