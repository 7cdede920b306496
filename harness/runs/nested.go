package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"hone"

	"hone/harness/internal/state"
	"hone/internal/git"
	"hone/journal"
)

// Two runs in one tree would take each other's changes for the user's or their own. So
// hone does not enter a workspace while another one above or below it is locked. To find
// workspaces above, it tries the directories on the path. To find those below, it searches
// no tree: each locked workspace has a file with its path in the state folder.
//
// A process locks and registers its workspace before it looks for others, so that of
// two that start at the same time at least one sees the other. It sees processes of other
// users, and those with another state folder, only above its own directory.

// registeredDir is the directory of these files in the state folder.
const registeredDir = "locked"

// register records that the workspace is locked, until closeHome. It does nothing if
// the state folder cannot be written, as on a full disk. Nobody is locked after a power
// failure, so that the file need not survive one.
func (w *Workspace) register() {
	dir, err := state.Make(registeredDir)
	if err != nil {
		w.orphaned = true // it may be
		return
	}
	file := filepath.Join(dir, homeName(w.Dir))
	if _, err := os.Lstat(file); err == nil {
		w.orphaned = true
	}
	if state.WriteCache(file, []byte(w.Dir)) == nil {
		w.registered = file
	}
}

// registeredDirs returns the workspaces that are locked, or whose process was killed. It
// forgets those that no longer exist, and reports whether there were any.
func registeredDirs() (dirs []string, lost bool) {
	dir, err := state.Find(registeredDir)
	if err != nil {
		return nil, false
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(file)
		if err != nil || !filepath.IsAbs(string(b)) {
			continue // it is being written, or was just removed
		}
		if _, err := os.Lstat(string(b)); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(file)
			lost = true
			continue
		}
		dirs = append(dirs, string(b))
	}
	return dirs, lost
}

// checkNested returns an error if another hone works above or below a workspace.
func (w *Workspace) checkNested(ctx context.Context) error {
	dir := w.Dir
	for at := dir; at != filepath.Dir(at); {
		at = filepath.Dir(at)
		if run, ok := working(at); ok && isPart(ctx, dir, at) {
			return nestedError(at, run)
		}
	}
	others, lost := registeredDirs()
	w.orphaned = w.orphaned || lost // it may have been this one, under another name
	for _, other := range others {
		rel, err := filepath.Rel(dir, other)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			continue
		}
		if run, ok := working(other); ok && isPart(ctx, other, dir) {
			return nestedError(other, run)
		}
	}
	return nil
}

// working reports whether another hone of the user works in a directory, and on which run.
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

// isPart reports whether the files of a directory belong to a workspace above it. Those
// that git ignores do not, such as work trees of the same repository in an ignored
// directory.
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
