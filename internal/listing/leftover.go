package listing

import (
	"cmp"
	"context"
	"errors"
	"io"
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

// Leftover is what undoing a run leaves alone. Its texts are raw: they may
// hold control characters and need not be UTF-8.
type Leftover struct {
	// Ignored are paths that git ignores and in which something changed,
	// relative to the workspace's root; a folder has a slash at its end.
	Ignored []string
	// Commits are lines such as "src: 1a2b3c4 subject": the repository, if it
	// is not the workspace's own, and what its HEAD did.
	Commits []string
	// More says that there may be others, because there was too much to look at
	// or something could not be looked at.
	More bool
}

// Leftovers looks for what changed between two times, the seconds of both
// included, and is not among the restored paths, which are relative to root: in
// the repository that root lies in and in every one that is nested in it. What
// changed again after the second time is not seen. Without a repository no file
// is left alone, and only commits of nested ones are. It only reads, follows no
// link and looks at a bounded number of files. What it found stands beside an
// error.
func Leftovers(ctx context.Context, root string, restored []string, since, until time.Time) (Leftover, error) {
	s := &leftoverSearch{ctx: ctx, root: root, since: since, until: until, budget: 200_000,
		restored: map[string]bool{}, parents: map[string]bool{}}
	for _, p := range restored {
		s.restored[p], s.parents[path.Dir(p)] = true, true
	}
	top, err := git.Root(root)
	switch {
	case errors.Is(err, git.ErrNotRepository):
		err = s.bare()
	case err == nil:
		err = s.outer(top)
	}
	return s.found, err
}

type leftoverSearch struct {
	ctx          context.Context
	root         string
	since, until time.Time
	restored     map[string]bool
	parents      map[string]bool // folders of restored files, whose own times say nothing
	budget       int             // how many entries may still be looked at
	found        Leftover
}

// outer searches the repository that the workspace lies in.
func (s *leftoverSearch) outer(top string) error {
	repo, err := Repository(top)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(top, s.root)
	if err != nil {
		return err
	}
	return s.repository(repo, filepath.ToSlash(below), ".")
}

// repository searches one repository below a folder of it, which lies at a path
// of the workspace, and those that are nested in it.
func (s *leftoverSearch) repository(repo *git.Repo, below, at string) error {
	err := errors.Join(s.commits(repo, at), s.ignored(repo, below, at))
	entries, listErr := repo.List(s.ctx, below)
	err = errors.Join(err, listErr)
	parents := map[string]bool{}
	for _, e := range entries {
		p, ok := trimFolder(e.Path, below)
		if e.Nested && ok {
			err = errors.Join(err, s.nested(path.Join(at, p), s.repository))
		} else if ok {
			addParents(parents, p)
		}
	}
	// Git does not name a repository whose files the outer one tracks.
	for _, p := range slices.Sorted(maps.Keys(parents)) {
		err = errors.Join(err, s.nested(path.Join(at, p), s.onlyCommits))
	}
	return err
}

// addParents adds the folders that a path lies in.
func addParents(set map[string]bool, p string) {
	for dir := path.Dir(p); dir != "." && !set[dir]; dir = path.Dir(dir) {
		set[dir] = true
	}
}

// nested searches the repository at a path of the workspace, if there is one.
func (s *leftoverSearch) nested(at string, search func(repo *git.Repo, below, at string) error) error {
	dir := s.abs(at)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil
	}
	repo, err := Repository(dir)
	if err != nil || repo == nil {
		return err
	}
	return search(repo, ".", at)
}

func (s *leftoverSearch) abs(at string) string { return filepath.Join(s.root, filepath.FromSlash(at)) }

func (s *leftoverSearch) onlyCommits(repo *git.Repo, _, at string) error { return s.commits(repo, at) }

// commits adds what a repository's HEAD did.
func (s *leftoverSearch) commits(repo *git.Repo, at string) error {
	moves, err := repo.Reflog(s.ctx, s.since, s.until)
	if err != nil {
		return err
	}
	whose := ""
	if at != "." {
		whose = at + ": "
	}
	for _, m := range moves {
		s.found.Commits = append(s.found.Commits, whose+m.ID[:7]+" "+deed(m))
	}
	s.found.More = s.found.More || len(moves) == git.MaxReflog
	return nil
}

// deed is what a move of HEAD did, in the reflog's words; of a plain commit, its
// subject.
func deed(m git.ReflogEntry) string {
	plain := m.Action == "commit" || m.Action == "commit (initial)" || m.Action == ""
	switch {
	case strings.Trim(m.ID, "0") == "":
		return cmp.Or(m.Subject, "HEAD no longer names a commit")
	case plain:
		return cmp.Or(m.Subject, "without a subject")
	}
	return m.Action + ": " + m.Subject
}

// ignored adds the ignored paths of a repository in which something changed.
func (s *leftoverSearch) ignored(repo *git.Repo, below, at string) error {
	paths, err := repo.IgnoredPaths(s.ctx, below)
	if err != nil {
		return err
	}
	for _, p := range paths {
		rel, ok := trimFolder(p, below)
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

// changed reports whether something at a path or below it changed that is not
// restored.
func (s *leftoverSearch) changed(at string) bool {
	hit := false
	s.walk(at, func(at string, info fs.FileInfo) error {
		switch {
		case at == journal.HomeName:
			return fs.SkipDir
		case at == "." || s.restored[at] || info.IsDir() && s.parents[at] || !s.during(info):
			return nil
		}
		hit = true
		return fs.SkipAll
	})
	return hit
}

// during reports whether a file changed between the times. Programs can set the
// first time of a file, and not the second.
func (s *leftoverSearch) during(info fs.FileInfo) bool {
	return s.between(info.ModTime()) || s.between(changeTime(info))
}

// between widens both times to whole seconds, because file systems do.
func (s *leftoverSearch) between(t time.Time) bool {
	return !t.Before(s.since.Truncate(time.Second)) && t.Before(s.until.Truncate(time.Second).Add(time.Second))
}

// bare searches a tree that no repository holds for those in it.
func (s *leftoverSearch) bare() error {
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
		err = errors.Join(err, s.nested(at, s.onlyCommits))
	}
	return errors.Join(err, s.ctx.Err())
}

// walk visits what stands at a path and below it, each folder before what it
// holds, without following a link. For fs.SkipDir a folder is not entered, for
// fs.SkipAll the walk ends. It ends too when the budget is used up or the
// context is done.
func (s *leftoverSearch) walk(at string, visit func(at string, info fs.FileInfo) error) {
	if s.budget--; s.budget < 0 {
		s.found.More = true
		return
	}
	info, err := os.Lstat(s.abs(at))
	if err != nil {
		s.unseen(err)
		return
	}
	if visit(at, info) != nil || !info.IsDir() {
		return
	}
	// Folders wait in a list, so that no depth holds many of them open.
	for dirs := []string{at}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		inner, err := s.visitIn(dir, visit)
		if err != nil {
			return
		}
		dirs = append(dirs[:len(dirs)-1], inner...)
	}
}

// visitIn visits what a folder holds, step by step, as that may be millions. It
// returns the folders to enter, and fs.SkipAll where the walk ends.
func (s *leftoverSearch) visitIn(dir string, visit func(at string, info fs.FileInfo) error) (inner []string, err error) {
	f, err := os.Open(s.abs(dir))
	if err != nil {
		s.unseen(err)
		return nil, nil
	}
	defer f.Close()
	for s.ctx.Err() == nil && s.budget > 0 {
		entries, err := f.ReadDir(min(s.budget, 256))
		s.budget -= len(entries)
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			info, err := e.Info()
			if err != nil {
				s.unseen(err)
				continue
			}
			switch err := visit(at, info); {
			case err == fs.SkipAll:
				return nil, err
			case err == nil && info.IsDir():
				inner = append(inner, at)
			}
		}
		if err != nil {
			s.unseen(err)
			return inner, nil
		}
	}
	s.found.More = true
	return nil, fs.SkipAll
}

// unseen takes note of what could not be looked at. What is gone needs no look.
func (s *leftoverSearch) unseen(err error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) {
		s.found.More = true
	}
}
