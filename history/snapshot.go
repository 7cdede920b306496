package history

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"hone/journal"
	"hone/workspace"
)

// TakeManifest takes a manifest of the tree and stores the contents of the files that
// differ from those in an earlier one, as [KeepContents] does. Most files are read only
// once. known is for [workspace.Tree.Manifest]. skip also gets a file's contents, or nil
// if they were not read; it may be called again without them.
func TakeManifest(ctx context.Context, tree *workspace.Tree, j *journal.Journal, before, known workspace.Manifest, skip func(e workspace.Entry, contents []byte) bool) (workspace.Manifest, error) {
	k := contents{journal: j, before: before, skip: skip}
	m, err := tree.ManifestReading(ctx, known, k.keep)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return k.keepRest(ctx, tree, m)
}

// KeepContents stores the contents of the files in manifest m that differ from
// those in an earlier one, which may be nil, so that the tree can be restored.
// skip reports whether to leave out a file; nil leaves out none. KeepContents
// returns the manifest with the digests that it computed.
func KeepContents(ctx context.Context, tree *workspace.Tree, j *journal.Journal, before, m workspace.Manifest, skip func(workspace.Entry) bool) (workspace.Manifest, error) {
	k := contents{journal: j, before: before, skip: func(e workspace.Entry, _ []byte) bool { return skip != nil && skip(e) }}
	return k.keepRest(ctx, tree, m)
}

type contents struct {
	journal *journal.Journal
	before  workspace.Manifest
	skip    func(e workspace.Entry, contents []byte) bool
}

// contents are those of the file if they were read; old is its entry in the earlier manifest, or zero.
func (k *contents) isFresh(e, old workspace.Entry, contents []byte) bool {
	return e.Digest != "" && e.Digest != old.Digest && !k.journal.Has(e.Digest) && !k.skip(e, contents)
}

func (k *contents) keep(e workspace.Entry, contents []byte) error {
	old, _ := k.before.Entry(e.Path)
	if !k.isFresh(e, old, contents) {
		return nil
	}
	_, _, err := k.journal.Add(bytes.NewReader(contents))
	return err
}

func (k *contents) keepRest(ctx context.Context, tree *workspace.Tree, m workspace.Manifest) (workspace.Manifest, error) {
	before := k.before // from the file on that is asked about; a search for each file would take longer
	m, err := tree.Store(ctx, m, func(e workspace.Entry) bool {
		for len(before) > 0 && before[0].Path < e.Path {
			before = before[1:]
		}
		old := workspace.Entry{}
		if len(before) > 0 && before[0].Path == e.Path {
			old = before[0]
		}
		return k.isFresh(e, old, nil)
	}, k.journal.Add)
	if err != nil {
		return nil, fmt.Errorf("store the tree's contents: %w", err)
	}
	return m, nil
}

// KeepManifest stores a manifest as an object, unless it equals the one that was stored
// before it.
func KeepManifest(j *journal.Journal, before workspace.Stored, m workspace.Manifest) (workspace.Stored, error) {
	if !j.Has(before.Name) {
		before = workspace.Stored{}
	}
	return before.StoreNext(m, j.PutNext)
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

// WriteTree writes the files of a recorded manifest into an empty tree, from the contents
// that a home stores. If some are nowhere, it writes nothing.
func WriteTree(ctx context.Context, tree *workspace.Tree, m workspace.Manifest, home *journal.Home) error {
	var lost []string
	for _, e := range m {
		if e.Kind == workspace.Other || e.Note != "" || e.Kind == workspace.Regular && !home.Has(e.Digest) {
			lost = append(lost, e.Path)
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("the contents of %d files were not stored, such as %s", len(lost), lost[0])
	}
	_, err := tree.Apply(ctx, workspace.Manifest(nil).Diff(m), func(digest string) (io.ReadCloser, error) { return home.OpenObject(digest) })
	return err
}
