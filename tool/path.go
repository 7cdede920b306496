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
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// maxPath limits a path or a pattern, in bytes.
const maxPath = 4096

// It refuses every path outside the tree, even if nothing exists there (ruling G5).
func locate(tree *workspace.Tree, p string) (string, error) {
	rel, err := relPath(tree, p)
	if err != nil {
		return "", err
	}
	return cleanPath(tree, rel)
}

// The tree may have closed the path, or another one is meant.
func cleanPath(tree *workspace.Tree, rel string) (string, error) {
	p, err := treepath.Clean(rel)
	if err == nil {
		err = tree.Refusal(p)
	}
	if err == nil {
		err = tree.CheckNew(rel)
	}
	return p, err
}

// It returns "" for the tree's root.
func locateDir(tree *workspace.Tree, p string) (string, error) {
	if p == "" {
		return "", nil
	}
	rel, err := relPath(tree, p)
	if err != nil {
		return "", err
	}
	for strings.HasSuffix(rel, "/") || strings.HasSuffix(rel, "/.") {
		rel = strings.TrimSuffix(strings.TrimSuffix(rel, "."), "/")
	}
	if rel == "" || path.Clean(rel) == "." {
		return "", nil
	}
	return cleanPath(tree, rel)
}

// It keeps a final slash.
func relPath(tree *workspace.Tree, p string) (string, error) {
	p = filepath.ToSlash(p)
	refuse := func(reason string) error { return &treepath.RefusedError{Path: clip(p, 200), Reason: reason} }
	switch {
	case len(p) > maxPath:
		return "", refuse(fmt.Sprintf("a path of %d bytes is longer than %d", len(p), maxPath))
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "", refuse(`".." is not allowed, because files outside the working directory cannot be used; use a path relative to it`)
	case !filepath.IsAbs(filepath.FromSlash(p)):
		return p, nil
	}
	rel, err := filepath.Rel(tree.Dir(), filepath.FromSlash(p))
	rel = filepath.ToSlash(rel)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", refuse("it is outside the working directory, and files there cannot be used; use a path relative to it")
	}
	if strings.HasSuffix(p, "/") {
		rel += "/"
	}
	return rel, nil
}

// It is a [*CallError], or that of the context.
func readError(ctx context.Context, tree *workspace.Tree, guard *secret.Guard, p string, err error) error {
	var refused *treepath.RefusedError
	var large *workspace.TooLargeError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		return &CallError{Text: clip(refused.Error(), 400), Refused: true}
	case errors.As(err, &large):
		return wrong("%s is too large: it has %d bytes, the limit is %d", p, large.Size, large.Max)
	case errors.Is(err, fs.ErrNotExist):
		return wrong("file not found: %s%s", p, guard.Redact(sameNames(ctx, tree, p)))
	}
	return wrong("%v", err)
}

// Up to three files have the path's name in another directory.
func sameNames(ctx context.Context, tree *workspace.Tree, p string) string {
	files, err := tree.Files(ctx)
	if err != nil {
		return ""
	}
	var found []string
	for _, f := range files {
		if treepath.Fold(path.Base(f.Path)) == treepath.Fold(path.Base(p)) && len(found) < 3 {
			found = append(found, f.Path)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; similar files: " + strings.Join(found, ", ")
}

// File is a file that a model named.
type File struct {
	Path    string // clean, relative to the tree
	Content []byte
	Digest  string // of the contents; a result that shows them reports it in Shown
}

// ReadFile reads a file that a model named, by the rules of the tool read: the path
// is relative to the tree or absolute in it, symlinks are not followed, and the guard
// decides what is withheld (ruling G8). A nil guard withholds nothing.
//
// The error is a [*CallError] if the model may not read the file, or if it cannot be
// read; otherwise it is the context's.
func ReadFile(ctx context.Context, tree *workspace.Tree, guard *secret.Guard, name string) (File, error) {
	p, err := locate(tree, name)
	if err != nil {
		return File{}, readError(ctx, tree, guard, name, err)
	}
	content, image, err := tree.Read(p)
	if err != nil {
		return File{}, readError(ctx, tree, guard, p, err)
	}
	if reason, ok := guard.Withheld(p, content); ok {
		return File{}, wrong("%s is withheld because it may contain secrets: %s. Work without its contents", p, reason)
	}
	return File{Path: p, Content: content, Digest: image.Digest}, nil
}
