package history

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"hone/journal"
	"hone/workspace"
)

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
	// Imported are those of the changes that bring files which the run itself did not
	// change, such as changes that were not committed where it started.
	Imported []ImportedFile

	journal *journal.Journal
	tree    *workspace.Tree
	list    []workspace.Delta
}

// ImportedFile is a file that came with a run.
type ImportedFile struct {
	Path   string
	Before workspace.Entry // what was here; zero if nothing was
	After  workspace.Entry // as the run has it; zero if it has none
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
	for _, path := range p.Changes {
		if one := t.traces[path]; !one.ours {
			p.Imported = append(p.Imported, ImportedFile{path, now[path], one.want})
		}
	}
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

// PlaceImported brings files to the state After of a list or, if back is set, back to Before. It
// returns the paths that it changed, and those that have neither of the two states and
// stay as they are; sorted.
func PlaceImported(ctx context.Context, home *journal.Home, tree *workspace.Tree, list []ImportedFile, back bool) (changed, left []string, err error) {
	var paths []string
	for _, b := range list {
		paths = append(paths, b.Path)
	}
	m, err := tree.ManifestOf(ctx, paths, nil)
	if err != nil {
		return nil, nil, err
	}
	var targets []workspace.Delta
	for _, b := range list {
		from, want := b.Before, b.After
		if back {
			from, want = want, from
		}
		now, _ := m.Entry(b.Path)
		switch {
		case now.SameState(want):
		case now.SameState(from):
			targets = append(targets, workspace.Delta{Path: b.Path, Before: now, After: want})
		default:
			left = append(left, b.Path)
		}
	}
	changed, err = tree.Apply(ctx, targets, home.OpenObject)
	return changed, left, err
}

// Restore makes the changes, all of them or none, and completes the edits that the run
// had started to apply. With conflicts it does nothing. If it fails or its process dies,
// it can be repeated.
func (p *Placement) Restore(ctx context.Context) error {
	if len(p.Conflicts) > 0 {
		return &workspace.ConflictError{Paths: p.Conflicts}
	}
	var replaced workspace.Manifest // which PlaceImported can restore
	for _, b := range p.Imported {
		if b.Before.Kind == workspace.Regular {
			replaced = append(replaced, b.Before)
		}
	}
	if _, err := KeepContents(ctx, p.tree, p.journal, nil, replaced, nil); err != nil {
		return err
	}
	if _, err := p.tree.Apply(ctx, p.list, p.journal.Home().OpenObject); err != nil {
		return fmt.Errorf("restore the run's files: %w", err)
	}
	return complete(ctx, p.journal, p.tree)
}
