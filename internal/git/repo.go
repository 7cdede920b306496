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

	"hone/internal/transient"
)

// ErrNotRepository says that neither a directory nor any of its parents is the
// top of a work tree.
var ErrNotRepository = errors.New("not in a git repository")

// Top returns the top of the work tree that contains dir: the nearest
// directory, from dir upwards, with a git directory or a file that points to
// one (a linked work tree or a submodule). The result is absolute and has no
// symbolic links. An empty dir means the working directory. Top starts no
// process.
func Top(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the git root: %w", err)
	}
	start, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("find the git root: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		if found, err := hasRepository(at); err != nil {
			return "", fmt.Errorf("find the git root: %w", err)
		} else if found {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%w: no .git in %s or above it", ErrNotRepository, start)
		}
	}
}

// An empty directory named .git does not count. An error may pass.
func hasRepository(dir string) (found bool, err error) {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case err != nil:
	case info.IsDir():
		_, err = os.Lstat(filepath.Join(dotGit, "HEAD"))
		found = err == nil
	case info.Mode().IsRegular():
		found, err = isGitFile(dotGit)
	}
	if transient.Is(err) {
		return false, err
	}
	return found, nil
}

func isGitFile(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len("gitdir:"))
	_, err = f.Read(head)
	return err == nil && string(head) == "gitdir:", err
}

// Repo is one work tree and its repository.
type Repo struct {
	git  *Git
	root string
}

// Open opens the work tree that contains dir; see [Root].
func (g *Git) Open(dir string) (*Repo, error) {
	root, err := rootBy(dir, func() (*Git, error) { return g, nil })
	if err != nil {
		return nil, err
	}
	return &Repo{git: g, root: root}, nil
}

// OpenAt opens the work tree that contains dir with the git program that [Find]
// finds for this tree. The error is that of [Root] or of Find.
func OpenAt(dir string) (*Repo, error) {
	root, err := Root(dir)
	if err != nil {
		return nil, err
	}
	g, err := Find(dir)
	if err != nil {
		return nil, err
	}
	return &Repo{git: g, root: root}, nil
}

// The top is fixed: a core.worktree setting in the repository does not move it, and with a broken .git git does not continue
// upwards.
func (r *Repo) run(ctx context.Context, c call) ([]byte, error) {
	c.dir = r.root
	c.env = append([]string{
		"GIT_WORK_TREE=" + r.root,
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(r.root),
	}, c.env...)
	return r.git.run(ctx, c)
}

// Tracks reports whether git tracks anything at or below a path, which is absolute
// and has no symbolic links.
func (r *Repo) Tracks(ctx context.Context, path string) (bool, error) {
	below, err := filepath.Rel(r.root, path)
	if err == nil {
		below, err = r.relativePath(filepath.ToSlash(below))
	}
	if err != nil {
		return false, err
	}
	out, err := r.run(ctx, call{args: []string{"ls-files", "-z", "--", below}})
	return len(out) > 0, err
}

// Entry is one path that the repository does not ignore.
type Entry struct {
	// Path is relative to the root, with slashes, in the bytes that git stores.
	// It may not be UTF-8.
	Path string
	// Untracked says that git does not track the path yet.
	Untracked bool
	// Nested says that the path is a directory with its own repository, a
	// submodule or not. Its contents are not listed.
	Nested bool
}

// List returns all paths below dir that are tracked or not ignored, sorted by
// bytes. It includes tracked files that were deleted, and returns a path once
// even if a merge left several versions. dir is relative to the root; "." or ""
// means the root.
func (r *Repo) List(ctx context.Context, dir string) ([]Entry, error) {
	rel, err := r.relativePath(dir)
	if err != nil {
		return nil, err
	}
	args := []string{"ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard", "--", rel}
	out, err := r.run(ctx, call{args: args})
	if err != nil {
		return nil, err
	}
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
	return slices.CompactFunc(entries, func(a, b Entry) bool { return a.Path == b.Path }), nil
}

func (r *Repo) relativePath(path string) (string, error) {
	if path == "" {
		path = "."
	}
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return "", fmt.Errorf("%w: %q is not a path below the git root", fs.ErrInvalid, path)
	}
	return path, nil
}

// gitlink is the mode of a submodule's commit.
const gitlink = "160000 "

// A record has the form "? PATH" or "H MODE OBJECT STAGE\tPATH".
func parseEntry(record string) (Entry, error) {
	if path, ok := strings.CutPrefix(record, "? "); ok {
		name := strings.TrimSuffix(path, "/")
		return Entry{Path: name, Untracked: true, Nested: name != path}, nil
	}
	meta, path, ok := strings.Cut(record, "\t")
	if !ok || len(meta) < 2 || path == "" {
		return Entry{}, fmt.Errorf("git ls-files: cannot parse the line %q", record)
	}
	return Entry{Path: path, Nested: strings.HasPrefix(meta[2:], gitlink)}, nil
}

// Setting is a setting of a repository's configuration. Name is in lower case,
// except for its middle part.
type Setting struct{ Name, Value string }

// Settings returns the settings in the configuration of the repository, the user and
// the system, and in the files that they include.
func (r *Repo) Settings(ctx context.Context) ([]Setting, error) {
	return parseSettings(r.run(ctx, call{args: listSettings}))
}

// UserSettings is [Repo.Settings] outside of any repository.
func (g *Git) UserSettings(ctx context.Context) ([]Setting, error) {
	dir := filepath.Dir(g.path)
	return parseSettings(g.run(ctx, call{dir: dir, env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}, args: listSettings}))
}

var listSettings = []string{"config", "--includes", "--null", "--list"}

func parseSettings(out []byte, err error) ([]Setting, error) {
	var settings []Setting
	for record := range strings.SplitSeq(string(out), "\x00") {
		if name, value, ok := strings.Cut(record, "\n"); ok {
			settings = append(settings, Setting{name, value})
		}
	}
	return settings, err
}

// IgnoredPaths returns what git ignores below dir: files, and directories that
// are ignored completely, each with a trailing slash and without its contents.
// Paths are relative to the root, with slashes, in the bytes that git stores,
// sorted by bytes. Tracked files are never included. dir is relative to the
// root; "." or "" means the root.
func (r *Repo) IgnoredPaths(ctx context.Context, dir string) ([]string, error) {
	rel, err := r.relativePath(dir)
	if err != nil {
		return nil, err
	}
	out, err := r.run(ctx, call{args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", rel}})
	if err != nil {
		return nil, err
	}
	paths := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(paths)
	paths = slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return p == "" })
	kept := paths[:0]
	for _, p := range paths { // sorted; git lists a directory and the paths below it
		if n := len(kept); n > 0 && strings.HasSuffix(kept[n-1], "/") && strings.HasPrefix(p, kept[n-1]) {
			continue
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// Ignores reports whether git ignores a path, which is absolute and has no symbolic
// links. It never ignores what it tracks.
func (r *Repo) Ignores(ctx context.Context, path string) (bool, error) {
	rel, err := filepath.Rel(r.root, path)
	if err == nil {
		rel, err = r.relativePath(filepath.ToSlash(rel))
	}
	if err != nil {
		return false, err
	}
	const here = "./" // see ignoredAmong
	out, err := r.run(ctx, call{args: []string{"check-ignore", "-z", "--stdin"}, env: []string{"GIT_LITERAL_PATHSPECS=0"},
		stdin: nulTerminated(here, []string{rel}), emptyExit: 1})
	return len(out) > 0, err
}
