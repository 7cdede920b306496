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

// record writes the artifacts as the journal has them now: each is a fold of
// it, so that writing them twice is writing them once. They are for people;
// hone never reads them.
func (l Loop) record(ctx context.Context, r *hone.Run, phase string) error {
	before, ok, err := hone.First[logsBefore](r, stepLogs)
	if err != nil {
		return err
	}
	if !ok {
		if before, err = l.lookAtLogs(ctx, r); err != nil {
			return err
		}
	}
	_, err = inTree(ctx, r, "artifacts", phase, func(root *os.Root) (done, error) {
		return done{}, l.write(r, root, before, state{phase: phase})
	})
	return err
}

// Finish writes the artifacts once more when a run has ended, be it in the
// middle of a session, and says in state.toml how, with the program's exit
// status. It can be called again.
func (l Loop) Finish(r *hone.Run, end hone.End, exit int) error {
	before, ok, err := hone.First[logsBefore](r, stepLogs)
	if err != nil || !ok {
		return err // nothing was begun
	}
	root, err := os.OpenRoot(r.Tree.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	return l.write(r, root, before, state{phaseIdle, end.Kind, exit})
}

// Summary is CodeScribe's line for the end of a run (ruling S9).
func Summary(r *hone.Run) string {
	return fmt.Sprintf("completed %d/%d loop(s) — run: %s — artifacts: %s", loopsCompleted(r), max(1, r.Limits.Rounds),
		r.Journal.Run(), filepath.Join(r.Tree.Dir(), filepath.FromSlash(artifactsFolder)))
}

// loopsCompleted is the number of the last loop whose execution ended; 0: none.
func loopsCompleted(r *hone.Run) int {
	records := r.Past().Records(stepSummary)
	if len(records) == 0 {
		return 0
	}
	return records[len(records)-1].Step.Round
}

// stepLogs is the step that looks at the logs to which a run adds.
const stepLogs = "logs before"

// logsBefore is what stood in them before the run.
type logsBefore struct {
	Review prefix `json:"review"`
	Log    prefix `json:"log"`
}

func (l Loop) lookAtLogs(ctx context.Context, r *hone.Run) (logsBefore, error) {
	return inTree(ctx, r, stepLogs, nil, func(root *os.Root) (logsBefore, error) {
		var before logsBefore
		var err error
		if before.Review, err = measure(root, artifactsFolder+"/review.toml"); err != nil {
			return before, err
		}
		err = l.atLog(func(folder *os.Root, name string) error {
			before.Log, err = measure(folder, name)
			return err
		})
		return before, err
	})
}

// atLog opens the folder of the log that the user named, which is made where
// there is none.
func (l Loop) atLog(do func(folder *os.Root, name string) error) error {
	if l.Log == "" {
		return nil
	}
	path := l.Log
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // whoever named it may have it elsewhere
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer folder.Close()
	if err := do(folder, filepath.Base(path)); err != nil {
		return fmt.Errorf("log %s: %w", path, err)
	}
	return nil
}

// state is what state.toml says beside what the journal does.
type state struct {
	phase string
	kind  hone.Kind // of the end of a run; empty: it has not ended
	exit  int
}

// write writes all artifacts.
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
		l.atLog(func(folder *os.Root, name string) error { return addTo(folder, name, before.Log, all) }),
	)
}

// addTo writes a log below what stood in it before the run.
func addTo(root *os.Root, name string, before prefix, events []byte) error {
	text, err := kept(root, name, before)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		events = slices.Concat(text, []byte("\n\n"), events)
	}
	return artifact.Write(root, name, bytes.NewReader(events))
}

// runPairs are run.toml.
func (l Loop) runPairs(r *hone.Run) []pair {
	events := r.Past().Events()
	var m meter
	for _, e := range events {
		m.take(e)
	}
	pairs := []pair{
		{"run_id", r.Journal.Run()},
		{"created_at", stamp(events[0].Time)},
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

// statePairs are state.toml. How a run ended is hone's own word there.
func (l Loop) statePairs(r *hone.Run, s state) []pair {
	events := r.Past().Events()
	pairs := []pair{
		{"run_id", r.Journal.Run()},
		{"workdir", r.Tree.Dir()},
		{"task_file", l.taskPath(r)},
		{"loop_index", r.Round()},
		{"phase", s.phase},
		{"updated_at", stamp(events[len(events)-1].Time)},
	}
	if s.kind != "" {
		pairs = append(pairs, pair{"result", string(s.kind)}, pair{"exit", s.exit})
	}
	return pairs
}

// taskPath is the task file's whole path; empty where there is none.
func (l Loop) taskPath(r *hone.Run) string {
	if l.File == "" {
		return ""
	}
	return filepath.Join(r.Tree.Dir(), filepath.FromSlash(l.File))
}

// stamp is a time as CodeScribe writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }
