package attempts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/group"
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

// Found is an attempt that a user named.
type Found struct {
	history.Attempt
	Of string // the run of the attempts
}

// Find returns the attempt whose run a user means by ref: an id, or a unique prefix of
// one or of its last part, as in [journal.Home.FindRun]. The error is a
// [*journal.NotFoundError] if there is none.
func Find(home *journal.Home, ref string) (f Found, err error) {
	missing := &journal.NotFoundError{Ref: ref}
	err = eachRun(home, func(run string, past *history.Past, start hone.Start) error {
		for _, a := range past.Attempts() {
			if start.Loop == Name && ref != "" && (strings.HasPrefix(a.Run, ref) || strings.HasPrefix(journal.ShortRun(a.Run), ref)) {
				f, missing.Matches = Found{a, run}, append(missing.Matches, a.Run)
			}
		}
		return nil
	})
	if err == nil && len(missing.Matches) != 1 {
		return Found{}, missing
	}
	return f, err
}

// Only runs that can be read count, the newest first.
func eachRun(home *journal.Home, do func(run string, past *history.Past, start hone.Start) error) error {
	all, err := home.Runs()
	for _, run := range slices.Backward(all) {
		events, broken := home.Read(run)
		start, none := runs.Started(run, events)
		if err == nil && broken == nil && none == nil {
			err = do(run, history.Read(events), start)
		}
	}
	return err
}

// plan is the record of the step that decides what to do.
type plan struct {
	Own    []workspace.Delta `json:"own"`                // how the attempt changed the tree that all attempts found
	Former int               `json:"replaced,omitempty"` // the attempt that was applied; 0 if none was
	Why    string            `json:"why"`                // how the attempt ended
	change
	history.Report
}

// Build returns the run and its one round.
func (v *Taking) Build(s loop.Session) (loop.Built, error) {
	v.run = s.NewRun(workspace.Rules{Guard: s.Guard()})
	v.run.Trust.Tools = false // the attempt has asked, or was refused
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

func (v *Taking) plan(ctx context.Context) (p plan, err error) {
	copied, err := OpenCopy(v.Number, v.Dir)
	if err != nil {
		return p, err
	}
	defer copied.Close()
	home := v.run.Journal.Home()
	o, err := group.First(copied)
	if err != nil {
		return p, err
	}
	if p.Own, err = changesOf(o, copied, v.kinds); err != nil {
		return p, err
	}
	former, edits, err := Applied(home, v.Of, v.run.Journal.Run())
	if err != nil {
		return p, err
	}
	if former != 0 { // unless the user has restored the files by hand, or wants to apply the same attempt again
		others, err := mismatches(ctx, v.run.Tree, slices.Concat(edits, p.Own), func(e workspace.Delta, is workspace.Entry) bool { return is.SameState(e.Before) })
		if err != nil {
			return p, err
		}
		if len(others) == 0 || former == v.Number {
			former, edits = 0, nil
		}
	}
	p.Former, p.Why = former, "not verified"
	switch n := left(o); {
	case o.End().Kind == hone.KindDone:
		p.Why = o.End().Why
	case n != nil:
		p.Why = render.Count(*n, "finding") + " left, not verified"
	}
	get := func(digest string) ([]byte, error) {
		if home.Has(digest) {
			return home.Get(digest)
		}
		return copied.Get(digest)
	}
	has := func(digest string) bool { return home.Has(digest) || copied.Has(digest) }
	p.change, err = changeOf(inPlaceOf(edits, p.Own), get, has, v.run.Journal)
	p.Said = fmt.Sprintf("attempt %d changes %s", v.Number, render.Count(len(p.Own), "file"))
	return p, err
}

// OpenCopy opens the home of an attempt's run, which is in its copy.
func OpenCopy(number int, dir string) (*journal.Home, error) {
	home, err := group.OpenHome(dir)
	if home == nil && err == nil {
		err = &hone.UsageError{Why: fmt.Sprintf("the copy of attempt %d was removed: %s", number, dir), Next: hone.Next{Verb: hone.NewRun, Remark: "which makes the attempts again"}}
	}
	return home, err
}

// Applied returns which attempt of a run is applied to the tree, according to the runs
// of its workspace except one, and the edits that it made to what the attempts found; 0
// if none is, because none was or because it was undone.
func Applied(home *journal.Home, of, except string) (number int, edits []workspace.Delta, err error) {
	found := errors.New("found")
	err = eachRun(home, func(run string, past *history.Past, start hone.Start) error {
		now := past.Facts()
		made := run == of && now.End.Kind == hone.KindDone || len(now.Edits) > 0 // a take that changed nothing found its attempt applied
		if run == except || run < of || !made || now.RestoredTo != nil && *now.RestoredTo == 0 {
			return nil
		}
		if run == of {
			w, err := recordOf[winner](home, past, "attempts")
			number, edits = w.Number, w.Edits
			return cmp.Or(err, found)
		}
		var taken Taking
		if start.Loop != TakeName || json.Unmarshal(start.Settings, &taken) != nil || taken.Of != of {
			return nil
		}
		p, err := recordOf[plan](home, past, "plan")
		number, edits = taken.Number, p.Own
		return cmp.Or(err, found)
	})
	if err == found {
		err = nil
	}
	return number, edits, err
}

func recordOf[T any](home *journal.Home, past *history.Past, name string) (v T, err error) {
	records := past.Records(name)
	if len(records) == 0 {
		return v, fmt.Errorf("the run has no record of its step %q", name)
	}
	return history.ReadResult[T](records[0].Event, home.Get)
}
