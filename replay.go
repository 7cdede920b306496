package hone

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// A run is gone through once more over a journal that is played back
// ([journal.Home.Playback]): no model is asked and no command runs. The loop
// does what it does between steps, and each step gives what it gave; what was
// asked has to be the same byte for byte, since a record answers only for the
// input that it was made for, and what the engine itself writes has to be the
// line on record. In a scratch tree the edits are made anew, and what commands
// changed is taken from what was kept; the tree has to be the one on record
// wherever there is one.

// Replayed is what came of going through a run once more.
type Replayed struct {
	Rounds   int // decisions that came out the same
	Requests int // what models were sent, the same byte for byte
	Edits    int // made anew
	Trees    int // found to be as they are on record
	// Unexplained are files that changed while no command ran, and by nobody who
	// is on record: a person at work beside the run, say. Sorted.
	Unexplained []string
	// Lost are files whose contents were not kept; sorted.
	Lost []string
	// Open says that the record ends within a round: the run was stopped there,
	// or died.
	Open bool
}

// errEnds is the end of a record within a round.
var errEnds = errors.New("the record ends here")

// playing is what is known while a journal is played back.
type playing struct {
	Replayed
	tree     workspace.Series          // as it is on record, at the newest manifest
	scratch  workspace.Manifest        // the scratch tree's, for its stat cache
	commands bool                      // one may have changed the tree since it was compared
	written  map[string]bool           // by edits, and in no manifest since
	unpaid   map[journal.Identity]bool // steps that their rounds ended without
}

// Replay goes through the run once more. Its journal is played back, and its
// tree is a scratch copy that is empty. The error says what was not the same.
func (r *Run) Replay(ctx context.Context, round Round) (Replayed, error) {
	r.played = &playing{tree: workspace.Series{Get: r.Journal.Home().Get}, written: map[string]bool{}, unpaid: map[journal.Identity]bool{}}
	err := r.again(ctx, round)
	if errors.Is(err, errEnds) {
		err = nil
		for len(r.Journal.Ahead()) > 0 && err == nil {
			err = r.pass(ctx)
		}
		r.played.Open = true
	}
	slices.Sort(r.played.Lost)
	r.played.Lost = slices.Compact(r.played.Lost)
	return r.played.Replayed, err
}

// again drives the rounds, through all that its processes made of it.
func (r *Run) again(ctx context.Context, round Round) error {
	if len(r.Journal.Ahead()) == 0 {
		return errors.New("the run has no record")
	}
	if err := r.restart(); err != nil {
		return err
	}
	for {
		if err := r.catchUp(ctx); err != nil || len(r.Journal.Ahead()) == 0 {
			return err
		}
		s := r.Past().State()
		r.enter(s.Round)
		var err error
		if s.Decision == StopNow && r.Past().Granted() {
			_, err = r.decide(ctx, s, s.RoundFindings(), nil)
		} else {
			_, err = r.play(ctx, s, round)
		}
		if err != nil {
			err = r.stopped(ctx, err)
		}
		if err != nil {
			return err
		}
	}
}

// restart passes the start, with the limits that the run began with.
func (r *Run) restart() error {
	e := history.Decode(r.Journal.Pass())
	start, ok := e.Payload.(Start)
	if !ok {
		return fmt.Errorf("the journal begins with an event of the type %q, not with a start", e.Type)
	}
	r.Limits = start.Limits
	r.Limits.Time = 0
	return nil
}

// stopped goes on from an error that the loop came to by itself: on record it
// has to have ended the run as well.
func (r *Run) stopped(ctx context.Context, err error) error {
	var diverged *journal.DivergedError
	if ctx.Err() != nil || errors.Is(err, errEnds) || errors.As(err, &diverged) {
		return err
	}
	if err := r.catchUp(ctx, history.TypeEnd); err != nil {
		return err
	}
	s, stop := r.Past().State(), r.stop(ctx, err)
	s.Kind, s.Why, s.Next = stop.Kind, stop.Error(), stop.Next
	if _, ending := r.end(s); ending != nil {
		return err // on record it went on
	}
	return nil
}

// catchUp passes what the run did not do itself, up to what it did, or to a
// type of event.
func (r *Run) catchUp(ctx context.Context, until ...journal.Type) error {
	for {
		ahead := r.Journal.Ahead()
		if len(ahead) == 0 || !r.beside(ahead[0]) || slices.Contains(until, ahead[0].Type) {
			return nil
		}
		if err := r.pass(ctx); err != nil {
			return err
		}
	}
}

// foreign reports whether an event does not come of the loop itself: of the
// world around it, of its processes' ends, or of a person who answered later.
func foreign(e journal.Event) bool {
	switch e.Type {
	case history.TypeWalls, history.TypeNotice, history.TypeServer, history.TypeReserve, history.TypeCommit, history.TypeUsage,
		history.TypeRetry, history.TypeResume, history.TypeOutside, history.TypeUndo, history.TypeEnd:
		return true
	}
	return e.Step != nil && e.Step.Session < 0
}

// pass takes the next event as it stands, with what it says of the tree.
func (r *Run) pass(ctx context.Context) error {
	e := history.Decode(r.Journal.Pass())
	switch p := e.Payload.(type) {
	case history.Unreadable:
		return p.Err
	case history.State:
		return nil
	case history.Resumed:
		r.Limits = p.Limits
		r.Limits.Time = 0
	case history.Applied:
		return r.remake(ctx, p.Verdicts)
	case history.Outside, history.Undone, history.Checked, history.Snapshot:
		r.played.commands = true
	}
	if e.Manifest() == "" {
		return nil
	}
	return r.meet(ctx, e.Manifest())
}

// remake makes edits anew.
func (r *Run) remake(ctx context.Context, vs []workspace.Verdict) error {
	ch, err := history.RecordedChange(r.Journal.Home(), vs)
	if err != nil {
		return err
	}
	for _, v := range vs {
		r.played.written[v.Path] = true
		if v.Before.Exists() && !r.matches(v.Path, v.Before) {
			if err := r.unignored(ctx, v); err != nil {
				return err
			}
		}
	}
	r.played.Edits += len(vs)
	if err := applyAll(ctx, r.Tree, r.Journal.Home(), ch, vs); err != nil {
		return fmt.Errorf("make the edits of event %d anew: %w", r.Journal.Events()[len(r.Journal.Events())-1].Seq, err)
	}
	return nil
}

// unignored puts a file where no manifest had one: git ignores it, and an edit
// found it there.
func (r *Run) unignored(ctx context.Context, v workspace.Verdict) error {
	if _, listed := r.last.Entry(v.Path); listed {
		return nil // Apply says that it is another
	}
	_, err := r.Tree.Restore(ctx, []workspace.Restoration{{Path: v.Path, Want: history.EntryOf(v.Path, v.Before)}}, r.contents)
	return err
}

// meet compares the scratch tree with a manifest on record, and makes it that.
func (r *Run) meet(ctx context.Context, object string) error {
	if _, err := r.played.tree.Go(object); err != nil {
		return err
	}
	want := r.played.tree.Manifest()
	now, err := r.Tree.Manifest(ctx, r.played.scratch)
	if err != nil {
		return err
	}
	r.played.scratch = now
	list, same := r.differences(now, want)
	if _, err := r.Tree.Restore(ctx, list, r.contents); err != nil {
		return err
	}
	if same {
		r.played.Trees++
	}
	for _, e := range want {
		delete(r.played.written, e.Path)
	}
	r.played.commands, r.last, r.stale = false, want, false
	return nil
}

// differences is what a scratch tree lacks of a manifest. It has to be what
// commands changed, or the loop's own files; same says that there was nothing
// else.
func (r *Run) differences(now, want workspace.Manifest) (list []workspace.Restoration, same bool) {
	same = true
	reruled := slices.ContainsFunc(r.last.Diff(want), func(d workspace.Delta) bool { return path.Base(d.Path) == ".gitignore" })
	for _, d := range now.Diff(want) {
		switch {
		case d.Op == workspace.Removed && (r.played.written[d.Path] || reruled && !r.played.commands), d.Before.Same(d.After):
			continue // ignored by git, and by the manifest
		case d.After.Note != "", d.After.Kind == workspace.Other, d.After.Kind == workspace.Regular && !r.Journal.Home().Has(d.After.Digest):
			r.played.Lost = append(r.played.Lost, d.Path)
			continue
		case reruled && d.Op == workspace.Added:
		case !r.played.commands && r.last != nil && (r.Own == nil || !r.Own(d.Path)):
			same = false
			r.played.Unexplained = append(r.played.Unexplained, d.Path)
		}
		list = append(list, workspace.Restoration{Path: d.Path, Want: d.After})
	}
	return list, same
}

// playStep gives what a step gave: it passes its begin and its record, and all
// that happened between them.
func playStep[T any](ctx context.Context, r *Run, id journal.Identity, input string, w work[T]) (T, error) {
	var none T
	begin, record := r.Journal.Lookup(id)
	for _, e := range r.Journal.Ahead() {
		if e.Step != nil && *e.Step == id {
			if e.Phase == journal.Begin && begin == nil {
				begin = &e
			} else if e.Phase == journal.Record {
				record = &e
				break
			}
		}
	}
	if err := sameInput(id, input, begin, record); err != nil {
		return none, errors.New(err.Error()) // no end of the run, but another run
	}
	if record == nil {
		if err := r.unpaidAt(ctx, id); err != nil {
			return none, err
		}
		return none, r.endsAt(id, begin)
	}
	inside := begin != nil && begin.Seq <= int64(len(r.Journal.Events()))
	for int64(len(r.Journal.Events())) < record.Seq {
		next := r.Journal.Ahead()[0]
		inside = inside || next.Step != nil && *next.Step == id
		if !inside && !r.beside(next) {
			return none, &journal.DivergedError{Recorded: next.Line(), Made: []byte("the step " + id.String())}
		}
		if next.Seq == record.Seq && w.event == history.TypeAsk {
			r.played.Requests++
		}
		if next.Phase == journal.Begin && (w.again != nil || w.event == history.TypeCheck) {
			r.played.commands = true
		}
		if err := r.pass(ctx); err != nil {
			return none, err
		}
	}
	return result[T](r, *record)
}

// unpaidAt is the stop that a step had in the place of a record, where the
// budget could not pay for it and its round was ended without; else nil. What
// of it was begun is passed wherever it stands: each process began it anew.
func (r *Run) unpaidAt(ctx context.Context, id journal.Identity) error {
	ended, session := false, false
	for _, e := range r.Journal.Ahead() {
		if e.Type == history.TypeRound {
			break
		}
		if e.Step != nil {
			ended = ended || e.Step.Name == history.StepUnpaid && e.Step.Round == id.Round && e.Phase == journal.Record
			session = session || *e.Step == id && history.Decode(e).RunsCommand()
		}
	}
	if !ended {
		return nil
	}
	r.played.unpaid[id] = true
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	r.played.commands = r.played.commands || session
	return &Stop{Kind: KindBudget}
}

// beside reports whether an event is passed where it stands.
func (r *Run) beside(e journal.Event) bool {
	return foreign(e) || e.Step != nil && r.played.unpaid[*e.Step]
}

// endsAt is why a step has no record: the run came no further. It did come
// further where it did something else, which is not part of the step.
func (r *Run) endsAt(id journal.Identity, begin *journal.Event) error {
	for _, e := range r.Journal.Ahead() {
		if r.beside(e) || begin != nil && e.Step != nil && within(*e.Step, id) {
			continue
		}
		return &journal.DivergedError{Recorded: e.Line(), Made: []byte("the step " + id.String())}
	}
	return errEnds
}

// within reports whether a step stands where another one does, which may have
// taken it.
func within(step, of journal.Identity) bool {
	return step.Round == of.Round && step.Session == of.Session && step.Turn == of.Turn && step.Call == of.Call
}

// lookedAgain gives what judging the tree gave: the last time, where processes
// did it again because the tree had become another.
func (r *Run) lookedAgain(ctx context.Context, name string) (c history.Checked, err error) {
	for {
		id := r.named(name)
		id.Index = r.count[id]
		ahead := slices.ContainsFunc(r.Journal.Ahead(), func(e journal.Event) bool {
			return e.Step != nil && *e.Step == id && e.Phase == journal.Record
		})
		if !ahead && id.Index > 0 {
			return c, nil
		}
		if c, err = step(ctx, r, work[history.Checked]{event: history.TypeCheck, name: name}); err != nil {
			return c, err
		}
	}
}

// replayed appends what the engine itself makes: it has to be what stands next,
// but for what happened around it.
func (r *Run) replayed(ctx context.Context, n journal.Entry) (journal.Event, error) {
	for {
		e, err := r.Journal.Append(n)
		var diverged *journal.DivergedError
		ahead := r.Journal.Ahead()
		if errors.As(err, &diverged) && len(ahead) == 0 {
			return e, errEnds
		}
		if !errors.As(err, &diverged) || !r.beside(ahead[0]) {
			if err == nil && n.Type == history.TypeRound {
				r.played.Rounds++
			}
			return e, err
		}
		if err := r.pass(ctx); err != nil {
			return e, err
		}
	}
}

// recordedManifest is the tree as the next event has it that names one, which
// the scratch tree has to be as well.
func (r *Run) recordedManifest(ctx context.Context) (object, tree string, err error) {
	for _, e := range r.Journal.Ahead() {
		object := history.Decode(e).Manifest()
		if r.beside(e) || object == "" {
			continue
		}
		err := r.meet(ctx, object)
		return object, r.last.Digest(), err
	}
	return "", "", errEnds
}
