package history

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"hone/journal"
	"hone/workspace"
	"hone/workspace/treepath"
)

// Retraced is how a run changed its tree, compared with what it recorded.
type Retraced struct {
	Edits int // number of edits that were made again
	Trees int // number of trees that match
	// Unexplained are files that changed while no command ran, for example because the user
	// edited them during the run; sorted.
	Unexplained []string
	// Lost are files whose contents were not stored; sorted.
	Lost []string
}

// Retrace makes the edits of a run again in an empty tree, restores there what its commands
// changed, and compares the tree with each manifest that an event names. It fails if an edit does
// not find what it found before, or if the edits changed other files than they say. own reports
// whether the loop itself writes a file for users, whose contents are not stored; nil means that
// there are none.
func Retrace(ctx context.Context, home *journal.Home, tree *workspace.Tree, events []Event, own func(path string) bool) (Retraced, error) {
	r := retracing{home: home, scratch: tree, own: own, recorded: workspace.Series{Get: home.Get}, written: map[string]bool{}, ignored: map[string]bool{}}
	for _, e := range events {
		if err := r.add(ctx, e); err != nil {
			return r.Retraced, err
		}
	}
	slices.Sort(r.Unexplained)
	slices.Sort(r.Lost)
	r.Lost = slices.Compact(r.Lost)
	if r.recorded.Name() == "" {
		return r.Retraced, nil
	}
	// A difference now means that an edit changed other files than its record says.
	now, err := r.scratch.Manifest(ctx, nil)
	for _, d := range now.Diff(r.recorded.Manifest()) {
		explained := r.written[d.Path] || r.ignored[d.Path] || slices.Contains(r.Lost, d.Path)
		if err == nil && !explained && d.Before.Note == "" && !d.Before.SameState(d.After) {
			err = fmt.Errorf("the edits that were made again also changed %s", treepath.Display(d.Path))
		}
	}
	return r.Retraced, err
}

type retracing struct {
	Retraced
	home     *journal.Home
	scratch  *workspace.Tree
	own      func(path string) bool
	recorded workspace.Series // at the newest manifest
	commands bool             // a command may have changed the tree since that
	serving  bool             // a server of the loop is up
	written  map[string]bool  // files that edits wrote and no later manifest has; false if the user changed one since
	ignored  map[string]bool  // files of the scratch tree that git ignores, and a manifest does not have
}

func (r *retracing) add(ctx context.Context, e Event) error {
	switch v := e.Payload.(type) {
	case Unreadable:
		return v.Err
	case Applied:
		if err := r.edit(ctx, v.Verdicts); err != nil {
			return fmt.Errorf("make the edits of event %d again: %w", e.Seq, err)
		}
	case Outside:
		for _, path := range v.Paths {
			if r.written[path] {
				r.written[path] = false // no longer as the edit left it; the user may have removed it
			}
		}
		r.commands = true
	case Served:
		r.serving, r.commands = v.What != Down, true
	case Resumed:
		r.serving = false
	case Undone, Checked, Snapshot:
		r.commands = true
	}
	if m := e.Manifest(); m != "" {
		if err := r.compare(ctx, m); err != nil {
			return err
		}
	}
	_, check := e.Payload.(CheckBegun)
	r.commands = r.commands || check || e.RunsCommand()
	return nil
}

func (r *retracing) edit(ctx context.Context, vs []workspace.Verdict) error {
	for _, v := range vs {
		r.written[v.Path] = true
		if _, listed := r.recorded.Entry(v.Path); listed || !v.Before.Exists() || r.scratch.Holds(v.Path, v.Before) {
			continue
		}
		m, err := r.scratch.ManifestOf(ctx, []string{v.Path}, nil) // no manifest has the file, because git ignores it
		if err != nil {
			return err
		}
		now, _ := m.Entry(v.Path)
		if _, err = r.scratch.Apply(ctx, []workspace.Delta{{Path: v.Path, Before: now, After: v.Before.Entry(v.Path)}}, r.home.OpenObject); err != nil {
			return err
		}
	}
	r.Edits += len(vs)
	done, err := Apply(ctx, r.scratch, r.home, ApplyBegun{Verdicts: vs})
	switch {
	case err != nil:
		return err
	case len(done.Outdated) > 0:
		return fmt.Errorf("other contents than recorded: %s", strings.Join(done.Outdated, ", "))
	}
	for path, why := range done.Denied {
		return fmt.Errorf("%s: %s", path, why)
	}
	return nil
}

// Only Retrace writes in the scratch tree, so this compares only the paths that changed since the previous manifest or that
// edits wrote. Retrace compares the complete tree at the end.
func (r *retracing) compare(ctx context.Context, object string) error {
	first := r.recorded.Name() == ""
	deltas, err := r.recorded.MoveTo(object)
	if err != nil {
		return err
	}
	var paths []string
	want := r.recorded.Manifest()
	if first {
		for _, e := range want {
			paths = append(paths, e.Path)
		}
	} else {
		paths = slices.Collect(maps.Keys(r.written))
		for _, d := range deltas {
			paths = append(paths, d.Path)
		}
		slices.Sort(paths)
		paths, want = slices.Compact(paths), nil
		for _, path := range paths {
			if e, listed := r.recorded.Entry(path); listed {
				want = append(want, e)
			}
		}
	}
	now, err := r.scratch.ManifestOf(ctx, paths, nil)
	if err != nil {
		return err
	}
	list, same := r.differences(now.Diff(want), deltas, first)
	if _, err := r.scratch.Apply(ctx, list, r.home.OpenObject); err != nil {
		return err
	}
	if same {
		r.Trees++
	}
	maps.DeleteFunc(r.written, func(path string, _ bool) bool { _, listed := r.recorded.Entry(path); return listed })
	r.commands = r.serving
	return nil
}

// differences returns what must be restored in the scratch tree, and whether only commands and the loop's own files explain it.
// deltas are the differences between the manifest and the previous one.
func (r *retracing) differences(found, deltas []workspace.Delta, first bool) (list []workspace.Delta, same bool) {
	same = true
	rulesChanged := slices.ContainsFunc(deltas, func(d workspace.Delta) bool { return path.Base(d.Path) == ".gitignore" })
	for _, d := range found {
		own, stored := r.own != nil && r.own(d.Path), r.home.Has(d.After.Digest)
		switch {
		case d.Before.SameState(d.After):
			continue
		case d.Op() == workspace.Removed && (r.written[d.Path] || rulesChanged && !r.commands):
			r.ignored[d.Path] = true // by git, and by the manifest
			continue
		case d.Op() != workspace.Removed && own && !stored:
			r.ignored[d.Path] = true // the loop's own files are not stored
			continue
		case d.After.Note != "", d.After.Kind == workspace.Other, d.After.Kind == workspace.Regular && !stored:
			r.Lost = append(r.Lost, d.Path)
			continue
		case rulesChanged && d.Op() == workspace.Added:
		case !r.commands && !first && !own:
			same = false
			r.Unexplained = append(r.Unexplained, d.Path)
		}
		list = append(list, d)
	}
	return list, same
}
