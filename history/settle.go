package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/journal"
	"hone/workspace"
)

// UnknownStateError means that a file is neither as an edit found it nor as the
// edit leaves it. hone does not overwrite such a file.
type UnknownStateError struct {
	Path   string
	Before workspace.Image // as the edit found it
}

func (e *UnknownStateError) Error() string {
	return e.Path + " was changed outside the run while it was being edited"
}

// Settle completes and records the edits that a run had started to apply when
// its process died. last is the run that was worked on last ([journal.Lock]);
// empty means that there is none. Each run settles before it starts, so no
// other run can have left anything incomplete.
//
// Call Settle with the workspace locked, before a run is started or resumed. It
// also removes the directories that the process left in the system's temporary
// directory. The error may be an [*UnknownStateError], or a
// [*journal.ForeignError]: of a run that is not the home's owner's it completes
// nothing.
func Settle(ctx context.Context, home *journal.Home, tree *workspace.Tree, last string) error {
	if last == "" {
		return nil
	}
	j, err := home.Open(last)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	RemoveScratch(last)
	for _, e := range Follow(j).Unapplied() {
		err = errors.Join(err, completeApply(ctx, j, tree, e))
	}
	return errors.Join(err, j.Close())
}

// Finished reports whether the run has ended and nothing is left to be settled.
func (p *Past) Finished() bool {
	_, ended := p.End()
	return ended && len(p.Unapplied()) == 0
}

// Unapplied returns the begins of applies that have no record, in order.
func (p *Past) Unapplied() []Event {
	defer p.lock().Unlock()
	var begun []Event
	for _, i := range slices.Sorted(maps.Values(p.applying)) {
		begun = append(begun, p.events[i])
	}
	return begun
}

// completeApply makes the edits of an apply that was started, and records it.
func completeApply(ctx context.Context, j *journal.Journal, tree *workspace.Tree, e Event) error {
	begun := e.Payload.(ApplyBegun)
	ch, err := RecordedChange(j.Home(), begun.Verdicts)
	if err != nil {
		return err
	}
	if err := Apply(ctx, tree, ch, begun.Verdicts); err != nil {
		return err
	}
	_, err = j.Append(journal.Entry{Type: TypeApply, Phase: journal.Record, Step: e.Step, Input: e.Input, Payload: Applied(begun), Sync: true})
	return err
}

// Apply makes the edits of a change, all of them or none. It completes a change
// that was made in part. The error may be an [*UnknownStateError].
func Apply(ctx context.Context, tree *workspace.Tree, ch workspace.Change, vs []workspace.Verdict) error {
	err := tree.Apply(ctx, ch, vs)
	var conflict *workspace.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, v := range vs {
		if v.Path == conflict.Paths[0] {
			return &UnknownStateError{Path: v.Path, Before: v.Before}
		}
	}
	return err
}

// RecordedChange returns the change that recorded verdicts are about, with
// contents from the objects of the journal.
func RecordedChange(home *journal.Home, vs []workspace.Verdict) (workspace.Change, error) {
	var ch workspace.Change
	for _, v := range vs {
		e := workspace.Edit{Path: v.Path, Delete: !v.After.Exists()}
		if !e.Delete {
			b, err := home.Get(v.After.Digest)
			if err != nil {
				return ch, fmt.Errorf("read the recorded contents of %s: %w", v.Path, err)
			}
			e.Content = b
		}
		ch.Edits = append(ch.Edits, e)
	}
	return ch, nil
}

// ScratchPrefix returns the prefix of the names of a run's directories in the
// system's temporary directory.
func ScratchPrefix(run string) string { return "hone-prove-" + run + "-" }

// RemoveScratch removes the temporary directories that a run left when its
// process died. The workspace must be locked, so that nothing uses them. It
// leaves what it cannot remove, because that belongs to another user.
func RemoveScratch(run string) {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ScratchPrefix(run)) {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), e.Name()))
		}
	}
}
