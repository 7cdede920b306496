package hone

import (
	"context"
	"slices"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// A run that died while a command ran has no record of what that changed. What
// differs since may be the command's work or a person's: undo names it, and puts
// it back where it is told to.

// runs reports whether an event leaves a command at work of which no look at the
// tree tells: one has begun, and the record of no look follows.
func (h *pathHistory) runs(e journal.Event, looked bool) bool {
	if e.Type == history.TypeCommand || command(e) || e.Type == history.TypeCheck && e.Phase == journal.Begin {
		return true
	}
	return h.cut && !looked
}

// lookOn goes on from the last manifest to the tree as it is, where the record
// ends within a command and no later run has changed the tree.
func (h *pathHistory) lookOn(ctx context.Context, j *journal.Journal, tree *workspace.Tree) error {
	runs, err := j.Home().Runs()
	if err != nil || !h.cut || slices.Max(append(runs, j.Run())) != j.Run() {
		return err
	}
	last := h.tree.Stored().Manifest
	now, err := tree.Manifest(ctx, last)
	if err != nil {
		return err
	}
	for _, d := range last.Diff(now) {
		t := h.trace(d.Path, h.standing(d.Path, d.Before))
		if !t.knows(d.After) {
			t.ours, t.cut = true, true
		}
	}
	return nil
}
