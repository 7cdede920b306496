package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hone"
	"hone/group"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/git"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/clone"
)

// Base is the tree that the tries of a case start from.
type Base struct {
	// Origin is the directory that the tree comes from, whose programs and settings the
	// user trusts or not.
	Origin string
	// ID identifies the contents.
	ID string
	// Start is the start of the run that the tree is from; zero if it is from none.
	Start hone.Start

	write func(ctx context.Context, dir string) error
}

// FindBase finds the tree of a case, and writes nothing. Errors name the line of the case.
func (s *Suite) FindBase(ctx context.Context, c Case) (Base, error) {
	switch {
	case c.Commit != "":
		return s.commitBase(ctx, c)
	case c.Run != "":
		return s.runBase(c)
	}
	dir, err := loop.AbsDir(c.Files)
	if err != nil {
		return Base{}, s.Wrong(c, "files", c.Files+" is not a directory", "name one, relative to "+s.File)
	}
	id, err := TreeID(ctx, dir)
	if err != nil {
		return Base{}, err
	}
	return Base{Origin: dir, ID: id, write: func(ctx context.Context, to string) error {
		skipped, err := group.Copy(ctx, dir, to)
		if err == nil && len(skipped) > 0 {
			err = fmt.Errorf("%s cannot be copied", filepath.Join(dir, skipped[0]))
		}
		return errors.Join(err, os.RemoveAll(filepath.Join(to, ".git"))) // it may have the solution
	}}, nil
}

// TreeID returns a digest of the files of a directory.
func TreeID(ctx context.Context, dir string) (string, error) {
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return "", err
	}
	defer tree.Close()
	m, err := tree.Manifest(ctx, nil)
	return m.Digest(), err
}

// commitBase finds the tree of a commit. One that is named HEAD must be all that the user
// works on.
func (s *Suite) commitBase(ctx context.Context, c Case) (Base, error) {
	repo, err := git.OpenAt(c.Repo)
	if errors.Is(err, git.ErrNotRepository) {
		return Base{}, s.Wrong(c, "repo", c.Repo+" is not in a git repository", `name one, such as repo = "../project"`)
	}
	if err != nil {
		return Base{}, err
	}
	id, err := repo.CommitID(ctx, c.Commit)
	if errors.Is(err, fs.ErrNotExist) {
		return Base{}, s.Wrong(c, "commit", fmt.Sprintf("there is no commit %q in %s", c.Commit, c.Repo), "git log lists the commits")
	}
	if err != nil {
		return Base{}, err
	}
	if c.Commit == "HEAD" {
		dirty, err := repo.Dirty(ctx)
		if err != nil {
			return Base{}, err
		}
		if dirty {
			return Base{}, s.Wrong(c, "commit", c.Repo+" has changes that are not in the commit HEAD", "commit them, or leave them out by the commit's id: "+id[:12])
		}
	}
	top, err := git.Root(c.Repo)
	return Base{Origin: top, ID: id, write: func(ctx context.Context, dir string) error { return repo.Export(ctx, id, dir) }}, err
}

// runBase finds the tree that a run of the user's found.
func (s *Suite) runBase(c Case) (Base, error) {
	home, err := runs.Open(c.Repo)
	if errors.Is(err, runs.ErrNone) {
		return Base{}, s.Wrong(c, "run", "no runs were recorded in "+c.Repo, `name the directory in which it was started, such as repo = "../project"`)
	}
	if err != nil {
		return Base{}, err
	}
	defer home.Close()
	wrong := func(format string, args ...any) (Base, error) {
		return Base{}, s.Wrong(c, "run", fmt.Sprintf(format, args...), "hone runs lists the runs")
	}
	run, err := home.FindRun(c.Run)
	if err != nil {
		return wrong("%v", err)
	}
	events, err := home.Read(run)
	if err != nil {
		return wrong("%v", err)
	}
	if runs.Foreign(home)(run, events) != 0 {
		return Base{}, s.Wrong(c, "run", "you did not record it on this machine", "to see what it would run, and accept it: hone trust "+run)
	}
	start, err := runs.Started(events)
	opened, ok := history.Read(events).Opened()
	if err != nil || !ok {
		return wrong("the run %s ended before its first round, and recorded no tree", run)
	}
	root := home.Workspace()
	return Base{Origin: root, ID: opened.Tree, Start: start, write: func(ctx context.Context, dir string) error {
		return writeRecorded(ctx, root, opened.Manifest, dir)
	}}, nil
}

// writeRecorded writes a recorded tree into an empty directory.
func writeRecorded(ctx context.Context, root, manifest, dir string) error {
	home, err := runs.Open(root)
	if err != nil {
		return err
	}
	defer home.Close()
	m, err := history.ReadManifest(manifest, home.Get)
	if err != nil {
		return err
	}
	tree, err := workspace.Open(dir, workspace.Options{Scratch: true})
	if err != nil {
		return err
	}
	defer tree.Close()
	return history.WriteTree(ctx, tree, m, home)
}

// Make writes the base below a directory that does not exist, in one with the name of the origin:
// all of it or nothing. It is a repository with one commit: the history of the project may have
// the solution.
func (b Base) Make(ctx context.Context, dir string) error {
	fresh := dir + ".new"
	to := filepath.Join(fresh, filepath.Base(b.Origin))
	err := errors.Join(clone.Remove(fresh), os.MkdirAll(to, 0o755))
	if err == nil {
		err = b.write(ctx, to)
	}
	if err == nil {
		err = commitAll(ctx, to)
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return errors.Join(err, clone.Remove(fresh))
	}
	return nil
}

// commitAll makes a directory a repository with one commit. Files that hone would not read
// stay untracked.
func commitAll(ctx context.Context, dir string) error {
	g, err := git.Find()
	if errors.Is(err, git.ErrNoGit) {
		return loop.Usage(err.Error(), "install git")
	}
	if err != nil {
		return err
	}
	repo, err := g.Init(ctx, dir)
	if err == nil {
		_, err = repo.Commit(ctx, git.Commit{Subject: "Base", MaxFile: workspace.DefaultMaxFile})
	}
	return err
}

// overlay copies the files of a directory over a tree that a model's commands wrote:
// neither a link in the tree nor one in the directory leads elsewhere.
func overlay(from, to string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	return fs.WalkDir(src.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if d.IsDir() {
			return dst.MkdirAll(path, 0o755)
		}
		info, err := src.Stat(path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", filepath.Join(from, path))
		}
		in, err := src.Open(path)
		if err != nil {
			return err
		}
		text, err := artifact.InputFrom(in, filepath.Join(from, path))
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
		if err := dst.RemoveAll(path); err != nil {
			return err
		}
		return dst.WriteFile(path, text, info.Mode().Perm())
	})
}
