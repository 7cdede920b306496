package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// ErrNotRepository says that neither a directory nor any above it is the top
// of a work tree.
var ErrNotRepository = errors.New("not in a git repository")

// Root is the top of the work tree that dir stands in: the nearest directory,
// from dir upwards, with a git directory or a file that points to one (a linked
// work tree, a submodule). The result is absolute and free of symbolic links;
// an empty dir is the working directory. It starts no process.
func Root(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the git root: %w", err)
	}
	start, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("find the git root: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		if isTop(at) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%w: no .git in %s or above it", ErrNotRepository, start)
		}
	}
}

// isTop reports whether dir holds what git itself would take for a repository:
// an empty directory named .git is none.
func isTop(dir string) bool {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return false
	}
	if info.IsDir() {
		_, err := os.Lstat(filepath.Join(dotGit, "HEAD"))
		return err == nil
	}
	return info.Mode().IsRegular() && pointsAway(dotGit)
}

// pointsAway reports whether a file named .git says where the git directory is.
func pointsAway(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len("gitdir:"))
	_, err = f.Read(head)
	return err == nil && string(head) == "gitdir:"
}

// Repo is one work tree and its repository.
type Repo struct {
	git   *Git
	root  string
	ready atomic.Pointer[chan preparation] // of Prepare; nil: nothing is prepared
}

// Open finds the work tree that dir stands in; see [Root]. It starts no
// process.
func (g *Git) Open(dir string) (*Repo, error) {
	root, err := Root(dir)
	if err != nil {
		return nil, err
	}
	return &Repo{git: g, root: root}, nil
}

// run calls git at the top of the work tree, and holds it to that top: a
// core.worktree in the repository's configuration does not move it, and a
// broken .git does not make it go on upwards.
func (r *Repo) run(ctx context.Context, c call) ([]byte, error) {
	c.dir = r.root
	c.env = append([]string{
		"GIT_WORK_TREE=" + r.root,
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(r.root),
	}, c.env...)
	return r.git.run(ctx, c)
}

// Entry is one path that the repository does not ignore.
type Entry struct {
	// Path is relative to the root, with slashes, byte for byte as git has it:
	// it need not be UTF-8.
	Path string
	// Untracked says that git does not know the path yet.
	Untracked bool
	// Nested says that the path is a directory with a repository of its own, a
	// submodule or not, which is not looked into.
	Nested bool
}

// List is everything below dir that is tracked, or neither tracked nor
// ignored, in the order of the paths' bytes. A tracked file that was deleted
// is still in it, and a path stands once even where a merge left several
// versions. dir is relative to the root; "." or the empty one is all of it.
func (r *Repo) List(ctx context.Context, dir string) ([]Entry, error) {
	rel, err := r.relative(dir)
	if err != nil {
		return nil, err
	}
	args := []string{"ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard", "--", rel}
	out, err := r.run(ctx, call{args: args})
	if err != nil {
		return nil, err
	}
	return parseList(out)
}

// relative is a path as git wants it, which must lie in the work tree.
func (r *Repo) relative(path string) (string, error) {
	if path == "" {
		path = "."
	}
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return "", fmt.Errorf("%w: %q is not a path below the git root", fs.ErrInvalid, path)
	}
	return path, nil
}

// parseList reads records of the form "? PATH" and "H MODE OBJECT STAGE\tPATH".
func parseList(out []byte) ([]Entry, error) {
	entries := make([]Entry, 0, bytes.Count(out, []byte{0}))
	for record := range strings.SplitSeq(string(out), "\x00") {
		if record == "" {
			continue
		}
		e, err := parseEntry(record)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return once(entries), nil
}

// gitlink is the mode of a commit of another repository.
const gitlink = "160000 "

func parseEntry(record string) (Entry, error) {
	if path, ok := strings.CutPrefix(record, "? "); ok {
		name := strings.TrimSuffix(path, "/")
		return Entry{Path: name, Untracked: true, Nested: name != path}, nil
	}
	meta, path, ok := strings.Cut(record, "\t")
	if !ok || len(meta) < 2 || path == "" {
		return Entry{}, fmt.Errorf("git ls-files: a line that cannot be read: %q", record)
	}
	return Entry{Path: path, Nested: strings.HasPrefix(meta[2:], gitlink)}, nil
}

// once keeps the first of several entries with one path. They are sorted.
func once(entries []Entry) []Entry {
	kept := entries[:0]
	for _, e := range entries {
		if len(kept) == 0 || kept[len(kept)-1].Path != e.Path {
			kept = append(kept, e)
		}
	}
	return kept
}
