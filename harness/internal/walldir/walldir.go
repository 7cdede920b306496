// Package walldir keeps the directories outside the tree that walls need. In the user's
// cache, each session has one with the HOME and the caches of its commands. In the state
// folder are those with what must survive a killed process.
package walldir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone"
	"hone/harness/internal/state"
	"hone/internal/git"
	"hone/internal/gitdir"
	"hone/internal/transient"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/putback"
	"hone/workspace/clone"
)

// Dir is the directory outside the tree that has the HOME, the TMPDIR and the caches
// of commands, and the records of what they changed. Each session has its own.
type Dir struct {
	Path    string
	Aside   string // for what commands put in place of protected files; it outlives the session
	Records string // for the records of placeholders; all sessions share it
	locks   []*os.File
}

// The name of a directory starts with newPrefix until its process has locked it, and then
// with runPrefix. [Recover] removes it when its process no longer has the lock.
const runPrefix, newPrefix = "run-", "new-"

// New creates a directory that only the user can read.
func New(root, id string) (*Dir, error) {
	if err := CheckState(root); err != nil {
		return nil, err
	}
	base, err := cacheBase(root)
	if err != nil {
		return nil, err
	}
	f := &Dir{}
	if f.Path, err = os.MkdirTemp(base, newPrefix+id+"-*"); err != nil {
		return nil, err
	}
	if lock, err := sandbox.LockDir(f.Path); err == nil {
		f.locks = append(f.locks, lock)
	}
	locked := filepath.Join(base, runPrefix+strings.TrimPrefix(filepath.Base(f.Path), newPrefix))
	if err := os.Rename(f.Path, locked); err != nil {
		f.Remove()
		return nil, err
	}
	f.Path = locked
	// What must be restored before a configuration is read is in the cache only if the state folder cannot be used.
	guards, err := state.Make("guards")
	if err != nil {
		guards = base
	}
	f.Records = recordsIn(guards)
	if f.Aside, err = f.claimAside(guards, root); err != nil {
		f.Remove()
		return nil, err
	}
	return f, nil
}

// CheckState returns an error if hone's state folder is in a tree, or the tree in it:
// commands, the model and git add -A would reach the secret that runs and trust depend on.
// It creates nothing.
func CheckState(root string) error {
	if !state.Overlaps(root) {
		return nil
	}
	own, err := state.Dir()
	if err != nil {
		return err
	}
	return loop.Usage(fmt.Sprintf("hone's state folder %s and the tree %s must not contain each other, because commands may change the tree", own, root),
		"set XDG_STATE_HOME to a directory outside the tree")
}

func allGuards() []string {
	var found []string
	if dir, err := state.Dir(); err == nil {
		found = append(found, filepath.Join(dir, "guards"))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		found = append(found, filepath.Join(cache, "hone"))
	}
	for i, dir := range found {
		found[i], _ = filepath.EvalSymlinks(dir)
	}
	return slices.DeleteFunc(found, func(dir string) bool { return dir == "" })
}

func recordsIn(guards string) string { return filepath.Join(guards, "placeholders") }

// It must not be where commands may write anyway.
func cacheBase(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &hone.Stop{Kind: hone.KindFailed, Why: "there is no cache directory for commands", Err: err,
			Next: hone.Next{First: "set XDG_CACHE_HOME to a directory outside the tree"}}
	}
	base := filepath.Join(cache, "hone")
	if err = os.MkdirAll(base, 0o700); err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return "", &hone.Stop{Kind: hone.KindFailed, Why: "there is no cache directory for commands", Err: err,
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

// A number follows.
func asidePrefix(guards, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(guards, "aside", fmt.Sprintf("%x-", sum[:8]))
}

// It asks for each possible name: the directories of other trees may be many.
func asideDirs(guards, root string) (found []string) {
	prefix := asidePrefix(guards, root)
	if _, err := os.Stat(filepath.Dir(prefix)); err != nil {
		return nil // such as in the cache, which is used only without a state folder
	}
	for n := range maxAsides {
		dir := prefix + strconv.Itoa(n)
		if _, err := os.Lstat(dir); err == nil {
			found = append(found, dir)
		}
	}
	return found
}

// Recover restores the protected files of a tree that commands changed, and takes away the
// repositories that they made and git would obey, if the hone that ran them died before it
// could. It returns a note for the user about each. It also removes placeholders that it
// left, and the directories of all processes that were killed. It does not touch the files
// of a hone that is still alive. The error is a *hone.Stop.
func Recover(root string) (notes []string, err error) {
	removeStale()
	for _, guards := range allGuards() {
		err := putback.RecoverPlaceholders(recordsIn(guards), root)
		for _, aside := range asideDirs(guards, root) {
			recovered, failed := recoverAside(aside)
			notes, err = append(notes, recovered...), errors.Join(err, failed)
		}
		if transient.Is(err) {
			return notes, err
		}
		if err != nil {
			return notes, &hone.Stop{Kind: hone.KindBlocked, Why: "cannot restore what a command changed", Err: err}
		}
	}
	return notes, nil
}

func recoverAside(aside string) (notes []string, err error) {
	lock, err := sandbox.LockDir(aside)
	if err != nil { // a process that is alive uses it
		return nil, nil
	}
	defer lock.Close()
	const died = "an earlier hone died during a command: "
	restored, err := putback.Recover(aside)
	for _, r := range restored {
		notes = append(notes, died+r.Note())
	}
	moved, failed := gitdir.Recover(context.Background(), aside, git.Unlink)
	for _, r := range Repositories(moved) {
		notes = append(notes, died+r.Note())
	}
	return notes, errors.Join(err, failed)
}

// Repositories returns what became of repositories in the form of a command's result.
func Repositories(moved []gitdir.Moved) (all []sandbox.Repository) {
	for _, m := range moved {
		all = append(all, sandbox.Repository{Path: m.Path, Link: m.Link, Why: m.Why, MovedTo: m.To})
	}
	return all
}

// The names never change, so that the next process on the same tree finds what a killed process could not restore.
func (f *Dir) claimAside(guards, root string) (string, error) {
	for n := range maxAsides {
		dir := asidePrefix(guards, root) + strconv.Itoa(n)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if lock, err := sandbox.LockDir(dir); err == nil {
			f.locks = append(f.locks, lock)
			return dir, nil
		}
	}
	dir := filepath.Join(f.Path, "aside")
	return dir, os.MkdirAll(dir, 0o700)
}

// Explain returns the error of a command, or, if what the walls need outside the tree was
// removed while they were in use, a *hone.Stop that says so.
func (f *Dir) Explain(err error) error {
	for _, dir := range []string{f.Path, f.Aside} {
		if _, gone := os.Lstat(dir); errors.Is(gone, fs.ErrNotExist) {
			return &hone.Stop{Kind: hone.KindFailed, Why: dir + " was removed or unmounted while hone used it", Err: err,
				Next: hone.Next{First: "make HOME and hone's folders in it available again", Verb: hone.Resume}}
		}
	}
	return err
}

// Remove removes the directory with everything that commands left in it, but
// not what was put aside.
func (f *Dir) Remove() {
	_ = clone.Remove(f.Path)
	for _, l := range f.locks {
		l.Close()
	}
}

// maxUnlockedAge is how long a directory may exist before it is locked.
const maxUnlockedAge = time.Minute

// What cannot be removed stays for the next time.
func removeStale() {
	cache, err := os.UserCacheDir()
	if err != nil {
		return
	}
	base := filepath.Join(cache, "hone")
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		removable := strings.HasPrefix(e.Name(), runPrefix) // its process has locked it before
		if strings.HasPrefix(e.Name(), newPrefix) {
			info, err := e.Info()
			removable = err == nil && time.Since(info.ModTime()) > maxUnlockedAge
		}
		if !e.IsDir() || !removable {
			continue
		}
		if lock, err := sandbox.LockDir(dir); err == nil {
			_ = clone.Remove(dir)
			lock.Close()
		}
	}
}
