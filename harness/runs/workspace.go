// Package runs finds the workspace of a directory, locks it, and opens what was
// recorded there. It says which runs are the user's: only these, and runs that the
// user accepted, are resumed, undone or settled. It also writes a run to a file and
// imports one, as [hone/journal/bundle] describes.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone"
	"hone/harness/internal/walldir"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/listing"
	"hone/internal/transient"
	"hone/journal"
	"hone/loop"
	"hone/sandbox/wall"
	"hone/workspace"
)

// Workspace is a directory that this process has locked: no other hone works in
// it, above it or below it.
type Workspace struct {
	Dir  string    // absolute, without symbolic links
	Repo *git.Repo // the repository whose top Dir is; nil if there is none
	Home *journal.Home
	Tree *workspace.Tree // the files that git lists
	// Keeper ends commands that run without walls when this process ends.
	Keeper *wall.Keeper
	// Notes are for the user: which last run was left as it is because it is not
	// the user's.
	Notes []hone.Notice
	// Lock is that of the home. Its last run is empty if that is not the user's.
	Lock *journal.Lock
	// Unbound is why new runs cannot be bound to the user, so that resuming or undoing them
	// needs hone trust; nil if they can.
	Unbound error

	registered *os.File // the locked file that says that the workspace is locked; nil if there is none
	orphaned   bool     // an earlier process may have died here, and left commands running
	asked      bool     // git was asked whether it tracks .hone
	tracked    error    // of checkUntracked, if git was asked
}

// Enter opens and locks a directory, and completes the edits that an earlier
// process of the user had started to apply. If create is set it creates hone's own
// directory if that does not exist.
func Enter(ctx context.Context, dir string, create bool) (*Workspace, error) {
	w := &Workspace{Dir: dir}
	err := w.open(ctx, create)
	if err == nil {
		err = w.settleLastRun(ctx)
	}
	if err != nil {
		w.Close()
		return nil, explainLocked(err)
	}
	return w, nil
}

func (w *Workspace) open(ctx context.Context, create bool) (err error) {
	// First, because git itself reads files that a command may have written.
	recovered, err := walldir.Recover(w.Dir)
	if err != nil {
		return err
	}
	for _, text := range recovered {
		w.Notes = append(w.Notes, hone.Notice{Text: text})
	}
	if w.Repo, err = listing.Repository(w.Dir, w.Dir); err != nil {
		return err
	}
	if err := w.lockHome(ctx, create); err != nil {
		return err
	}
	w.endEarlier()
	w.Tree, err = OpenTree(w.Dir)
	return err
}

// The earlier process has ended, because this one has the lock. All processes are searched only if it died: one that unlocks
// its workspace has ended its commands.
func (w *Workspace) endEarlier() {
	w.Keeper = wall.NewKeeper(w.Dir)
	if !w.orphaned {
		return
	}
	w.orphaned = false
	programs := w.Keeper.EndEarlier()
	if len(programs) == 0 {
		return
	}
	slices.Sort(programs)
	const most = 5
	var names []string
	for _, program := range slices.Compact(slices.Clone(programs)) {
		names = append(names, strconv.Quote(program))
	}
	w.Notes = append(w.Notes, hone.Notice{Text: fmt.Sprintf("an earlier hone died during a command; this one stopped what it left running: %s (processes: %d)", strings.Join(names[:min(len(names), most)], ", "), len(programs))})
}

// OpenTree opens the tree of a directory without locking it. The tree has the
// files that git does not ignore, and the ignored files that match the globs.
func OpenTree(dir string, include ...string) (*workspace.Tree, error) {
	list, err := listing.Of(dir, dir, include...)
	if err != nil {
		return nil, err
	}
	return workspace.Open(dir, workspace.Options{List: list})
}

// Use makes the tree that of a run: with the ignored files that the run includes, and
// without reading files that it does not store. Call it before the tree is listed for the
// first time.
func (w *Workspace) Use(v config.Values) (err error) {
	if include := config.Include.In(v); len(include) > 0 {
		tree, openErr := OpenTree(w.Dir, include...)
		if openErr != nil {
			return openErr
		}
		err = w.Tree.Close()
		w.Tree = tree
	}
	w.Tree.ReadUpTo(config.MaxFile.In(v))
	return err
}

// Close unlocks the workspace.
func (w *Workspace) Close() {
	w.Keeper.Close()
	if w.Tree != nil {
		w.Tree.Close()
	}
	w.closeHome()
}

// Working returns the run on which another hone works in a directory, and how it
// was started; ok is false if none does. While a run's commands run, the directory's
// configuration may be a command's, and only the run's own settings count.
func Working(dir string) (run string, start hone.Start, ok bool) {
	home, err := journal.FindHomeAt(dir, HomePath(dir))
	if err != nil {
		return "", start, false
	}
	defer home.Close()
	if run, ok = home.LockedRun(); !ok {
		return "", start, false
	}
	if events, err := home.Read(run); err == nil {
		start, _ = Started(run, events) // zero until it is recorded
	}
	return run, start, true
}

func explainLocked(err error) error {
	var held *journal.LockedError
	if errors.As(err, &held) {
		return &hone.UsageError{Why: held.Error(), Next: waitOrFollow("")}
	}
	return explainDamaged(err)
}

// An empty dir means the user's directory.
func waitOrFollow(dir string) hone.Next {
	return hone.Next{First: "wait for it, stop it, or follow it", Verb: hone.Watch, Dir: dir}
}

// What the run was about to apply is unknown.
func explainDamaged(err error) error {
	if !errors.As(err, new(*journal.DamageError)) || transient.Is(err) {
		return err
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.NewRun, First: cmp.Or(OtherVersion(err),
		"another program changed the journal, so the run cannot be resumed: inspect the tree, and move the journal away")}}
}

// OtherVersion returns what the user can do about a journal that another version of hone
// wrote; empty if err is another error.
func OtherVersion(err error) string {
	if damage, ok := errors.AsType[*journal.DamageError](err); !ok || damage.Format == 0 {
		return ""
	}
	return "another version of hone wrote this journal: use that version, or move the journal away"
}

// FindRoot returns the workspace of a directory: the nearest directory with runs, from dir
// upwards. In a repository, the search ends at its top, which is the workspace if there
// are none. Outside a repository, it ends at the user's home directory, or at dir if that
// is not below it; dir is the workspace if there are none.
func FindRoot(dir string) (string, error) { return findRoot(dir, git.Root) }

func findRoot(dir string, topOf func(string) (string, error)) (string, error) {
	abs, err := loop.AbsDir(dir)
	if err != nil {
		return "", err
	}
	top, err := topOf(abs)
	without := top
	if errors.Is(err, git.ErrNotRepository) {
		top, without, err = abs, abs, nil
		home, noHome := os.UserHomeDir() // above that, other users can write
		if noHome == nil {
			home, noHome = filepath.EvalSymlinks(home)
		}
		if below, outside := filepath.Rel(home, abs); noHome == nil && outside == nil && filepath.IsLocal(below) && home != filepath.Dir(home) {
			top = home
		}
	}
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		if info, err := os.Lstat(HomePath(at)); err == nil && info.IsDir() {
			return at, nil
		} else if transient.Is(err) {
			return "", err
		}
		if at == top {
			return without, nil
		}
	}
}
