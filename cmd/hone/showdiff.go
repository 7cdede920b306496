package main

import (
	"context"
	"os"

	"hone/cmd/hone/patch"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/tty"
	"hone/internal/render"
)

// showDiff shows how the run changed the files, or one of its rounds if round is not 0:
// a patch that "git apply" accepts. On a terminal it is coloured, and control
// characters are escaped. Files that the loop itself writes for the user are left out.
func (a *app) showDiff(ctx context.Context, r *recorded.Run, round int) error {
	deltas, err := r.Past.AllChanges(r.Home.Get)
	if round != 0 {
		deltas, err = r.Past.Changes(round, r.Home.Get)
	}
	if err != nil {
		return err
	}
	diff, omitted, err := patch.Of(ctx, r.Home, deltas, r.Own(), true)
	if err != nil {
		return err
	}
	a.sayNotes(omitted)
	if back := r.Past.RestoredTo(); back != nil && round == 0 && len(diff)+len(omitted) == 0 {
		a.sayNotes([]string{"there is nothing to show: " + report.RestoredText(r.Past, *back)})
		return nil
	}
	if a.outTerminal {
		return tty.Page(os.Stdout, a.redactKnown(a.outColour.Diff(render.Escape(string(diff)))))
	}
	_, err = a.out.Write(diff)
	return err
}
