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

// Settle completes and records the edits that a run had started to apply when
// its process died. last is the run that was worked on last ([journal.Lock]);
// empty means that there is none. Each run settles before it starts, so no
// other run can have left anything incomplete.
//
// Call Settle with the workspace locked, before a run is started or resumed. It
// also removes the directories that the process left in the system's temporary
// directory. If the user has changed a file of a change since, or may not change one, Settle makes
// none of its edits, and the resumed run reviews it again; see [Apply]. If the run is not the
// home's owner's, Settle completes nothing and returns a [*journal.ForeignError].
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
	return errors.Join(Complete(ctx, j, tree, Follow(j)), j.Close())
}

// Complete completes and records the applies that a run has begun and not recorded. past is
// the past of its journal.
func Complete(ctx context.Context, j *journal.Journal, tree *workspace.Tree, past *Past) error {
	var failed error
	for _, e := range past.Unapplied() {
		done, err := Apply(ctx, tree, j.Home(), e.Payload.(ApplyBegun))
		if err == nil {
			_, err = j.Append(journal.Entry{Type: TypeApply, Phase: journal.Record, Step: e.Step, Input: e.Input, Payload: done, Sync: true})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Finished reports whether the run has ended and nothing is left to be settled.
func (p *Past) Finished() bool {
	return p.Facts().Ended && len(p.Unapplied()) == 0
}

// Unapplied returns the begins of applies that have no record, in order.
func (p *Past) Unapplied() []Event {
	defer p.lock().Unlock()
	var begun []Event
	for _, i := range slices.Sorted(maps.Values(p.begins)) {
		_, applies := p.events[i].Payload.(ApplyBegun)
		if _, recorded := p.recorded[*p.events[i].Step]; applies && !recorded {
			begun = append(begun, p.events[i])
		}
	}
	return begun
}

// Apply makes the edits of an apply that has begun, all of them or none, with contents from the
// objects of the journal. It completes a change that was made in part.
//
// If a file has neither the contents that its edit found nor those that the edit writes,
// the user has changed it. Then Apply makes no edit, undoes those that were made, and
// returns the files that the user changed, as Outdated. It does the same with files that the user
// may not change, as Denied.
func Apply(ctx context.Context, tree *workspace.Tree, home *journal.Home, begun ApplyBegun) (Applied, error) {
	if len(begun.Outdated) > 0 {
		return Applied(begun), nil
	}
	vs := begun.Verdicts
	edits := make([]workspace.Delta, len(vs))
	for i, v := range vs {
		edits[i] = v.Delta()
	}
	_, err := tree.Apply(ctx, edits, home.OpenObject)
	_, partial := errors.AsType[*workspace.PartialError](err)
	if err == nil || partial {
		return Applied{Verdicts: vs}, err
	}
	none := Applied{Verdicts: []workspace.Verdict{}}
	if conflict, ok := errors.AsType[*workspace.ConflictError](err); ok {
		none.Outdated = conflict.Paths
	} else if denied, ok := errors.AsType[*workspace.DeniedError](err); ok {
		none.Denied = denied.Why
	} else {
		return none, err
	}
	var made []workspace.Delta // by a process that died
	for i, d := range edits {
		if v := vs[i]; v.Before != v.After && tree.Holds(v.Path, v.After) {
			made = append(made, d.Back())
		}
	}
	if err := tree.Fault(); err != nil {
		return none, err
	}
	if _, err := tree.Apply(ctx, made, home.OpenObject); err != nil {
		return none, fmt.Errorf("undo an incomplete change: %w", err)
	}
	return none, nil
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

// Placement says how to bring a tree into the state in which a run left it elsewhere: that
// of the run's newest manifest, with the edits since. If a command was running when the
// journal ended, its changes are not part of that state.
//
// A file here may be replaced if it has a state that the run recorded, or if the caller
// knows that its contents are kept elsewhere; see [Place]. Files that the run never had
// stay as they are.
type Placement struct {
	// Changes are the paths that differ and can be brought into the run's state without
	// loss; sorted.
	Changes []string
	// Conflicts are the paths whose state neither the run nor the base has; sorted.
	Conflicts []string
	// Missing are the paths that differ and whose contents were not stored; sorted.
	Missing []string

	journal *journal.Journal
	tree    *workspace.Tree
	list    []workspace.Delta
}

// Place finds out how to bring a tree into the state in which a run left its own; it
// changes nothing. own reports whether the loop itself writes a file for users, such as a
// log, whose contents are not stored; nil means that there are none. isBase returns which
// of some paths have the state of a commit, so that they may be replaced or removed; nil
// means that none has. The workspace must be locked.
func Place(ctx context.Context, j *journal.Journal, tree *workspace.Tree, own func(path string) bool, isBase func([]string) (map[string]bool, error)) (*Placement, error) {
	t, err := track(j, ofEnd)
	if err != nil {
		return nil, err
	}
	t.markEnd()
	for _, e := range t.tree.Manifest() {
		t.trace(e.Path, e)
	}
	maps.DeleteFunc(t.traces, func(p string, _ *trace) bool { return own != nil && own(p) })
	m, err := tree.ManifestOf(ctx, slices.Sorted(maps.Keys(t.traces)), nil)
	if err != nil {
		return nil, err
	}
	now := map[string]workspace.Entry{}
	for _, e := range m {
		now[e.Path] = e
	}
	p := &Placement{journal: j, tree: tree}
	for _, path := range slices.Sorted(maps.Keys(t.traces)) {
		p.classify(path, t.traces[path], now[path])
	}
	if len(p.Conflicts) > 0 && isBase != nil {
		base, err := isBase(p.Conflicts)
		if err != nil {
			return nil, fmt.Errorf("find out what is committed: %w", err)
		}
		for _, path := range p.Conflicts {
			if base[path] {
				p.change(path, t.traces[path].want, now[path])
			}
		}
		p.Conflicts = slices.DeleteFunc(p.Conflicts, func(path string) bool { return base[path] })
	}
	slices.Sort(p.Changes)
	return p, nil
}

func (p *Placement) classify(path string, t *trace, now workspace.Entry) {
	want := t.want
	switch {
	case now.SameState(want):
	case now.IsUnread() && want.IsUnread() && now.Size == want.Size: // a checkout has another time
	case want.Kind == workspace.Other, want.Note != "", want.Kind == workspace.Regular && !p.journal.Home().Has(want.Digest):
		p.Missing = append(p.Missing, path)
	case now.Kind == "", slices.ContainsFunc(t.states, func(e workspace.Entry) bool {
		e.Mode = now.Mode // the permission bits of a checkout depend on its user's settings
		return e.SameState(now)
	}):
		p.change(path, want, now)
	default:
		p.Conflicts = append(p.Conflicts, path)
	}
}

func (p *Placement) change(path string, want, now workspace.Entry) {
	p.Changes = append(p.Changes, path)
	p.list = append(p.list, workspace.Delta{Path: path, Before: now, After: want})
}

// Restore makes the changes, all of them or none, and completes the edits that the run
// had started to apply. With conflicts it does nothing. If it fails or its process dies,
// it can be repeated.
func (p *Placement) Restore(ctx context.Context) error {
	if len(p.Conflicts) > 0 {
		return &workspace.ConflictError{Paths: p.Conflicts}
	}
	if _, err := p.tree.Apply(ctx, p.list, p.journal.Home().OpenObject); err != nil {
		return fmt.Errorf("restore the run's files: %w", err)
	}
	return Complete(ctx, p.journal, p.tree, Follow(p.journal))
}
