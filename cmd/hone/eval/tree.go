package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hone"
	"hone/cmd/hone/failure"
	"hone/group"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/git"
	"hone/internal/transient"
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
		return s.runBase(ctx, c)
	}
	dir, err := loop.AbsDir(c.Files)
	if transient.Is(err) {
		return Base{}, err
	}
	if err != nil {
		return Base{}, s.Wrong(c, "files", c.Files+" is not a directory", "name one, relative to "+s.File)
	}
	id, err := TreeID(ctx, dir)
	return Base{Origin: dir, ID: id, write: func(ctx context.Context, to string) error {
		skipped, err := group.Copy(ctx, dir, to)
		if err == nil && len(skipped) > 0 {
			err = fmt.Errorf("%s cannot be copied", filepath.Join(dir, skipped[0]))
		}
		return errors.Join(err, os.RemoveAll(filepath.Join(to, ".git"))) // it may have the solution
	}}, err
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

// If the commit is HEAD, it must be all that the user works on.
func (s *Suite) commitBase(ctx context.Context, c Case) (b Base, err error) {
	repo, err := git.OpenAt(c.Repo)
	if errors.Is(err, git.ErrNotRepository) {
		return b, s.Wrong(c, "repo", c.Repo+" is not in a git repository", `name one, such as repo = "../project"`)
	}
	if err != nil {
		return b, err
	}
	b.ID, err = repo.CommitID(ctx, c.Commit)
	if errors.Is(err, fs.ErrNotExist) {
		return b, s.Wrong(c, "commit", fmt.Sprintf("there is no commit %q in %s", c.Commit, c.Repo), "git log lists the commits")
	}
	if err == nil && c.Commit == "HEAD" {
		var dirty bool
		if dirty, err = repo.Dirty(ctx); dirty {
			return b, s.Wrong(c, "commit", c.Repo+" has changes that are not in the commit HEAD", "commit them, or leave them out by the commit's id: "+b.ID[:12])
		}
	}
	if err == nil {
		b.Origin, err = git.Root(c.Repo)
	}
	b.write = func(ctx context.Context, dir string) error { return repo.Export(ctx, b.ID, dir) }
	return b, err
}

func (s *Suite) runBase(ctx context.Context, c Case) (b Base, err error) {
	i, err := runs.Inspect(ctx, c.Repo, c.Run)
	if errors.Is(err, runs.ErrNone) {
		return b, s.Wrong(c, "run", "no runs were recorded in "+c.Repo, `name the directory in which it was started, such as repo = "../project"`)
	}
	if err == nil && i.Foreign != 0 {
		return b, s.Wrong(c, "run", "you did not record it on this machine", "to see what it would run, and accept it: hone trust "+i.Run+failure.Elsewhere(c.Repo))
	}
	var opened *history.Opened
	if err == nil {
		if opened = i.Past.Facts().Opened; opened == nil {
			err = fmt.Errorf("the run %s ended before its first round, and recorded no tree", i.Run)
		}
	}
	if err != nil {
		return b, s.Wrong(c, "run", err.Error(), "hone runs"+failure.Elsewhere(c.Repo)+" lists the runs")
	}
	b.Origin, b.ID, b.Start = i.Dir, opened.Tree, i.Start
	b.write = func(ctx context.Context, dir string) error {
		home, err := runs.Open(b.Origin)
		if err != nil {
			return err
		}
		defer home.Close()
		m, err := history.ReadManifest(opened.Manifest, home.Get)
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
	return b, nil
}

// Make writes the base below a directory that does not exist, in one with the name of the origin:
// all of it or nothing. It is a repository with one commit: the history of the project may have
// the solution. Files that hone would not read stay untracked.
func (b Base) Make(ctx context.Context, dir string) error {
	fresh := dir + ".new"
	to := filepath.Join(fresh, filepath.Base(b.Origin))
	g, err := git.Find(b.Origin)
	if errors.Is(err, git.ErrNoGit) {
		return loop.UsageOf(err, "install git")
	}
	if err == nil {
		err = errors.Join(clone.Remove(fresh), os.MkdirAll(to, 0o755))
	}
	if err == nil {
		err = b.write(ctx, to)
	}
	if err == nil {
		var repo *git.Repo
		if repo, err = g.Init(ctx, to); err == nil {
			_, err = repo.Commit(ctx, git.Commit{Subject: "Base", MaxFile: workspace.DefaultMaxFile})
		}
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return errors.Join(err, clone.Remove(fresh))
	}
	return nil
}
