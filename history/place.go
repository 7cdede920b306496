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
