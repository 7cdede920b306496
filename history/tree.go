package history

import (
	"context"
	"fmt"
	"io"

	"hone/journal"
	"hone/workspace"
)

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
