package attempts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/workspace"
)

// TakeName is the name of the loop that applies another attempt.
const TakeName = "take"

// TakeKind returns the loop of "hone take". kinds are those of which an attempt may be.
func TakeKind(kinds []loop.Kind) loop.Kind {
	return loop.Kind{Name: TakeName, Modelless: true, New: func() loop.Loop { return NewTaking(kinds) }}
}

// NewTaking returns an invocation of that loop without settings.
func NewTaking(kinds []loop.Kind) *Taking { return &Taking{kinds: kinds} }

// Taking is a run that applies one attempt in place of another.
type Taking struct {
	loop.Settings
	Of     string `json:"of"` // the run of the attempts
	Number int    `json:"attempt"`
	Run    string `json:"attempt_run"`
	Dir    string `json:"attempt_dir"`

	kinds []loop.Kind
	run   *hone.Run
}

// Models returns nil: none is asked.
func (v *Taking) Models() []loop.RoleModel { return nil }

// Subject names the attempt.
func (v *Taking) Subject() string {
	return fmt.Sprintf("attempt %d of run %s", v.Number, journal.ShortRun(v.Of))
}

// Found is an attempt that a user named.
type Found struct {
	history.Attempt
	Of string // the run of the attempts
}

// Find returns the attempt whose run a user means by ref: an id, or a unique prefix of
// one or of its last part, as in [journal.Home.FindRun]. The error is a
// [*journal.NotFoundError] if there is none.
func Find(home *journal.Home, ref string) (Found, error) {
	all, err := home.Runs()
	if err != nil {
		return Found{}, err
	}
	var found []Found
	for _, run := range slices.Backward(all) {
		past, start := pastOf(home, run)
		if past == nil || start.Loop != Name || ref == "" {
			continue
		}
		for _, a := range past.Attempts() {
			if strings.HasPrefix(a.Run, ref) || strings.HasPrefix(journal.ShortRun(a.Run), ref) {
				found = append(found, Found{a, run})
			}
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	missing := &journal.NotFoundError{Ref: ref}
	for _, f := range found {
		missing.Matches = append(missing.Matches, f.Run)
	}
	return Found{}, missing
}

// pastOf returns what a run recorded; nil if that cannot be read.
func pastOf(home *journal.Home, run string) (*history.Past, hone.Start) {
	events, err := home.Read(run)
	if err != nil {
		return nil, hone.Start{}
	}
	start, err := runs.Started(events)
	if err != nil {
		return nil, start
	}
	return history.Read(events), start
}

// plan is the record of the step that decides what to do.
type plan struct {
	Own    []edit `json:"own"`                // how the attempt changed the tree that all attempts found
	Former int    `json:"replaced,omitempty"` // the attempt that was applied; 0 if none was
	Why    string `json:"why"`                // how the attempt ended
	change
	history.Report
}

// Build returns the run and its one round.
func (v *Taking) Build(s loop.Session) (loop.Built, error) {
	v.run = s.NewRun(workspace.Rules{Guard: s.Guard()})
	return loop.Built{Run: v.run, Round: v.round, With: "no model"}, nil
}

func (v *Taking) round(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
	p, err := hone.Step(ctx, r, "plan", nil, func(ctx context.Context) (plan, error) { return v.plan(ctx) })
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("attempt %d (%s)", v.Number, p.Why)
	// Resume would keep the plan, which may expect files of the attempt that was applied.
	if err := p.apply(ctx, r, name, hone.Next{Verb: hone.Take, Run: v.Run, Or: byHand(v.Dir)}); err != nil {
		return nil, err
	}
	if r.Trust.Passed = "applied " + name; p.Former > 0 {
		r.Trust.Passed += fmt.Sprintf(" in place of attempt %d", p.Former)
	}
	return nil, nil
}

// plan returns how the tree gets from the attempt that is applied now, if one is, to the
// wanted one.
func (v *Taking) plan(ctx context.Context) (p plan, err error) {
	copied, err := journal.FindHomeAt(v.Dir, runs.HomePath(v.Dir))
	if err != nil {
		return p, &hone.UsageError{Why: fmt.Sprintf("the copy of attempt %d was removed: %v", v.Number, err), Next: hone.Next{First: "start the attempts again"}}
	}
	defer copied.Close()
	home := v.run.Journal.Home()
	first, err := readFirst(copied)
	if err != nil {
		return p, err
	}
	if p.Own, err = editsOf(first.past, copied, ownOf(v.kinds, first.start)); err != nil {
		return p, err
	}
	former, edits, err := v.appliedAttempt(ctx, p.Own)
	if err != nil {
		return p, err
	}
	p.Former, p.Why = former, outcome(first)
	both := func(digest string) bool { return home.Has(digest) || copied.Has(digest) }
	get := func(digest string) ([]byte, error) {
		if home.Has(digest) {
			return home.Get(digest)
		}
		return copied.Get(digest)
	}
	p.change, err = changeOf(followedBy(reversed(edits), p.Own), get, both, home)
	p.Said = fmt.Sprintf("attempt %d changes %s", v.Number, render.Count(len(p.Own), "file"))
	return p, err
}

// appliedAttempt returns the number and the edits of the attempt whose changes the tree has; 0
// if the user has restored the files by hand, or wants to apply the same attempt again. own are
// the edits of the wanted attempt.
func (v *Taking) appliedAttempt(ctx context.Context, own []edit) (number int, edits []edit, err error) {
	number, edits, err = Applied(v.run.Journal.Home(), v.Of, v.run.Journal.Run())
	if err != nil || number == 0 {
		return 0, nil, err
	}
	others, err := mismatches(ctx, v.run.Tree, slices.Concat(edits, own), before)
	if err != nil || len(others) == 0 || number == v.Number {
		return 0, nil, err
	}
	return number, edits, nil
}

// outcome says how an attempt ended.
func outcome(r record) string {
	end := r.end()
	switch left := r.left(); {
	case end.Kind == hone.KindDone:
		return end.Why
	case left != nil:
		return render.Count(*left, "finding") + " left, not verified"
	}
	return "not verified"
}

// Applied returns which attempt of a run is applied to the tree, according to the runs
// of its workspace except one, and the edits that it made to what the attempts found; 0
// if none is, because none was or because it was undone.
func Applied(home *journal.Home, of, except string) (number int, edits []edit, err error) {
	all, err := home.Runs()
	if err != nil {
		return 0, nil, err
	}
	for _, run := range slices.Backward(all) {
		if run == except || run < of {
			continue
		}
		past, start := pastOf(home, run)
		if past == nil || !changed(past) || past.RestoredTo() != nil && *past.RestoredTo() == 0 {
			continue
		}
		switch {
		case run == of:
			w, err := recordOf[winner](home, past, "attempts")
			return w.Number, w.Edits, err
		case start.Loop == TakeName:
			if taken, err := takenBy(start); err != nil || taken.Of != of {
				continue
			} else {
				p, err := recordOf[plan](home, past, "plan")
				return taken.Number, p.Own, err
			}
		}
	}
	return 0, nil, nil
}

// Unchanged reports whether the files of a directory are still as edits left them.
func Unchanged(ctx context.Context, root string, edits []edit) (bool, error) {
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		return false, err
	}
	defer tree.Close()
	others, err := mismatches(ctx, tree, edits, after)
	return err == nil && len(others) == 0, err
}

// changed reports whether a run made its change.
func changed(past *history.Past) bool {
	end, ended := past.End()
	return ended && end.Kind == hone.KindDone || len(past.Edits()) > 0
}

// takenBy returns the settings of a run that applied an attempt.
func takenBy(start hone.Start) (*Taking, error) {
	l, err := runs.Settings(TakeKind(nil), start)
	if err != nil {
		return nil, err
	}
	taken, ok := l.(*Taking)
	if !ok {
		return nil, errors.New("it is no run of hone take")
	}
	return taken, nil
}

// recordOf returns the result of a run's first step of a name.
func recordOf[T any](home *journal.Home, past *history.Past, name string) (v T, err error) {
	records := past.Records(name)
	if len(records) == 0 {
		return v, fmt.Errorf("the run has no record of its step %q", name)
	}
	return history.ReadResult[T](records[0].Event, home.Get)
}
