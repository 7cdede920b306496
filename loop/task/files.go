package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"hone/internal/render"
	"hone/workspace"
)

// The limits of the list of files in a session's first prompt.
const (
	maxFiles     = 200
	maxFilesText = 8 << 10 // bytes
)

// filesText lists the files of the tree, so that the executor need not ask for them:
// all of them, or those that are the least deep. It is empty if there are none.
func (l Loop) filesText(ctx context.Context, tree *workspace.Tree) (string, error) {
	files, err := tree.Files(ctx)
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(f workspace.File) bool { return Own(f.Path) })
	total := len(files)
	if total > maxFiles {
		slices.SortStableFunc(files, func(a, b workspace.File) int {
			return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
		})
		files = files[:maxFiles]
	}
	var names strings.Builder
	listed := 0
	for _, f := range files {
		name := render.Line(l.Guard.Redact(f.Path))
		if _, withheld := l.Guard.WithheldName(f.Path); withheld {
			name += " (withheld)"
		}
		if names.Len()+len(name) > maxFilesText {
			break
		}
		names.WriteString("  " + name + "\n")
		listed++
	}
	switch {
	case total == 0:
		return "", nil
	case listed < total:
		return fmt.Sprintf("Files (%d of %d; the others are in deeper directories):\n%s", listed, total, names.String()), nil
	}
	return "Files:\n" + names.String(), nil
}
