package harness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hone"
	"hone/loop"
)

// wallFolder is where commands behind walls have their HOME, TMPDIR and
// caches, outside of the tree: a folder for one run of this process.
type wallFolder struct {
	dir   string
	aside string // what commands left in the place of protected files; it outlives the run
	locks []*os.File
}

// runPrefix begins the names of the folders that are removed when their
// process is gone.
const runPrefix = "run-"

// newWallFolder makes a folder, for the user alone, and clears away those
// whose process was killed.
func newWallFolder(root, id string) (*wallFolder, error) {
	base, err := wallBase(root)
	if err != nil {
		return nil, err
	}
	sweep(base)
	f := &wallFolder{}
	if f.dir, err = os.MkdirTemp(base, runPrefix+id+"-*"); err != nil {
		return nil, err
	}
	if lock, ok := claim(f.dir); ok {
		f.locks = append(f.locks, lock)
	}
	if f.aside, err = f.claimAside(base, root); err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

// wallBase is hone's folder in the user's cache. It must not lie where
// commands may write anyway.
func wallBase(root string) (string, error) {
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

// mostAsides is how many processes may work behind walls on one tree at a time.
const mostAsides = 64

// claimAside takes one of the tree's folders for what is put aside. They have
// lasting names, so that what a killed process could not put back is found by
// the next one on the same tree.
func (f *wallFolder) claimAside(base, root string) (string, error) {
	sum := sha256.Sum256([]byte(root))
	for n := range mostAsides {
		dir := filepath.Join(base, "aside", fmt.Sprintf("%x-%d", sum[:8], n))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if lock, ok := claim(dir); ok {
			f.locks = append(f.locks, lock)
			return dir, nil
		}
	}
	dir := filepath.Join(f.dir, "aside")
	return dir, os.MkdirAll(dir, 0o700)
}

// remove removes the folder with all that commands left there. What was put
// aside stays.
func (f *wallFolder) remove() {
	_ = removeTree(f.dir)
	for _, l := range f.locks {
		l.Close()
	}
}

// young is how long a folder may be without its lock, between being made and
// being taken.
const young = time.Minute

// sweep removes the folders of processes that are gone. What cannot be removed
// is left for the next time.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), runPrefix) || time.Since(info.ModTime()) < young {
			continue
		}
		dir := filepath.Join(base, e.Name())
		if lock, ok := claim(dir); ok {
			_ = removeTree(dir)
			lock.Close()
		}
	}
}

// removeTree removes a folder, also one with folders in it that their owner
// may not write, such as a module cache.
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
