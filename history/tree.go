package history

import (
	"context"
	"fmt"
	"io"

	"hone/journal"
	"hone/workspace"
	"hone/workspace/restore"
)

// WriteTree writes the files of a recorded manifest into an empty tree, from the contents
// that a home stores. If some are not stored, it writes nothing.
func WriteTree(ctx context.Context, tree *workspace.Tree, m workspace.Manifest, home *journal.Home) error {
	var list []restore.Target
	var lost []string
	for _, e := range m {
		if e.Kind == workspace.Other || e.Note != "" || e.Kind == workspace.Regular && !home.Has(e.Digest) {
			lost = append(lost, e.Path)
		}
		list = append(list, restore.Target{Path: e.Path, Want: e, From: []workspace.Entry{{}}})
	}
	if len(lost) > 0 {
		return fmt.Errorf("the contents of %d files were not stored, such as %s", len(lost), lost[0])
	}
	_, err := restore.Paths(ctx, tree, list, func(digest string) (io.ReadCloser, error) { return home.OpenObject(digest) })
	return err
}
