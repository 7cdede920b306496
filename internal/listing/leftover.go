package listing

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/internal/git"
	"hone/journal"
)

// Leftover is what undoing a run does not restore. Its texts are raw: they may
// contain control characters and need not be UTF-8.
type Leftover struct {
	// Ignored are the ignored paths in which something changed, relative to the
	// workspace's root. A directory ends with a slash.
	Ignored []string
	// Commits are lines such as "src: 1a2b3c4 subject": the repository, unless
	// it is the workspace's own, and a commit of its HEAD.
	Commits []string
	// More means that there may be others, because there was too much to read
	// or something could not be read.
	More bool
}

// Refs is what a repository's names held; see [git.Refs].
type Refs = git.Refs

// Leftovers finds what changed between two times, including the seconds of
// both, and is not among the restored paths, which are relative to root. It
// searches the repository that root is in, and those nested in it. It does not
// see a file that changed again later. Without a repository it returns only the
// commits of nested ones.
//
// was is what the names of the repository held at the first time: what it holds is older. Git
// records whole seconds, so that without was, and in nested repositories, a commit of the first
// second may be older too.
//
// Leftovers only reads, follows no symbolic link, and looks at a limited number
// of files. With an error, it still returns what it has found.
func Leftovers(ctx context.Context, root string, restored []string, since, until time.Time, was Refs) (Leftover, error) {
	s := newLeftoverSearch(ctx, root, restored, since, until)
	s.was = was
	top, err := git.Root(root)
	switch {
	case errors.Is(err, git.ErrNotRepository):
		err = s.searchWithoutRepository()
	case err == nil:
		err = s.inOuter(top, s.searchRepository)
	}
	return s.found, err
}

// IgnoredChanges returns the ignored paths in which something changed since a time, but
// for the given ones, as [Leftover] has them; of the repository that root is in, not of
// those nested in it, whose .git it does not enter. It reads no contents.
func IgnoredChanges(ctx context.Context, root string, except []string, since time.Time) ([]string, error) {
	s := newLeftoverSearch(ctx, root, except, since, time.Now())
	s.budget, s.files = s.budget/2, true // a run waits for it
	top, err := git.Root(root)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, nil
	}
	if err == nil {
		err = s.inOuter(top, s.addIgnored)
	}
	return s.found.Ignored, err
}

func newLeftoverSearch(ctx context.Context, root string, restored []string, since, until time.Time) *leftoverSearch {
	s := &leftoverSearch{ctx: ctx, root: root, since: since, until: until, budget: 200_000,
		restored: map[string]bool{}, parents: map[string]bool{}}
	for _, p := range restored {
		s.restored[p], s.parents[path.Dir(p)] = true, true
	}
	return s
}

type leftoverSearch struct {
	ctx          context.Context
	root         string
	since, until time.Time
	restored     map[string]bool
	parents      map[string]bool // directories of restored files: restoring changed their times
	was          Refs
	budget       int  // how many entries may still be looked at
	files        bool // what git keeps of ignored repositories does not count
	found        Leftover
}

func (s *leftoverSearch) inOuter(top string, search func(repo *git.Repo, below, at string) error) error {
	repo, err := Repository(top, s.root)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(top, s.root)
	if err != nil {
		return err
	}
	return search(repo, filepath.ToSlash(below), ".")
}

// at is the path of the directory below in the workspace. Nested repositories are searched too.
func (s *leftoverSearch) searchRepository(repo *git.Repo, below, at string) error {
	err := errors.Join(s.addCommits(repo, at), s.addIgnored(repo, below, at))
	entries, listErr := repo.List(s.ctx, below)
	err = errors.Join(err, listErr)
	parents := map[string]bool{}
	for _, e := range entries {
		p, ok := trimDir(e.Path, below)
		if e.Nested && ok {
			err = errors.Join(err, s.searchNested(path.Join(at, p), s.searchRepository))
		} else if ok {
			addParents(parents, p)
		}
	}
	// Git does not name a repository whose files the outer one tracks.
	for _, p := range slices.Sorted(maps.Keys(parents)) {
		err = errors.Join(err, s.searchNested(path.Join(at, p), s.onlyCommits))
	}
	return err
}

func addParents(set map[string]bool, p string) {
	for dir := path.Dir(p); dir != "." && !set[dir]; dir = path.Dir(dir) {
		set[dir] = true
	}
}

func (s *leftoverSearch) searchNested(at string, search func(repo *git.Repo, below, at string) error) error {
	dir := s.abs(at)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil
	}
	repo, err := Repository(dir, s.root)
	if err != nil || repo == nil {
		return err
	}
	return search(repo, ".", at)
}

func (s *leftoverSearch) abs(at string) string { return filepath.Join(s.root, filepath.FromSlash(at)) }

func (s *leftoverSearch) onlyCommits(repo *git.Repo, _, at string) error {
	return s.addCommits(repo, at)
}

func (s *leftoverSearch) addCommits(repo *git.Repo, at string) error {
	was, whose := git.Refs{}, at+": "
	if at == "." {
		was, whose = s.was, ""
	}
	commits, err := repo.Commits(s.ctx, was, s.since, s.until)
	for _, c := range commits {
		s.found.Commits = append(s.found.Commits, whose+c.ID[:7]+" "+c.Subject)
	}
	s.found.More = s.found.More || len(commits) == git.MaxCommits
	return err
}

func (s *leftoverSearch) addIgnored(repo *git.Repo, below, at string) error {
	paths, err := repo.IgnoredPaths(s.ctx, below)
	if err != nil {
		return err
	}
	for _, p := range paths {
		rel, ok := trimDir(p, below)
		switch {
		case !ok && !strings.HasPrefix(below+"/", p):
			continue
		case !ok || rel == "":
			rel = "./" // the workspace itself is ignored
		}
		full := path.Join(at, rel)
		if !s.changed(full) {
			continue
		}
		if strings.HasSuffix(p, "/") {
			full += "/"
		}
		s.found.Ignored = append(s.found.Ignored, full)
	}
	return s.ctx.Err()
}

func (s *leftoverSearch) changed(at string) bool {
	found := false
	s.walk(at, func(at string, info fs.FileInfo) error {
		switch {
		case path.Base(at) == journal.HomeName || s.files && path.Base(at) == ".git":
			return fs.SkipDir
		case at == "." || s.restored[at] || info.IsDir() && s.parents[at]:
			return nil
		case !s.inSeconds(info.ModTime()) && !s.inSeconds(changeTime(s.abs(at))): // programs can set the former
			return nil
		}
		found = true
		return fs.SkipAll
	})
	return found
}

// A whole second comes from a file system that stores only those, and may be any time in it; other times lag a little, because
// kernels read the clock only every few milliseconds.
func (s *leftoverSearch) inSeconds(t time.Time) bool {
	const lag = 20 * time.Millisecond
	since, until := s.since.Add(-lag), s.until.Add(lag)
	if t.Nanosecond() == 0 {
		since, until = s.since.Truncate(time.Second), s.until.Truncate(time.Second).Add(time.Second)
	}
	return !t.Before(since) && t.Before(until)
}

func (s *leftoverSearch) searchWithoutRepository() error {
	var repos []string
	s.walk(".", func(at string, _ fs.FileInfo) error {
		switch {
		case at == journal.HomeName:
			return fs.SkipDir
		case path.Base(at) == ".git":
			repos = append(repos, path.Dir(at))
			return fs.SkipDir
		}
		return nil
	})
	slices.Sort(repos)
	var err error
	for _, at := range repos {
		err = errors.Join(err, s.searchNested(at, s.onlyCommits))
	}
	return errors.Join(err, s.ctx.Err())
}

// A directory comes before its contents. Symbolic links are not followed. If visit returns fs.SkipDir, walk does not enter the
// directory; if it returns fs.SkipAll, the walk ends. The walk also ends when the budget is used up or the context is done.
func (s *leftoverSearch) walk(at string, visit func(at string, info fs.FileInfo) error) {
	_ = filepath.WalkDir(s.abs(at), func(file string, d fs.DirEntry, err error) error {
		if s.budget--; s.budget < 0 || s.ctx.Err() != nil {
			s.found.More = true
			return fs.SkipAll
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err == nil {
			file, err = filepath.Rel(s.root, file)
		}
		if err != nil {
			s.found.More = s.found.More || !errors.Is(err, fs.ErrNotExist)
			return nil
		}
		if err = visit(filepath.ToSlash(file), info); err == fs.SkipDir && !d.IsDir() {
			return nil
		}
		return err
	})
}
