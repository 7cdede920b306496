package history

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"hone/journal"
	"hone/workspace"
)

// WriteTree writes the files of a recorded manifest into an empty tree, from the contents
// that a home stores, or that others holds by their digest. If some are nowhere, it writes nothing.
func WriteTree(ctx context.Context, tree *workspace.Tree, m workspace.Manifest, home *journal.Home, others map[string][]byte) error {
	var lost []string
	for _, e := range m {
		_, other := others[e.Digest]
		if e.Kind == workspace.Other || !other && (e.Note != "" || e.Kind == workspace.Regular && !home.Has(e.Digest)) {
			lost = append(lost, e.Path)
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("the contents of %d files were not stored, such as %s", len(lost), lost[0])
	}
	_, err := tree.Apply(ctx, workspace.Manifest(nil).Diff(m), func(digest string) (io.ReadCloser, error) {
		if content, ok := others[digest]; ok {
			return io.NopCloser(bytes.NewReader(content)), nil
		}
		return home.OpenObject(digest)
	})
	return err
}
