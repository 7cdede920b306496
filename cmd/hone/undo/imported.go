package undo

import (
	"context"
	"fmt"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness/runs"
	"hone/internal/render"
)

// Place brings the tree into the state in which a run left its own, if it was imported
// and nothing has done so yet. It refuses to overwrite files of the user's. notes say what it
// did.
func Place(ctx context.Context, run *runs.Recorded) (notes []string, err error) {
	p, err := run.Placement(ctx, kinds.Own(run.Start, run.Past))
	if p == nil && err == nil {
		_, _, err = run.PlaceImported(ctx, false) // an undo has taken them back
	}
	if p == nil || err != nil {
		return nil, err
	}
	id, at := run.Journal.Run(), failure.Elsewhere(run.Dir)
	if len(p.Conflicts) > 0 {
		hint := "move your versions away"
		if base := run.Home.Imported(id).Base; base != "" {
			hint += fmt.Sprintf(", or check out %.12s, on which the run was exported", base)
		}
		f := &failure.Error{Kind: hone.KindBlocked, Hint: hint + "; then: hone resume " + id + at,
			Why: fmt.Sprintf("nothing was changed: the run was imported, and to restore its files would overwrite %s", render.Count(len(p.Conflicts), "file"))}
		for _, path := range p.Conflicts {
			f.Each = append(f.Each, render.Line(path)+": the run does not know this version")
		}
		return nil, f
	}
	if err := run.Place(ctx, p); err != nil {
		return nil, occupiedError(err, id+at, 0)
	}
	if len(p.Changes) > 0 {
		notes = append(notes, fmt.Sprintf("the run was imported: restored %s to its state: %s", render.Count(len(p.Changes), "file"), render.Names(p.Changes)))
	}
	if len(p.Missing) > 0 {
		notes = append(notes, "not restored, because the run has no contents of them: "+render.Names(p.Missing))
	}
	return notes, nil
}

// An undo of files that were not restored here would be recorded, and keep [Place] from restoring them later. A tree that is
// the run's already passes.
func checkPlaced(ctx context.Context, run *runs.Recorded) error {
	p, err := run.Placement(ctx, kinds.Own(run.Start, run.Past))
	if p == nil || err != nil {
		return err
	}
	if len(p.Changes)+len(p.Conflicts) == 0 {
		return run.Place(ctx, p)
	}
	named := run.Journal.Run() + failure.Elsewhere(run.Dir)
	hint := fmt.Sprintf("hone resume %s restores them, and continues", named)
	if last := run.Past.State().Round; last > 0 {
		hint += fmt.Sprintf("; hone undo %s --to-round %d only restores them", named, last)
	}
	return failure.Usage("nothing was undone: the run was imported, and its files are not restored here yet", hint)
}
