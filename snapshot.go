package hone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// Manifest is the state of the tree: the one that was taken at the round's
// beginning, where nothing was changed since.
func (r *Run) Manifest(ctx context.Context) (workspace.Manifest, error) {
	if r.stale || r.last == nil {
		if err := r.snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return r.last, nil
}

// manifest takes a snapshot and keeps its manifest as an object.
func (r *Run) manifest(ctx context.Context) (object, tree string, err error) {
	if r.played != nil {
		return r.recordedManifest(ctx)
	}
	if err := r.snapshot(ctx); err != nil {
		return "", "", err
	}
	object, err = r.store()
	return object, r.last.Digest(), err
}

// store keeps the newest manifest as an object: mostly as what differs from
// the one that was kept before it.
func (r *Run) store() (object string, err error) {
	home := r.Journal.Home()
	if !home.Has(r.stored.Name) {
		r.stored = workspace.Stored{}
	}
	r.stored, err = r.stored.Next(r.last, home.Put)
	return r.stored.Name, err
}

// snapshot looks at the tree, and keeps the contents of all that is new in it.
func (r *Run) snapshot(ctx context.Context) error {
	known := r.last
	if known == nil && r.Before != nil {
		known = r.Before()
	}
	m, err := r.Tree.Manifest(ctx, known)
	if err != nil {
		return fmt.Errorf("look at the tree: %w", err)
	}
	if m, err = r.keepContents(ctx, m); err != nil {
		return fmt.Errorf("keep the tree's contents: %w", err)
	}
	r.last, r.stale = m, false
	return nil
}

// keepContents stores the files of a manifest that are not stored yet, so that
// every tree that was looked at can be had back.
func (r *Run) keepContents(ctx context.Context, m workspace.Manifest) (workspace.Manifest, error) {
	fresh := map[string]bool{}
	for _, d := range r.last.Diff(m) {
		if d.After.Digest != "" && d.After.Digest != d.Before.Digest {
			fresh[d.Path] = true
		}
	}
	if len(fresh) == 0 {
		return m, nil
	}
	home := r.Journal.Home()
	pack, err := home.NewPack()
	if err != nil {
		return nil, err
	}
	stored := int64(0)
	keep := func(in io.Reader) (string, int64, error) {
		name, size, err := pack.Add(in)
		stored += size
		return name, size, err
	}
	m, err = r.Tree.Keep(ctx, m, func(e workspace.Entry) bool {
		return fresh[e.Path] && (r.Largest == 0 || e.Size <= r.Largest) && !home.Has(e.Digest) && !r.hasKey(e.Path)
	}, keep)
	if err != nil {
		return nil, errors.Join(err, pack.Discard())
	}
	if err := pack.Close(); err != nil || stored < worthSaying {
		return m, err
	}
	return m, r.Notice(fmt.Sprintf("%d MB of files were copied into .hone, so that they can be had back; [undo] max-file in .config/hone.toml leaves large ones out", stored>>20))
}

// worthSaying is how many bytes of contents are kept at once before a person is
// told of the room that they take.
const worthSaying = 256 << 20

// hasKey reports whether a file holds a provider's key: such a one is kept
// nowhere (ruling G6). One that is too large to be read whole is no text with a
// key.
func (r *Run) hasKey(path string) bool {
	if r.Redact == nil {
		return false
	}
	b, _, err := r.Tree.Read(path)
	return err == nil && r.clean(string(b)) != string(b)
}

// recalled reads a manifest back.
func (r *Run) recalled(object string) (workspace.Manifest, error) {
	return manifestIn(r.Journal.Home(), object)
}

// LastManifest is the newest manifest that a run has on record, for
// [Run.Before]. It is nil where the run has none, where it cannot be read, and
// where the run was of another folder than the home's.
func LastManifest(home *journal.Home, run string) workspace.Manifest {
	events, err := home.Read(run)
	if err != nil || len(events) == 0 {
		return nil
	}
	var s Start
	if events[0].Type != history.TypeStart || events[0].Decode(&s) != nil || s.Dir != filepath.Dir(home.Dir()) {
		return nil
	}
	for _, e := range slices.Backward(events) {
		var seen history.CommandBegun
		if e.Type == history.TypeStart || e.Decode(&seen) != nil || seen.Manifest == "" {
			continue
		}
		m, _ := manifestIn(home, seen.Manifest) // nil with an error
		return m
	}
	return nil
}

// ours is a manifest without the files that the loop writes for people.
func (r *Run) ours(m workspace.Manifest) workspace.Manifest {
	if r.Own == nil {
		return m
	}
	var kept workspace.Manifest
	for _, e := range m {
		if !r.Own(e.Path) {
			kept = append(kept, e)
		}
	}
	return kept
}

// put keeps an object; where the run is gone through once more it is only
// named.
func (r *Run) put(b []byte) (name string, err error) {
	if r.played != nil {
		return sum(b), nil
	}
	return r.Journal.Home().Put(b)
}
