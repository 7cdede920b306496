package gitdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// RefsUnchanged reports whether the branches, tags, stashes and HEAD of a repository are certainly
// as they were at a time; dotGit is its .git. No program can choose the times that it looks at.
func RefsUnchanged(dotGit string, since time.Time) bool {
	dir := dotGit
	if link := Link(dotGit); link != "" {
		dir = link
	}
	since = since.Add(-settled)
	changed := errors.New("changed")
	look := func(path string, _ fs.DirEntry, err error) error {
		at, _, statErr := stampOf(path)
		if err = errors.Join(err, statErr); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || at.changed == 0 || at.changed >= since.UnixNano() {
			return changed
		}
		return nil
	}
	common := Common(dir)
	for _, path := range []string{filepath.Join(dir, "HEAD"), filepath.Join(common, "refs"), filepath.Join(common, "packed-refs"),
		filepath.Join(common, "reftable"), filepath.Join(common, "logs", "refs", "stash")} {
		if filepath.WalkDir(path, look) != nil {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}
