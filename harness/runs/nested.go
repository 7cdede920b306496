package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hone"

	"hone/harness/internal/state"
	"hone/internal/git"
	"hone/journal"
)

// Two runs in one tree would take each other's changes for the user's or their own. So
// hone does not enter a workspace while another one above or below it is locked. To find
// workspaces above, it tries the directories on the path. To find those below it searches
// no tree: each locked workspace has a file in the state folder with its path. Its process
// has that file locked.
//
// A process locks and registers its workspace before it looks for others, so that of
// two that start at the same time at least one sees the other. It sees processes of other
// users, and those with another state folder, only above its own directory.

// registeredDir is the directory of these files in the state folder.
const registeredDir = "locked"

// On a full disk, say, the state folder cannot be written, and nothing is registered. The file need
// not survive a power failure, because no lock does.
func (w *Workspace) register() {
	dir, err := state.Make(registeredDir)
	if err != nil {
		w.orphaned = true // it may be
		return
	}
	name := filepath.Join(dir, homeName(w.Dir))
	if _, err := os.Lstat(name); err == nil {
		w.orphaned = true
	}
	// A process that looks at the file shares its lock for a moment, as in [journal.Home.Lock].
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	f, err := journal.LockFile(ctx, name)
	if err != nil {
		return
	}
	w.registered = f
	if f.Truncate(0) == nil {
		_, _ = f.WriteString(w.Dir + "\x00") // registrations reads it
	}
}

// Files that no longer exist are forgotten; lost reports whether there were any.
func (w *Workspace) registrations() (locked []string, lost bool) {
	dir, err := state.Find(registeredDir)
	if err != nil {
		return nil, false
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(file)
		other, whole := strings.CutSuffix(string(b), "\x00")
		if err != nil || !whole || other == w.Dir {
			continue // it is being written, was just removed, or is this one
		}
		_, err = os.Lstat(other)
		switch {
		case journal.IsLocked(file):
			locked = append(locked, other)
		case errors.Is(err, fs.ErrNotExist):
			_ = os.Remove(file)
			lost = true
		}
	}
	return locked, lost
}

func (w *Workspace) checkNested(ctx context.Context) error {
	dir := w.Dir
	for at := dir; at != filepath.Dir(at); {
		at = filepath.Dir(at)
		if run, ok := working(at); ok && isPart(ctx, dir, at) {
			return nestedError(at, run)
		}
	}
	others, lost := w.registrations()
	w.orphaned = w.orphaned || lost // it may have been this one, under another name
	for _, other := range others {
		if rel, err := filepath.Rel(dir, other); err == nil && filepath.IsLocal(rel) && isPart(ctx, other, dir) {
			run, _ := working(other)
			return nestedError(other, run)
		}
	}
	return nil
}

func working(dir string) (run string, ok bool) {
	path := HomePath(dir)
	if !isDir(path) || checkHome(path) != nil {
		return "", false
	}
	home, err := journal.FindHomeAt(dir, path)
	if err != nil {
		return "", false
	}
	defer home.Close()
	return home.LockedRun()
}

// Files that git ignores do not belong to it, such as work trees of the same repository in an ignored directory.
func isPart(ctx context.Context, dir, above string) bool {
	top, err := git.Root(above)
	if err != nil {
		return true
	}
	repo, err := git.OpenAt(top)
	if err != nil {
		return true
	}
	ignored, err := repo.Ignores(ctx, dir)
	return err != nil || !ignored
}

func nestedError(dir, run string) error {
	why := "another hone is working in " + dir
	if run != "" {
		why += ", on run " + run
	}
	return &hone.UsageError{Why: why + ": a run locks out runs above and below its directory", Next: waitOrFollow(dir)}
}
