package runs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone"
	"hone/harness/internal/state"
	"hone/internal/git"
	"hone/internal/transient"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
)

// HomePath returns the path of the home of a workspace, where its runs are recorded;
// it need not exist. It is a directory in the user's state folder once commands
// ran behind landlock there, and otherwise .hone in the workspace. The state folder
// comes first because no command can write it.
func HomePath(dir string) string {
	if outside, err := state.Find("homes", homeName(dir)); err == nil && isDir(outside) {
		return outside
	}
	return filepath.Join(dir, journal.HomeName)
}

// RemoveHome removes the home of a workspace if it is outside the workspace. Errors are
// ignored.
func RemoveHome(dir string) {
	if home := HomePath(dir); filepath.Dir(home) != dir {
		_ = os.RemoveAll(home)
	}
}

// maxHomeName is how many characters of a directory's name are part of [homeName].
const maxHomeName = 40

// The name begins with that of the workspace, for the user.
func homeName(dir string) string {
	name := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' {
			return '_'
		}
		return r
	}, filepath.Base(dir))
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("%s-%x", name[:min(len(name), maxHomeName)], sum[:8])
}

// A link to a directory is none.
func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// Open opens the home of the workspace that a directory belongs to, for reading.
// A repository that git refuses as another user's is not an error. The caller closes
// the home.
func Open(dir string) (*journal.Home, error) { return openHome(dir, git.Top) }

func openHome(dir string, topOf func(string) (string, error)) (*journal.Home, error) {
	root, err := findRoot(dir, topOf)
	if err != nil {
		return nil, err
	}
	home, err := journal.FindHomeAt(root, HomePath(root))
	if err != nil {
		return nil, noHome(root, err)
	}
	return home, nil
}

// ErrNone is part of an error about a directory in which no run was recorded.
var ErrNone = errors.New("no runs")

func noHome(dir string, err error) error {
	if transient.Is(err) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(loop.Usage("no runs found in "+dir, "cd to the directory in which the run was started, or name it with -C DIR"), ErrNone)
	}
	if old := (*journal.OldError)(nil); errors.As(err, &old) {
		return loop.Usage(old.Error(), "move it away; to show, undo or resume its runs, use that hone")
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.Doctor}}
}

func checkHome(home string) error {
	info, err := os.Lstat(home)
	if err != nil {
		return nil // it is created, or opening it reports the error
	}
	if uid, ok := sandbox.FileOwner(info); ok && uid != os.Geteuid() {
		return loop.Usage(fmt.Sprintf("%s belongs to user %d, not to you: that user decides what is in it", home, uid), "move it away")
	}
	return nil
}

func (w *Workspace) lockHome(ctx context.Context, create bool) (err error) {
	// A workspace that is refused gets no home.
	if err := w.checkNested(ctx); err != nil {
		return err
	}
	open := journal.FindHomeAt
	if create {
		open = journal.OpenHomeAt
	}
	for {
		path := HomePath(w.Dir)
		if err := checkHome(path); err != nil {
			return err
		}
		if w.Home, err = open(w.Dir, path); err != nil {
			return noHome(w.Dir, err)
		}
		if w.Home.Owner, w.Unbound = owner(w.Dir, w.Home); transient.Is(w.Unbound) {
			return w.Unbound
		}
		w.Lock, err = w.Home.Lock()
		moved := w.moved()
		if err != nil && !moved {
			return err
		}
		if !moved {
			break
		}
		w.closeHome()
	}
	w.register()
	return w.checkNested(ctx)
}

// Another process may have moved the home before this one locked it: then there may be no lock, either.
func (w *Workspace) moved() bool { return HomePath(w.Dir) != w.Home.Dir() }

func (w *Workspace) closeHome() {
	if w.registered != nil {
		w.registered.Close()
		if !w.orphaned { // else the next process looks for what an earlier one left running
			_ = os.Remove(w.registered.Name())
		}
		w.registered = nil
	}
	if w.Lock != nil {
		w.Lock.Unlock()
	}
	if w.Home != nil {
		w.Home.Close()
	}
	w.Lock, w.Home = nil, nil
}

// LeaveTree moves the home, with the journal that this process has open, to the state
// folder, where commands that can write the whole tree do not reach it. It fails if git
// tracks the home or the state folder cannot be used; then the home stays.
func (w *Workspace) LeaveTree(ctx context.Context, j *journal.Journal) error {
	if err := w.checkUntracked(ctx); err != nil {
		return err
	}
	homes, err := state.Make("homes")
	if err != nil {
		return err
	}
	return w.Home.Move(filepath.Join(homes, homeName(w.Dir)), w.Lock, j)
}
