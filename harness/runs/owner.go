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
	"time"

	"hone"
	"hone/harness/internal/state"
	"hone/history"
	"hone/internal/git"
	"hone/journal"
	"hone/loop"
)

// Only runs of this user on this machine are resumed, undone or settled, and
// those that the user accepted. Others may have been planted: by a repository, by
// another user, or by a command that reached .hone.

// If the state folder cannot be used the owner has no key, and the error says why.
func owner(dir string, home *journal.Home) (*journal.Owner, error) {
	key, err := state.Key("runs")
	return &journal.Owner{Key: key,
		Accepted: func(run string) string {
			var a acceptance
			if state.Load(&a, acceptedDir, acceptanceFile(dir, run)) != nil || a.Dir != dir || a.Run != run {
				return ""
			}
			return a.Head
		},
		Imported: func(run string) string { return home.Imported(run).Head }}, err
}

// trackedTimeout is the maximum duration of the question whether git tracks .hone.
const trackedTimeout = 10 * time.Second

// trackedError says that git tracks the home, so that its runs came with the
// repository.
type trackedError struct{ error }

func (e trackedError) Unwrap() error { return e.error }

// git can only track a home in the tree.
func checkUntracked(ctx context.Context, dir, home string) error {
	if home != filepath.Join(dir, journal.HomeName) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, trackedTimeout)
	defer cancel()
	repo, err := git.OpenAt(dir)
	if errors.Is(err, git.ErrNotRepository) {
		return nil
	}
	if err != nil {
		return err
	}
	tracked, err := repo.Tracks(ctx, home)
	if err != nil || !tracked {
		return err
	}
	return trackedError{loop.Usage("git tracks "+home+": its runs can come from anyone who commits",
		"git rm -r -f --cached --quiet "+journal.HomeName)}
}

// git is asked once.
func (w *Workspace) checkUntracked(ctx context.Context) error {
	if !w.asked {
		w.asked, w.tracked = true, checkUntracked(ctx, w.Dir, w.Home.Dir())
	}
	return w.tracked
}

// If the last run is not the user's, nothing is changed, and a note is added unless the run had finished.
func (w *Workspace) settleLastRun(ctx context.Context) error {
	last := w.Lock.LastRun
	if last == "" {
		return nil
	}
	err := w.checkUntracked(ctx)
	if err == nil {
		err = history.Settle(ctx, w.Home, w.Tree, last)
	}
	var why string
	var next hone.Next
	var foreign *journal.ForeignError
	switch tracked := (trackedError{}); {
	case errors.As(err, &tracked):
		why = tracked.Error()
	case errors.As(err, &foreign):
		why, next = "you did not record all of it on this machine", hone.Next{First: "to see what it would do", Verb: hone.Accept, Run: last}
	default:
		return err
	}
	w.Lock.LastRun = ""
	if foreign != nil && foreign.Damage != nil {
		why, next = "its journal is damaged, and you did not record it on this machine", hone.Next{}
		if OtherVersion(foreign.Damage) != "" {
			why = "another version of hone wrote its journal"
		}
	}
	events, err := w.Home.Read(last)
	if err != nil || !history.Read(events).Finished() {
		w.Notes = append(w.Notes, hone.Notice{Text: fmt.Sprintf("the unfinished run %s is ignored: %s", last, why), Next: next})
	}
	return nil
}

func (w *Workspace) explainForeign(err error) error {
	var foreign *journal.ForeignError
	if !errors.As(err, &foreign) || foreign.Damage != nil {
		return err
	}
	if events, err := w.Home.Read(foreign.Run); err == nil {
		// There is nothing to accept in a run without texts.
		if start, err := Started(foreign.Run, events); err == nil && start.Redacted {
			return CheckWhole(foreign.Run, start)
		}
	}
	why, first := foreign.Error(), "to see what the run would do, and accept it"
	if dir, err := state.Dir(); w.Unbound != nil {
		why += ": " + w.Unbound.Error()
	} else if err == nil && !foreign.Imported {
		why += ": it is another user's, or the key that signs runs was removed since, " + filepath.Join(dir, state.KeyFile)
	}
	return &hone.UsageError{Why: why + "; nothing was sent, run or written",
		Next: hone.Next{First: first, Verb: hone.Accept, Run: foreign.Run}}
}

// Inspection is a recorded run that was only read.
type Inspection struct {
	Dir     string // the workspace
	Run     string
	Events  []journal.Event
	Past    *history.Past
	Start   hone.Start
	Foreign int64 // see [Foreign]
	// Imported reports whether the run was imported.
	Imported bool
}

// Inspect reads a run of the workspace that a directory belongs to. It writes
// nothing and does not lock the workspace. ref is an id, a unique prefix of one,
// or "last".
func Inspect(ctx context.Context, dir, ref string) (*Inspection, error) {
	home, run, err := findRun(dir, ref)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	i := &Inspection{Dir: home.Workspace(), Run: run}
	if err := errors.Join(checkHome(home.Dir()), checkUntracked(ctx, i.Dir, home.Dir())); err != nil {
		return nil, err
	}
	if i.Events, err = home.Read(run); err != nil {
		return nil, explainDamaged(err)
	}
	if i.Start, err = Started(run, i.Events); err != nil {
		return nil, err
	}
	i.Past, i.Foreign, i.Imported = history.Read(i.Events), Foreign(home)(run, i.Events), home.Imported(run).Head != ""
	return i, nil
}

// Foreign returns a function that returns the number of the first event of a run, from 1,
// that was neither recorded here nor accepted; 0 if resume and undo accept the run. The
// runs are those of a home, which must be open when that function is called.
func Foreign(home *journal.Home) func(run string, events []journal.Event) int64 {
	o, _ := owner(home.Workspace(), home)
	return func(run string, events []journal.Event) int64 {
		var foreign *journal.ForeignError
		if errors.As(o.Check(run, events), &foreign) {
			return foreign.Event
		}
		return 0
	}
}

// CheckBinding returns why new runs in a directory cannot be bound to the user, so that nothing
// vouches for what they record; nil if they can.
func CheckBinding(dir string) error {
	_, err := owner(dir, nil) // no run is looked up
	return err
}

// The caller closes the home.
func findRun(dir, ref string) (*journal.Home, string, error) {
	home, err := openHome(dir, git.Root)
	if err != nil {
		return nil, "", err
	}
	run, err := home.FindRun(ref)
	if err != nil {
		home.Close()
		return nil, "", &hone.UsageError{Why: err.Error(), Err: err, Next: hone.Next{Verb: hone.Runs}}
	}
	return home, run, nil
}

// acceptance is the record that the user accepts a run that was not recorded
// here. It is for one workspace.
type acceptance struct {
	Dir  string    `json:"dir"`
	Run  string    `json:"run"`
	Head string    `json:"head"` // hash of the last event that is accepted
	When time.Time `json:"when"`
}

const acceptedDir = "runs"

func acceptanceFile(dir, run string) string {
	return fmt.Sprintf("%x.json", sha256.Sum256([]byte(dir+"\x00"+run)))
}

// Accept records that resume, undo and settling accept the run as it was read:
// up to its last event, and own events after that.
func (i *Inspection) Accept() error {
	a := acceptance{Dir: i.Dir, Run: i.Run, Head: i.Events[len(i.Events)-1].Hash(), When: time.Now().UTC()}
	if err := state.Save(a, acceptedDir, acceptanceFile(i.Dir, i.Run)); err != nil {
		return fmt.Errorf("record that the run is accepted: %w", err)
	}
	return nil
}

// Revoke withdraws the acceptance of a run, so that resume and undo refuse it
// again. ref is as for [Inspect].
func Revoke(dir, ref string) error {
	home, run, err := findRun(dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	was, err := state.Remove(acceptedDir, acceptanceFile(home.Workspace(), run))
	if err == nil && !was {
		return &hone.UsageError{Why: "run " + run + " was not accepted", Next: hone.Next{Verb: hone.Runs}}
	}
	return err
}

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
