package hone

import (
	"context"
	"fmt"

	"hone/history"
	"hone/workspace"
)

// Manifest returns the current manifest of the tree. It reads the tree only if
// something may have changed it since the last manifest.
func (r *Run) Manifest(ctx context.Context) (workspace.Manifest, error) {
	if r.stale || r.last == nil {
		if err := r.snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return r.last, nil
}

// storeManifest stores the newest manifest as an object.
func (r *Run) storeManifest() (object string, err error) {
	r.stored, err = history.KeepManifest(r.Journal.Home(), r.stored, r.last)
	return r.stored.Name, err
}

// snapshot takes a manifest of the tree, and stores the contents of files that
// are new in it.
func (r *Run) snapshot(ctx context.Context) error {
	known := r.last
	if known == nil && r.Before != nil {
		known = r.Before()
	}
	m, err := r.Tree.Manifest(ctx, known)
	if err != nil {
		return fmt.Errorf("read the tree: %w", err)
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
	if err != nil || stored < noticeBytes {
		return m, err
	}
	return m, r.Notice(fmt.Sprintf("%d MB of files were copied into .hone, so that they can be restored; [undo] max-file in .config/hone.toml leaves large ones out", stored>>20))
}

// noticeBytes is how many bytes must be stored at once for the user to be told
// about the space that they take.
const noticeBytes = 256 << 20

// hasKey reports whether a file contains a provider's key: its contents are never
// stored (ruling G6). A file that is too large to be read is not a text with a
// key.
func (r *Run) hasKey(path string) bool {
	if r.HasKey == nil {
		return false
	}
	b, _, err := r.Tree.Read(path)
	return err == nil && r.HasKey(b)
}

// readManifest reads a recorded manifest.
func (r *Run) readManifest(object string) (workspace.Manifest, error) {
	return history.ReadManifest(object, r.Journal.Home().Get)
}

// withoutOwn returns a manifest without the loop's own files.
func (r *Run) withoutOwn(m workspace.Manifest) workspace.Manifest {
	if r.Own == nil {
		return m
	}
	var others workspace.Manifest
	for _, e := range m {
		if !r.Own(e.Path) {
			others = append(others, e)
		}
	}
	return others
}
