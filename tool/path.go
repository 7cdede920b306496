package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/workspace"
)

// maxPath is the most bytes that a path or pattern may have.
const maxPath = 4096

// locate makes the tree's spelling of a file's path out of what a model wrote.
// An absolute path inside the tree is made relative; every other path that
// leads out of it is refused, whatever stands there (ruling G5).
func locate(tree *workspace.Tree, p string) (string, error) {
	rel, err := relative(tree, p)
	if err != nil {
		return "", err
	}
	return workspace.Clean(rel)
}

// locateDir is locate for a directory; the tree's root is the empty string.
func locateDir(tree *workspace.Tree, p string) (string, error) {
	if p == "" {
		return "", nil
	}
	rel, err := relative(tree, p)
	if err != nil {
		return "", err
	}
	for strings.HasSuffix(rel, "/") || strings.HasSuffix(rel, "/.") {
		rel = strings.TrimSuffix(strings.TrimSuffix(rel, "."), "/")
	}
	if rel == "" || path.Clean(rel) == "." {
		return "", nil
	}
	return workspace.Clean(rel)
}

// relative takes the root off an absolute path. A slash at the end stays.
func relative(tree *workspace.Tree, p string) (string, error) {
	p = filepath.ToSlash(p)
	refuse := func(reason string) error { return &workspace.RefusedError{Path: clip(p, 200), Reason: reason} }
	switch {
	case len(p) > maxPath:
		return "", refuse(fmt.Sprintf("a path of %d bytes is longer than %d", len(p), maxPath))
	case p == "~", strings.HasPrefix(p, "~/"):
		return "", refuse("the path escapes the working directory: ~ is not expanded, and the home folder lies outside")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "", refuse(`the path escapes the working directory, or could: ".." is not allowed`)
	case !filepath.IsAbs(filepath.FromSlash(p)):
		return p, nil
	}
	rel, err := filepath.Rel(tree.Dir(), filepath.FromSlash(p))
	rel = filepath.ToSlash(rel)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", refuse("the path escapes the working directory; give it relative to that")
	}
	if strings.HasSuffix(p, "/") {
		rel += "/"
	}
	return rel, nil
}

// unreadable words for the model why a file was not read.
func unreadable(ctx context.Context, tree *workspace.Tree, p string, err error) Result {
	var refused *workspace.RefusedError
	var large *workspace.TooLargeError
	switch {
	case errors.As(err, &refused):
		return Failure(clip(refused.Error(), 400))
	case errors.As(err, &large):
		return Failure(fmt.Sprintf("%s: its %d bytes are more than the %d that are read", p, large.Size, large.Max))
	case errors.Is(err, fs.ErrNotExist):
		return Failure(fmt.Sprintf("file not found: %s%s", p, namesakes(ctx, tree, p)))
	}
	return Failure(err.Error())
}

// namesakes names a few listed files of the same name, for a path that names
// none.
func namesakes(ctx context.Context, tree *workspace.Tree, p string) string {
	files, err := tree.Files(ctx)
	if err != nil {
		return ""
	}
	var found []string
	for _, f := range files {
		if workspace.Fold(path.Base(f.Path)) == workspace.Fold(path.Base(p)) && len(found) < 3 {
			found = append(found, f.Path)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; there is " + strings.Join(found, ", ")
}

// withheld words for the model that a file is not shown.
func withheld(p, reason string) Result {
	return Failure(fmt.Sprintf("%s is withheld, because it may hold secrets: %s. Work without its contents", p, reason))
}
