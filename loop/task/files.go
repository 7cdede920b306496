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
	if len(files) == 0 {
		return "", nil
	}
	text, listed := l.namesOf(files)
	if listed == len(files) {
		return "Files:\n" + text, nil
	}
	slices.SortStableFunc(files, func(a, b workspace.File) int {
		return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
	})
	text, listed = l.namesOf(files)
	return fmt.Sprintf("Files (%d of %d; none of the others is less deep):\n%s", listed, len(files), text), nil
}

// namesOf lists the first of the files, one a line, up to the limits.
func (l Loop) namesOf(files []workspace.File) (text string, listed int) {
	var names strings.Builder
	for _, f := range files[:min(len(files), maxFiles)] {
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
	return names.String(), listed
}
