package harness

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"hone"
	"hone/internal/git"
	"hone/internal/listing"
	"hone/journal"
	"hone/loop"
	"hone/workspace"
)

// Workspace is a folder that this process has to itself: no other hone works in
// it, above it or below it.
type Workspace struct {
	Dir  string    // absolute, without links
	Repo *git.Repo // whose top Dir is; nil: there is none
	Home *journal.Home
	Tree *workspace.Tree // as git lists it

	lock *journal.Lock
}

// Enter opens a folder, locks it and rolls forward what an earlier process left
// half applied. With create it makes hone's own folder if it is missing.
func Enter(ctx context.Context, dir string, create bool) (*Workspace, error) {
	w := &Workspace{Dir: dir}
	err := w.open(create)
	if err == nil {
		err = hone.Settle(ctx, w.Home, w.Tree, w.lock.LastRun)
	}
	if err != nil {
		w.Close()
		return nil, locked(err)
	}
	return w, nil
}

func (w *Workspace) open(create bool) (err error) {
	if w.Repo, err = listing.Repository(w.Dir); err != nil {
		return err
	}
	if create {
		w.Home, err = journal.OpenHome(w.Dir)
	} else {
		w.Home, err = journal.FindHome(w.Dir)
	}
	if err != nil {
		return NoHome(w.Dir, err)
	}
	if w.lock, err = w.Home.Lock(); err != nil {
		return err
	}
	w.Tree, err = OpenTree(w.Dir)
	return err
}

// OpenTree opens a folder's tree, whose files are those that git does not
// ignore and the ignored ones that the globs mean. It is not locked.
func OpenTree(dir string, include ...string) (*workspace.Tree, error) {
	list, err := listing.Of(dir, include...)
	if err != nil {
		return nil, err
	}
	return workspace.Open(dir, workspace.Options{List: list})
}

// Include makes the workspace keep the ignored files that globs mean, beside
// all others. It is called before the tree is listed for the first time.
func (w *Workspace) Include(globs []string) error {
	if len(globs) == 0 {
		return nil
	}
	tree, err := OpenTree(w.Dir, globs...)
	if err != nil {
		return err
	}
	err = w.Tree.Close()
	w.Tree = tree
	return err
}

// Close unlocks the workspace.
func (w *Workspace) Close() {
	if w.Tree != nil {
		w.Tree.Close()
	}
	if w.lock != nil {
		w.lock.Unlock()
	}
	if w.Home != nil {
		w.Home.Close()
	}
}

// locked says what to do about a workspace that another hone works in, or whose
// last run cannot be read.
func locked(err error) error {
	var held *journal.LockedError
	if errors.As(err, &held) {
		return loop.Usage(held.Error(), "wait for it, or stop it; to see its progress: hone show last")
	}
	return damaged(err)
}

// damaged says what to do about a journal that is not what was written. What it
// was about to apply, if anything, cannot be known any more.
func damaged(err error) error {
	if !errors.As(err, new(*journal.DamageError)) {
		return err
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.NewRun,
		First: "another program changed the journal, so the run cannot be resumed: inspect the tree, and move the journal away"}}
}

// NoHome says what to do about a folder whose runs cannot be opened.
func NoHome(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return loop.Usage("no runs found in "+dir, "hone demo, or: hone help")
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.Doctor}}
}

// FindRoot is the workspace that a folder belongs to: the nearest folder with
// runs, up to its repository's top; else that, else the folder itself.
func FindRoot(dir string) (string, error) {
	abs, err := loop.Folder(dir)
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
