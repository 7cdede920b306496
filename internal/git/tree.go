package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// found is what a walk of the work tree came upon. Paths are relative to the
// top, with slashes, in the order of the walk.
type found struct {
	files  []string         // regular files and symbolic links
	dirs   map[string]bool  // directories that were entered
	closed map[string]error // directories that could not be read, and why
}

// walk finds every file of the work tree without following a link. Directories
// named .git are left out at any depth, and nothing is asked of them: a
// repository inside is a directory like others. Pipes, sockets and devices are
// left out too, as git cannot hold them.
func (r *Repo) walk(excluded func(string) bool) (found, error) {
	f := found{dirs: map[string]bool{}, closed: map[string]error{}}
	err := filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(r.root, path)
		if relErr != nil {
			return relErr
		}
		return f.visit(filepath.ToSlash(rel), d, err, excluded)
	})
	if err != nil {
		return found{}, fmt.Errorf("list the files to commit: %w", err)
	}
	return f, nil
}

func (f *found) visit(path string, d fs.DirEntry, err error, excluded func(string) bool) error {
	switch {
	case path == ".":
		return err
	case strings.EqualFold(d.Name(), ".git") || excluded(path):
		return skip(d)
	case errors.Is(err, fs.ErrNotExist):
		return nil // it is gone since, and so is not in the commit
	case err != nil:
		f.closed[path] = err
		return nil
	case d.IsDir():
		f.dirs[path] = true
	case d.Type() == 0 || d.Type() == fs.ModeSymlink:
		f.files = append(f.files, path)
	case strings.HasPrefix(d.Name(), ".git"):
		// Git opens .gitignore and its like, and would wait for a pipe for ever.
		return fmt.Errorf("%s is not a regular file, which git would try to read", path)
	}
	return nil
}

// skip leaves out an entry and what lies below it.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// within is a test for the given paths and what lies below them. Case counts
// except where the usual file systems do not tell it.
func within(tops []string) (func(string) bool, error) {
	fold := func(s string) string { return s }
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		fold = strings.ToLower
	}
	var clean []string
	for _, top := range tops {
		local := filepath.FromSlash(top)
		if !filepath.IsLocal(local) || filepath.Clean(local) == "." {
			return nil, fmt.Errorf("%w: %q is not a path below the git root", fs.ErrInvalid, top)
		}
		clean = append(clean, fold(filepath.ToSlash(filepath.Clean(local))))
	}
	return func(path string) bool {
		path = fold(path)
		for _, top := range clean {
			if path == top || strings.HasPrefix(path, top+"/") {
				return true
			}
		}
		return false
	}, nil
}

// record is one entry of a commit's tree: git's own line, and the path in it.
type record struct {
	line, path string
	module     bool // a commit of another repository
}

// tracked is what a commit holds; of no commit, nothing.
func (r *Repo) tracked(ctx context.Context, commit string) ([]record, error) {
	if commit == "" {
		return nil, nil
	}
	out, err := r.own(ctx, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}})
	if err != nil {
		return nil, err
	}
	var records []record
	for line := range strings.SplitSeq(string(out), "\x00") {
		if _, path, ok := strings.Cut(line, "\t"); ok {
			records = append(records, record{line, path, strings.HasPrefix(line, gitlink)})
		}
	}
	return records, nil
}

// ignored is which of the paths git ignores by any list that it knows, the
// person's own among them. Whether they are tracked does not count here.
func (r *Repo) ignored(ctx context.Context, index string, paths []string) (map[string]bool, error) {
	const here = "./" // this subcommand does not know literal paths; one that begins so is one
	out, err := r.own(ctx, call{
		args:  []string{"check-ignore", "--no-index", "-z", "--stdin"},
		env:   []string{"GIT_INDEX_FILE=" + index, "GIT_LITERAL_PATHSPECS=0"},
		stdin: nulled(here, paths),
		none:  1,
	})
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for path := range bytes.SplitSeq(out, []byte{0}) {
		set[strings.TrimPrefix(string(path), here)] = true
	}
	return set, nil
}

// nulled is each string with a prefix before and a NUL after it.
func nulled(prefix string, list []string) []byte {
	var b bytes.Buffer
	for _, s := range list {
		b.WriteString(prefix)
		b.WriteString(s)
		b.WriteByte(0)
	}
	return b.Bytes()
}

// content is what the next commit holds: records of the last one that stay as
// they are, and files to be read.
type content struct {
	kept  []string
	files []string
}

// choose is every file that is tracked or not ignored. It trusts no index,
// whose marks could hide a change. What is excluded stays as the last commit
// has it.
func (r *Repo) choose(ctx context.Context, index, head string, exclude []string) (content, error) {
	excluded, err := within(exclude)
	if err != nil {
		return content{}, err
	}
	f, err := r.walk(excluded)
	if err != nil {
		return content{}, err
	}
	last, err := r.tracked(ctx, head)
	if err != nil {
		return content{}, err
	}
	candidates := f.files[:len(f.files):len(f.files)]
	for path := range f.closed {
		candidates = append(candidates, path)
	}
	ignored, err := r.ignored(ctx, index, candidates)
	if err != nil {
		return content{}, err
	}
	for _, entry := range last {
		notIgnored(ignored, entry.path)
	}
	return f.content(last, ignored, excluded)
}

// content joins what was found with the last commit's records.
func (f *found) content(last []record, ignored map[string]bool, excluded func(string) bool) (content, error) {
	for path, err := range f.closed {
		if !ignored[path] {
			return content{}, fmt.Errorf("list the files to commit: %w", err)
		}
	}
	var c content
	parents := map[string]bool{}
	for _, path := range f.files {
		if !ignored[path] {
			c.files = append(c.files, path)
			mark(parents, path)
		}
	}
	for _, entry := range last {
		// A submodule that was never filled is an empty directory.
		empty := entry.module && f.dirs[entry.path] && !parents[entry.path]
		if empty || excluded(entry.path) {
			c.kept = append(c.kept, entry.line)
		}
	}
	return c, nil
}

// notIgnored takes out a tracked path and the directories above it, which have
// to be read for its sake.
func notIgnored(ignored map[string]bool, tracked string) {
	for i := len(tracked); i > 0; i = strings.LastIndexByte(tracked[:i], '/') {
		delete(ignored, tracked[:i])
	}
}

// mark adds the directories above a path.
func mark(parents map[string]bool, path string) {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if parents[path[:i]] {
			return
		}
		parents[path[:i]] = true
	}
}

// stage writes the content into an index of its own, which env names, and the
// files' contents into the repository. Line endings are turned as the
// attributes say.
func (r *Repo) stage(ctx context.Context, env []string, c content) error {
	if _, err := r.own(ctx, call{args: []string{"read-tree", "--empty"}, env: env}); err != nil {
		return err
	}
	for _, step := range []call{
		{args: []string{"--index-info"}, stdin: nulled("", c.kept)},
		{args: []string{"--remove", "--stdin"}, stdin: nulled("", c.files)},
	} {
		if len(step.stdin) == 0 {
			continue
		}
		step.args = append([]string{"update-index", "-z", "--add", "--replace"}, step.args...)
		step.env = env
		if _, err := r.own(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// scratch makes an empty directory in the git directory for an index that no
// other git locks. One that a killed hone left is thrown away.
func (r *Repo) scratch() (string, error) {
	dir := filepath.Join(r.dotGit(), "hone-index")
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("make room for an index: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make room for an index: %w", err)
	}
	return dir, nil
}
