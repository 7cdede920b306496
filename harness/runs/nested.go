package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"

	"hone/harness/internal/state"
	"hone/internal/git"
	"hone/journal"
)

// Two runs in one tree would take each other's changes for the user's or their own. So
// hone does not enter a workspace while another one above or below it is locked. To find
// workspaces above, it tries the directories on the path. For all others it searches
// no tree: each locked workspace has a file in the state folder that says where its files
// are, so that it is found through bind mounts as well. Its process has that file locked.
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
	if err = f.Truncate(0); err != nil {
		return
	}
	var text strings.Builder // registrations reads it
	for _, p := range places(w.Dir) {
		text.WriteString(p.At + "\x00" + p.In + "\x00")
	}
	_, _ = f.WriteString(text.String())
}

// Files that no longer exist are forgotten; lost reports whether there were any.
func (w *Workspace) registrations() (locked [][]place, lost bool) {
	dir, err := state.Find(registeredDir)
	if err != nil {
		return nil, false
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(file)
		var all []place
		for pair := range slices.Chunk(strings.Split(string(b), "\x00"), 2) {
			if len(pair) == 2 && filepath.IsAbs(pair[0]) {
				all = append(all, place{pair[0], pair[1]})
			}
		}
		if err != nil || len(all) == 0 || all[0].At == w.Dir {
			continue // it is being written, was just removed, or is this one
		}
		_, err = os.Lstat(all[0].At)
		switch {
		case journal.IsLocked(file):
			locked = append(locked, all)
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
	if len(others) == 0 {
		return nil
	}
	own := places(dir)
	for _, other := range others {
		if shares(ctx, own, other) || shares(ctx, other, own) {
			run, _ := working(other[0].At)
			return nestedError(other[0].At, run)
		}
	}
	return nil
}

// place is a directory with files of a workspace: the workspace itself, which is the first of its
// places, or a mount point in it.
type place struct {
	At string // its path
	In string // its file system and its path there, which bind mounts do not change; At if that is unknown
}

func shares(ctx context.Context, all, other []place) bool {
	for _, p := range all {
		for _, q := range other {
			rel, err := filepath.Rel(p.In, q.In)
			if err == nil && filepath.IsLocal(rel) && isPart(ctx, filepath.Join(p.At, rel), all[0].At) {
				return true
			}
		}
	}
	return false
}

// The path has no symbolic links. Only Linux tells the file systems.
func places(dir string) []place {
	all := []place{{dir, dir}}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	f, openErr := os.Open(dir)
	if err != nil || openErr != nil {
		return all
	}
	defer f.Close()
	own, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	_, id, _ := strings.Cut(string(own), "mnt_id:")
	id, _, _ = strings.Cut(strings.TrimSpace(id), "\n")
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line) // number, parent, device, path in the file system, mount point
		if len(fields) < 5 {
			continue
		}
		at, in := escapes.Replace(fields[4]), fields[2]+escapes.Replace(fields[3])
		rel, err := filepath.Rel(at, dir)
		below, belowErr := filepath.Rel(dir, at)
		switch {
		case fields[0] == id && err == nil:
			all[0].In = filepath.Join(in, rel)
		case belowErr == nil && below != "." && filepath.IsLocal(below):
			all = append(all, place{at, in})
		}
	}
	return all
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
