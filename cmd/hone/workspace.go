package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hone"
	"hone/internal/git"
	"hone/journal"
	"hone/workspace"
)

// place is a workspace that this process has to itself.
type place struct {
	root string
	repo *git.Repo // nil outside of a repository
	home *journal.Home
	lock *journal.Lock
	tree *workspace.Tree
}

// enter opens a workspace, locks it and rolls forward what an earlier process
// left half applied. With create, hone's folder is made where it is missing.
func (a *app) enter(ctx context.Context, root string, create bool) (*place, error) {
	p := &place{root: root}
	err := p.open(create)
	if err == nil {
		err = hone.Settle(ctx, p.home, p.tree, p.lock.Last)
	}
	if err != nil {
		p.leave()
		return nil, locked(err)
	}
	return p, nil
}

func (p *place) open(create bool) (err error) {
	if p.repo, err = repository(p.root); err != nil {
		return err
	}
	list, err := listerOf(p.root)
	if err != nil {
		return err
	}
	if create {
		p.home, err = journal.OpenHome(p.root)
	} else {
		p.home, err = journal.FindHome(p.root)
	}
	if err != nil {
		return noHome(p.root, err)
	}
	if p.lock, err = p.home.Lock(); err != nil {
		return err
	}
	p.tree, err = workspace.Open(p.root, workspace.Options{List: list})
	return err
}

func (p *place) leave() {
	if p.tree != nil {
		p.tree.Close()
	}
	if p.lock != nil {
		p.lock.Unlock()
	}
	if p.home != nil {
		p.home.Close()
	}
}

// locked says what to do about a workspace that another hone works on, or whose
// last run cannot be read.
func locked(err error) error {
	var held *journal.LockedError
	if errors.As(err, &held) {
		return usage(held.Error(), "wait for it, or stop it; to watch it: hone show last")
	}
	return damaged(err)
}

// damaged says what to do about a journal that is not what was written. What it
// was about to apply, if anything, nobody can tell any more.
func damaged(err error) error {
	if !errors.As(err, new(*journal.DamageError)) {
		return err
	}
	return failed(err, "the journal was changed by another program, so the run cannot be resumed; look at the tree, move the journal away, and start a new run")
}

func noHome(root string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usage("no run was ever started in "+root, "hone demo, or: hone help")
	}
	return failed(err, "hone doctor")
}

// repository opens the repository that a folder is the top of, or nil.
func repository(root string) (*git.Repo, error) {
	top, err := git.Root(root)
	if errors.Is(err, git.ErrNotRepository) || err == nil && top != root {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g, err := git.Find()
	if err != nil {
		return nil, failed(err, "install git")
	}
	return g.Open(root)
}

// listerOf is how a folder's tree is listed: by asking git, where the folder is
// a repository or lies in one, and in each repository that is nested in it. It
// is nil where there is none, and the tree is walked. What git ignores is kept
// as well where one of the globs means it; without git nothing is ignored.
func listerOf(root string, include ...string) (workspace.Lister, error) {
	top, err := git.Root(root)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	outer, err := repository(top)
	if err != nil {
		return nil, err
	}
	below, err := filepath.Rel(top, root)
	if err != nil {
		return nil, err
	}
	also := inclusion{root: root, globs: include}
	return func(ctx context.Context, dir string) (workspace.Listing, error) {
		if dir == root {
			return listing(ctx, outer, filepath.ToSlash(below), also, "")
		}
		inner, err := repository(dir)
		if err != nil || inner == nil {
			return workspace.Listing{}, errors.Join(err, workspace.ErrNoRepository)
		}
		at, err := filepath.Rel(root, dir)
		if err != nil {
			return workspace.Listing{}, err
		}
		return listing(ctx, inner, ".", also, filepath.ToSlash(at))
	}, nil
}

// listing asks a repository for what it keeps below a folder of it, which lies
// at a path of the workspace; "" is its root.
func listing(ctx context.Context, repo *git.Repo, below string, also inclusion, at string) (workspace.Listing, error) {
	entries, err := repo.List(ctx, below)
	if err != nil {
		return workspace.Listing{}, err
	}
	ignored, err := also.in(ctx, repo, below, at)
	if err != nil {
		return workspace.Listing{}, err
	}
	l := workspace.Listing{Kept: make([]string, len(entries)), Untracked: map[string]bool{}, Ignored: map[string]bool{}}
	for i, e := range entries {
		l.Kept[i], _ = trimFolder(e.Path, below)
		if e.Untracked {
			l.Untracked[l.Kept[i]] = true
		}
	}
	for _, p := range ignored {
		l.Kept = append(l.Kept, p)
		l.Untracked[p], l.Ignored[p] = true, true
	}
	return l, nil
}

// findRoot is the workspace that a folder belongs to: the nearest folder with
// runs, up to its repository's top; else that, else the folder itself.
func findRoot(dir string) (string, error) {
	abs, err := folder(dir)
	if err != nil {
		return "", err
	}
	top, err := git.Root(abs)
	if err != nil && !errors.Is(err, git.ErrNotRepository) {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(at, journal.HomeName)); err == nil && info.IsDir() {
			return at, nil
		}
		if at == top {
			return top, nil
		}
		if at == filepath.Dir(at) {
			return abs, nil
		}
	}
}

// folder is a folder that a person named, absolute and free of links.
func folder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if info, statErr := os.Stat(dir); err != nil || statErr != nil || !info.IsDir() {
		return "", usage(fmt.Sprintf("%s is no folder", dir), "name an existing one with --dir")
	}
	return abs, nil
}
