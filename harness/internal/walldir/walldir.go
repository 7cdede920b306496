// Package walldir keeps the directories outside the tree that walls need: one for
// each session, with the HOME and the caches of its commands, and those for what
// commands put in place of protected files, which outlive a process that is killed.
package walldir

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hone"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/wall"
)

// Dir is the directory outside the tree that has the HOME, the TMPDIR and the caches
// of commands behind walls. Each session has its own.
type Dir struct {
	Path  string
	Aside string // for what commands put in place of protected files; it outlives the session
	locks []*os.File
}

// runPrefix starts the names of the directories that are removed when their
// process has ended.
const runPrefix = "run-"

// New creates a directory that only the user can read, and removes those
// of processes that were killed.
func New(root, id string) (*Dir, error) {
	base, err := cacheBase(root)
	if err != nil {
		return nil, err
	}
	removeStale(base)
	f := &Dir{}
	if f.Path, err = os.MkdirTemp(base, runPrefix+id+"-*"); err != nil {
		return nil, err
	}
	if lock, ok := tryLock(f.Path); ok {
		f.locks = append(f.locks, lock)
	}
	if f.Aside, err = f.claimAside(base, root); err != nil {
		f.Remove()
		return nil, err
	}
	return f, nil
}

// cacheBase returns hone's directory in the user's cache. It must not be where
// commands may write anyway.
func cacheBase(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &hone.Stop{Kind: hone.KindFailed, Why: "there is no cache directory for commands behind walls", Err: err,
			Next: hone.Next{First: "set XDG_CACHE_HOME to a directory outside the tree"}}
	}
	base := filepath.Join(cache, "hone")
	if err = os.MkdirAll(base, 0o700); err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return "", &hone.Stop{Kind: hone.KindFailed, Why: "there is no cache directory for commands behind walls", Err: err,
			Next: hone.Next{First: "set XDG_CACHE_HOME to a writable directory"}}
	}
	if rel, err := filepath.Rel(root, base); err == nil && filepath.IsLocal(rel) {
		return "", loop.Usage(fmt.Sprintf("your cache directory %s is inside the tree %s, which commands may change", base, root),
			"set XDG_CACHE_HOME to a directory outside the tree")
	}
	return base, nil
}

// maxAsides limits how many processes can keep walls around one tree at the
// same time.
const maxAsides = 64

// asidePrefix returns how the names of the tree's directories for what walls put
// aside begin; a number follows.
func asidePrefix(base, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(base, "aside", fmt.Sprintf("%x-", sum[:8]))
}

// Recover restores the protected files of a tree that commands changed, if the hone
// that ran them died before it could. It does not touch the files of a hone that is
// still alive. The error is a *hone.Stop.
func Recover(root string) ([]sandbox.Restored, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil // then there were no walls
	}
	base, err := filepath.EvalSymlinks(filepath.Join(cache, "hone"))
	if err != nil {
		return nil, nil
	}
	prefix := asidePrefix(base, root)
	asides, _ := os.ReadDir(filepath.Dir(prefix)) // there may be none yet
	var all []sandbox.Restored
	for _, entry := range asides {
		aside := filepath.Join(filepath.Dir(prefix), entry.Name())
		if !strings.HasPrefix(aside, prefix) {
			continue
		}
		restored, err := recoverAside(aside)
		all = append(all, restored...)
		if err != nil {
			return all, &hone.Stop{Kind: hone.KindBlocked, Why: "a file that a command changed could not be restored", Err: err}
		}
	}
	return all, nil
}

// recoverAside restores from one directory, unless a process uses it.
func recoverAside(aside string) ([]sandbox.Restored, error) {
	lock, ok := tryLock(aside)
	if !ok {
		return nil, nil
	}
	defer lock.Close()
	return wall.Recover(aside)
}

// claimAside locks one of the tree's directories for what walls put aside.
// Their names never change, so that the next process on the same tree finds
// what a killed process could not restore.
func (f *Dir) claimAside(base, root string) (string, error) {
	for n := range maxAsides {
		dir := asidePrefix(base, root) + strconv.Itoa(n)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if lock, ok := tryLock(dir); ok {
			f.locks = append(f.locks, lock)
			return dir, nil
		}
	}
	dir := filepath.Join(f.Path, "aside")
	return dir, os.MkdirAll(dir, 0o700)
}

// Remove removes the directory with everything that commands left in it, but
// not what was put aside.
func (f *Dir) Remove() {
	_ = removeTree(f.Path)
	for _, l := range f.locks {
		l.Close()
	}
}

// maxUnlockedAge is how long a directory may exist before it is locked.
const maxUnlockedAge = time.Minute

// removeStale removes the directories of processes that have ended. It leaves
// what it cannot remove for the next time.
func removeStale(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), runPrefix) || time.Since(info.ModTime()) < maxUnlockedAge {
			continue
		}
		dir := filepath.Join(base, e.Name())
		if lock, ok := tryLock(dir); ok {
			_ = removeTree(dir)
			lock.Close()
		}
	}
}

// removeTree removes a directory, even if it contains directories that their
// owner may not write, such as a module cache.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
