package hone

import (
	"context"
	"fmt"

	"hone/history"
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
	r.stored, err = history.KeepManifest(r.Journal.Home(), r.stored, r.last)
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
		return err
	}
	r.last, r.stale = m, false
	return nil
}

// keepContents stores the files of a manifest that are not stored yet, so that
// the tree can be restored.
func (r *Run) keepContents(ctx context.Context, m workspace.Manifest) (workspace.Manifest, error) {
	m, stored, err := history.KeepContents(ctx, r.Tree, r.Journal.Home(), r.last, m, func(e workspace.Entry) bool {
		return r.Largest > 0 && e.Size > r.Largest || r.hasKey(e.Path)
	})
	if err != nil || stored < worthSaying {
		return m, err
	}
	return m, r.Notice(fmt.Sprintf("%d MB of files were copied into .hone, so that they can be restored; [undo] max-file in .config/hone.toml leaves large ones out", stored>>20))
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
	return history.ReadManifest(object, r.Journal.Home().Get)
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
