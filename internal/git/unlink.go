package git

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
)

// Unlink makes the index around a directory forget that the directory is a repository,
// unless HEAD knows it too. It does nothing if no repository is around it. It changes
// nothing else, and git runs nothing that the repositories name.
func Unlink(ctx context.Context, dir string) error {
	r, err := OpenAt(filepath.Dir(dir))
	if errors.Is(err, ErrNotRepository) {
		return nil
	}
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(r.root, dir)
	if err != nil {
		return err
	}
	path := filepath.ToSlash(rel)
	const link = "160000 "
	staged, err := r.run(ctx, call{args: []string{"ls-files", "-z", "--stage", "--", path}})
	if err != nil || !bytes.HasPrefix(staged, []byte(link)) {
		return err
	}
	if known, err := r.run(ctx, call{args: []string{"ls-tree", "-z", "HEAD", "--", path}}); err == nil && bytes.HasPrefix(known, []byte(link)) {
		return nil
	}
	_, err = r.run(ctx, call{args: []string{"update-index", "-z", "--force-remove", "--stdin"}, stdin: nulTerminated("", []string{path})})
	return err
}
