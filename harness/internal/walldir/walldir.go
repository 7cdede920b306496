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
	"strings"
	"syscall"

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
// of commands. Each session has its own.
type Dir struct {
	Path         string
	Aside        string // for the records of what commands changed, and what they put in place of protected files; all sessions share it
	Repositories string // for the record of what git must not obey; it is recovered if the process is killed
	unlock       []func()
}

const runPrefix = "run-"

// New creates directories that only the user can read.
func New(root, id string) (*Dir, error) {
	if err := CheckState(root); err != nil {
		return nil, err
	}
	base, err := cacheBase(root)
	if err != nil {
		return nil, err
	}
	f := &Dir{}
	// What must be restored before a configuration is read is in the cache only if the state folder cannot be used.
	if f.Aside, err = state.Make(guards); err != nil {
		f.Aside = filepath.Join(base, guards)
		err = os.MkdirAll(f.Aside, 0o700)
	}
	if err == nil {
		f.Path, err = f.claim(base, runPrefix+id+"-")
	}
	if err == nil {
		f.Repositories, err = f.claim(f.Aside, treePrefix(root))
	}
	if err != nil {
		f.Remove()
		return nil, err
	}
	return f, nil
}

// claim creates a directory, and locks it for this process: another process recovers it when it is no longer locked.
func (f *Dir) claim(parent, prefix string) (string, error) {
	for {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return "", err
		}
		unlock, err := sandbox.Lock(dir)
		if unlock != nil {
			f.unlock = append(f.unlock, unlock)
		}
		if _, gone := os.Lstat(dir); gone == nil && !errors.Is(err, syscall.EWOULDBLOCK) { // otherwise it was recovered before it was locked
			return dir, nil
		}
	}
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

const guards = "guards"

func allGuards() []string {
	var found []string
	if dir, err := state.Dir(); err == nil {
		found = append(found, dir)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		found = append(found, filepath.Join(cache, "hone"))
	}
	for i, dir := range found {
		found[i], _ = filepath.EvalSymlinks(filepath.Join(dir, guards))
	}
	return slices.DeleteFunc(found, func(dir string) bool { return dir == "" })
}

func treePrefix(root string) string {
	sum := sha256.Sum256([]byte(root))
	return fmt.Sprintf("tree-%x-", sum[:8])
}

// It must not be where commands may write anyway.
func cacheBase(root string) (string, error) {
	base, err := os.UserCacheDir()
	if err == nil {
		base = filepath.Join(base, "hone")
		err = os.MkdirAll(base, 0o700)
	}
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return "", &hone.Stop{Kind: hone.KindFailed, Why: "there is no cache directory for commands", Err: err,
			Next: hone.Next{First: "set XDG_CACHE_HOME to a writable directory outside the tree"}}
	}
	if rel, err := filepath.Rel(root, base); err == nil && filepath.IsLocal(rel) {
		return "", loop.Usage(fmt.Sprintf("your cache directory %s is inside the tree %s, which commands may change", base, root),
			"set XDG_CACHE_HOME to a directory outside the tree")
	}
	return base, nil
}

// Recover restores the protected files of a tree that commands changed, and takes away the
// repositories that they made and git would obey, if the hone that ran them died before it
// could. It returns a note for the user about each. It also removes the placeholders and the
// directories of all processes that were killed. It does not touch the files
// of a hone that is still alive. The error is a *hone.Stop.
func Recover(root string) (notes []string, err error) {
	if cache, err := os.UserCacheDir(); err == nil {
		abandoned(filepath.Join(cache, "hone", runPrefix), func(dir string) { _ = clone.Remove(dir) }) // or the next time
	}
	const died = "an earlier hone died during a command: "
	for _, aside := range allGuards() {
		restored, err := putback.Recover(aside, root)
		for _, r := range restored {
			notes = append(notes, died+r.Note())
		}
		abandoned(filepath.Join(aside, treePrefix(root)), func(dir string) {
			moved, failed := gitdir.Recover(context.Background(), dir, git.Unlink)
			for _, r := range Repositories(moved) {
				notes = append(notes, died+r.Note())
			}
			if failed == nil {
				failed = os.RemoveAll(dir)
			}
			err = errors.Join(err, failed)
		})
		if transient.Is(err) {
			return notes, err
		}
		if err != nil {
			return notes, &hone.Stop{Kind: hone.KindBlocked, Why: "cannot restore what a command changed", Err: err}
		}
	}
	return notes, nil
}

// abandoned calls do with the directories that no process that is alive has claimed.
func abandoned(prefix string, do func(dir string)) {
	entries, _ := os.ReadDir(filepath.Dir(prefix))
	for _, e := range entries {
		dir := filepath.Join(filepath.Dir(prefix), e.Name())
		if !strings.HasPrefix(dir, prefix) {
			continue
		}
		if unlock, err := sandbox.Lock(dir); err == nil {
			do(dir)
			unlock()
		}
	}
}

// Repositories returns what became of repositories in the form of a command's result.
func Repositories(moved []gitdir.Moved) (all []sandbox.Repository) {
	for _, m := range moved {
		all = append(all, sandbox.Repository{Path: m.Path, Link: m.Link, Why: m.Why, MovedTo: m.To})
	}
	return all
}

// Explain returns the error of a command, or, if what the walls need outside the tree was
// removed while they were in use, a *hone.Stop that says so.
func (f *Dir) Explain(err error) error {
	for _, dir := range []string{f.Path, f.Repositories} {
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
	if f.Path != "" {
		_ = clone.Remove(f.Path)
	}
	_ = os.Remove(f.Repositories) // unless it has a record
	for _, unlock := range f.unlock {
		unlock()
	}
}
