package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// workTree is the result of walking the work tree. Paths are relative to the
// top, with slashes, in walking order.
type workTree struct {
	files      []string         // regular files and symbolic links
	large      []string         // regular files that are too large
	dirs       map[string]bool  // directories that were entered
	unreadable map[string]error // why directories could not be read
}

// Links are not followed. Everything named .git at any depth is left out, and a nested repository is an ordinary directory. So
// are pipes, sockets and devices, which git cannot store. maxFile is as in [Commit].
func (r *Repo) walk(excluded func(string) bool, maxFile int64) (workTree, error) {
	f := workTree{dirs: map[string]bool{}, unreadable: map[string]error{}}
	err := filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(r.root, path)
		if relErr != nil {
			return relErr
		}
		return f.visit(filepath.ToSlash(rel), d, err, excluded, maxFile)
	})
	if err != nil {
		return workTree{}, fmt.Errorf("list the files to commit: %w", err)
	}
	return f, nil
}

func (f *workTree) visit(path string, d fs.DirEntry, err error, excluded func(string) bool, maxFile int64) error {
	switch {
	case path == ".":
		return err
	case strings.EqualFold(d.Name(), ".git") || excluded(path):
		return skip(d)
	case errors.Is(err, fs.ErrNotExist):
		return nil // deleted in the meantime, so not part of the commit
	case err != nil:
		f.unreadable[path] = err
		return nil
	case d.IsDir():
		f.dirs[path] = true
	case d.Type() == 0 && isLarger(d, maxFile):
		f.large = append(f.large, path)
	case d.Type() == 0 || d.Type() == fs.ModeSymlink:
		f.files = append(f.files, path)
	case strings.HasPrefix(d.Name(), ".git"):
		// Git reads .gitignore and similar files, and a pipe would block it.
		return fmt.Errorf("%s is not a regular file, but git would read it", path)
	}
	return nil
}

// A limit of 0 means none.
func isLarger(d fs.DirEntry, limit int64) bool {
	if limit == 0 {
		return false
	}
	info, err := d.Info()
	return err == nil && info.Size() > limit
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// Case is ignored on systems whose usual file systems ignore it.
func pathMatcher(tops []string) (func(string) bool, error) {
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

// record is one entry of a commit's tree: git's line, and the path in it.
type record struct {
	line, path string
	module     bool // it is a submodule
}

// The line is "MODE TYPE ID\tPATH".
func (of record) id() string {
	about, _, _ := strings.Cut(of.line, "\t")
	return about[strings.LastIndexByte(about, ' ')+1:]
}

func (r *Repo) commitRecords(ctx context.Context, commit string) ([]record, error) {
	if commit == "" {
		return nil, nil
	}
	out, err := r.runOwn(ctx, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}})
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

// Any of git's lists counts, including the user's own, for tracked paths as well.
func (r *Repo) ignoredAmong(ctx context.Context, index string, paths []string) (map[string]bool, error) {
	const here = "./" // check-ignore has no literal paths, but reads this prefix literally
	out, err := r.runOwn(ctx, call{
		args:      []string{"check-ignore", "--no-index", "-z", "--stdin"},
		env:       []string{"GIT_INDEX_FILE=" + index, "GIT_LITERAL_PATHSPECS=0"},
		stdin:     nulTerminated(here, paths),
		emptyExit: 1,
	})
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if path != "" {
			set[strings.TrimPrefix(path, here)] = true
		}
	}
	return set, nil
}

func nulTerminated(prefix string, list []string) []byte {
	var b bytes.Buffer
	for _, s := range list {
		b.WriteString(prefix)
		b.WriteString(s)
		b.WriteByte(0)
	}
	return b.Bytes()
}

type content struct {
	records []string // of the last commit, unchanged
	files   []string // to read from the work tree
	large   []string // that are not read, because they are too large
}

// The existing index is ignored: its flags could hide a change. Excluded paths and files that are too large keep the state of
// the last commit.
func (r *Repo) selectContent(ctx context.Context, index, head string, c Commit) (content, error) {
	excluded, err := pathMatcher(c.Exclude)
	if err != nil {
		return content{}, err
	}
	f, err := r.walk(excluded, c.MaxFile)
	if err != nil {
		return content{}, err
	}
	candidates := slices.Concat(f.files, f.large)
	for path := range f.unreadable {
		candidates = append(candidates, path)
	}
	ignored, err := r.ignoredAmong(ctx, index, candidates)
	if err != nil {
		return content{}, err
	}
	last, err := r.commitRecords(ctx, head)
	if err != nil {
		return content{}, err
	}
	for _, entry := range last { // tracked paths must be read
		for i := len(entry.path); i > 0; i = strings.LastIndexByte(entry.path[:i], '/') {
			delete(ignored, entry.path[:i])
		}
	}
	return f.content(last, ignored, excluded)
}

func (f *workTree) content(last []record, ignored map[string]bool, excluded func(string) bool) (content, error) {
	for path, err := range f.unreadable {
		if !ignored[path] {
			return content{}, fmt.Errorf("list the files to commit: %w", err)
		}
	}
	c := content{large: slices.DeleteFunc(f.large, func(path string) bool { return ignored[path] })}
	parents := map[string]bool{}
	for _, path := range f.files {
		if !ignored[path] {
			c.files = append(c.files, path)
			addParents(parents, path)
		}
	}
	for _, entry := range last {
		// A submodule that is not checked out is an empty directory.
		empty := entry.module && f.dirs[entry.path] && !parents[entry.path]
		if empty || excluded(entry.path) || slices.Contains(c.large, entry.path) {
			c.records = append(c.records, entry.line)
		}
	}
	return c, nil
}

func addParents(parents map[string]bool, path string) {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if parents[path[:i]] {
			return
		}
		parents[path[:i]] = true
	}
}

// env names an index that does not exist. Git converts line endings as the attributes say.
func (r *Repo) stage(ctx context.Context, env []string, c content) error {
	if len(c.records) == 0 && len(c.files) == 0 {
		_, err := r.runOwn(ctx, call{args: []string{"read-tree", "--empty"}, env: env})
		return err
	}
	for _, step := range []call{
		{args: []string{"--index-info"}, stdin: nulTerminated("", c.records)},
		{args: []string{"--remove", "--stdin"}, stdin: nulTerminated("", c.files)},
	} {
		if len(step.stdin) == 0 {
			continue
		}
		step.args = append([]string{"update-index", "-z", "--add", "--replace"}, step.args...)
		step.env = env
		if _, err := r.runOwn(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
