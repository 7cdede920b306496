package git

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// CommitID returns the id of the commit that a revision names, such as HEAD~3, a tag or
// the beginning of an id. If it names none, the error wraps [fs.ErrNotExist].
func (r *Repo) CommitID(ctx context.Context, revision string) (string, error) {
	if strings.HasPrefix(revision, "-") {
		return "", fmt.Errorf("%q is not a revision: %w", revision, fs.ErrNotExist)
	}
	out, err := r.run(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", revision + "^{commit}"}, emptyExit: 1})
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if id == "" {
		return "", fmt.Errorf("there is no commit %q in %s: %w", revision, r.root, fs.ErrNotExist)
	}
	return id, nil
}

// Dirty reports whether the work tree differs from the last commit, or has files that git
// neither tracks nor ignores.
func (r *Repo) Dirty(ctx context.Context) (bool, error) {
	filtersOff, err := r.filtersOff(ctx)
	if err != nil {
		return false, err
	}
	out, err := r.run(ctx, call{args: []string{"status", "--porcelain", "-z", "--ignore-submodules=all"}, env: filtersOff})
	return len(out) > 0, err
}

// Export writes the files of a commit into an existing empty directory, as a checkout
// would, but without content filters: files of Git LFS stay pointers. It reads the
// repository and changes nothing in it, not even its index. A submodule becomes an empty
// directory.
func (r *Repo) Export(ctx context.Context, commit, dir string) (err error) {
	env, done, err := r.scratchIndex(ctx, commit)
	if err != nil {
		return err
	}
	defer done()
	_, err = r.runOwn(ctx, call{args: []string{"checkout-index", "--all", "--quiet", "--prefix=" + filepath.ToSlash(dir) + "/"}, env: env})
	return err
}
