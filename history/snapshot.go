package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"hone/journal"
	"hone/workspace"
)

// KeepContents stores the contents of the files in manifest m that differ from
// those in an earlier one, which may be nil, so that the tree can be restored.
// skip reports whether to leave out a file; nil leaves out none. KeepContents
// returns the manifest with the digests that it computed, and how many bytes it
// stored.
func KeepContents(ctx context.Context, tree *workspace.Tree, home *journal.Home, before, m workspace.Manifest, skip func(workspace.Entry) bool) (workspace.Manifest, int64, error) {
	fresh := map[string]bool{}
	for _, d := range before.Diff(m) {
		if d.After.Digest != "" && d.After.Digest != d.Before.Digest {
			fresh[d.Path] = true
		}
	}
	if len(fresh) == 0 {
		return m, 0, nil
	}
	pack, err := home.NewPack()
	if err != nil {
		return nil, 0, fmt.Errorf("store the tree's contents: %w", err)
	}
	stored := int64(0)
	keep := func(in io.Reader) (string, int64, error) {
		name, size, err := pack.Add(in)
		stored += size
		return name, size, err
	}
	wanted := func(e workspace.Entry) bool {
		return fresh[e.Path] && !pack.Has(e.Digest, e.Size) && (skip == nil || !skip(e))
	}
	if m, err = tree.Store(ctx, m, wanted, keep); err != nil {
		return nil, 0, fmt.Errorf("store the tree's contents: %w", errors.Join(err, pack.Discard()))
	}
	if err := pack.Close(); err != nil {
		return nil, 0, fmt.Errorf("store the tree's contents: %w", err)
	}
	return m, stored, nil
}

// KeepManifest stores a manifest as an object, usually as its difference to the
// one that was stored before it.
func KeepManifest(home *journal.Home, before workspace.Stored, m workspace.Manifest) (workspace.Stored, error) {
	if !home.Has(before.Name) {
		before = workspace.Stored{}
	}
	return before.StoreNext(m, home.Put)
}

// ReadManifest reads a manifest from its object.
func ReadManifest(object string, get Get) (workspace.Manifest, error) {
	stored, err := workspace.ReadManifest(object, get)
	return stored.Manifest, err
}

// LastManifest returns the newest manifest of a run. It is nil if the run has
// none or cannot be read, and if it was a run of a directory other than the
// home's.
func LastManifest(home *journal.Home, run string) workspace.Manifest {
	events, err := home.Read(run)
	if err != nil || len(events) == 0 {
		return nil
	}
	start, ok := Decode(events[0]).Payload.(Start)
	if !ok || start.Dir != home.Workspace() {
		return nil
	}
	for _, e := range slices.Backward(events) {
		if object := Decode(e).Manifest(); object != "" {
			m, _ := ReadManifest(object, home.Get) // nil with an error
			return m
		}
	}
	return nil
}
