package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/journal/objects"
)

// HomeName is the directory at a workspace's root that holds hone's own files.
// No model sees it.
const HomeName = ".hone"

const (
	runsDir  = "runs"
	keptDir  = "kept" // of files for the user, by the digests of their contents
	lockFile = "lock"
)

// Home is the directory of one workspace's runs: .hone in the workspace, or a
// directory outside that the caller chose. It holds the journals, the objects that
// they name, and the lock. All access goes through an [os.Root], so a symlink that a
// hostile repository put in place of the directory leads nowhere.
type Home struct {
	// Owner decides which runs Open opens, and signs the events that are appended.
	// Nil opens all runs and signs nothing. Set it before Create and Open.
	Owner *Owner

	*objects.Store
	workspace string
	in        *objects.Dir
	ballast   ballast
}

// OldError says that an older version of hone wrote a home, which this one does not read.
type OldError struct{ Path string }

func (e *OldError) Error() string {
	return e.Path + " was written by an older hone, which stored files in another way"
}

// OpenHome opens the directory .hone below the workspace dir. If it does not
// exist, OpenHome creates it with a .gitignore that ignores everything in it.
func OpenHome(dir string) (*Home, error) { return OpenHomeAt(dir, filepath.Join(dir, HomeName)) }

// OpenHomeAt is [OpenHome] for a home at any path, whose parent directory exists.
func OpenHomeAt(workspace, path string) (*Home, error) {
	h, err := findHome(workspace, path, true)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return h, nil
}

// FindHome opens the directory .hone only if it exists; otherwise the error
// wraps [fs.ErrNotExist].
func FindHome(dir string) (*Home, error) { return FindHomeAt(dir, filepath.Join(dir, HomeName)) }

// FindHomeAt is [FindHome] for a home at any path.
func FindHomeAt(workspace, path string) (*Home, error) { return findHome(workspace, path, false) }

func findHome(workspace, path string, create bool) (*Home, error) {
	parent, name := filepath.Split(path)
	top, err := os.OpenRoot(parent)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if create {
		if err := (&objects.Dir{Root: top}).MakeDurable(name); err != nil {
			return nil, err
		}
	}
	info, err := top.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: move it away", path)
	}
	root, err := top.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if _, err := root.Lstat("packs"); err == nil {
		root.Close()
		return nil, &OldError{path}
	}
	if _, err := root.Lstat(runsDir); err != nil && !create { // no run began
		root.Close()
		return nil, err
	}
	in := &objects.Dir{Root: root, Path: path}
	h := &Home{Store: objects.In(in, runsDir), workspace: workspace, in: in}
	if create {
		if err := h.setUp(); err != nil {
			root.Close()
			return nil, err
		}
	}
	return h, nil
}

// The file comes last, so that the directory's name is durable if it exists.
func (h *Home) setUp() error {
	err := objects.MakeDir(h.in.Root, runsDir)
	if _, missing := h.in.Root.Lstat(".gitignore"); err != nil || missing == nil {
		return err
	}
	if err := h.in.Sync("."); err != nil {
		return err
	}
	f, err := h.in.Root.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process created it
	}
	if err == nil {
		_, err = f.WriteString("*\n")
		err = errors.Join(err, f.Close())
	}
	return err
}

// Dir returns the path of the home itself.
func (h *Home) Dir() string { return h.in.Path }

// Workspace returns the path of the workspace.
func (h *Home) Workspace() string { return h.workspace }

// Close releases the directory and the space that is held.
func (h *Home) Close() error {
	return errors.Join(h.ReleaseSpace(), h.in.Root.Close())
}

// runTime is the layout of the time at the start of a run id.
const runTime = "20060102-150405"

// NewRun returns an id for a run that starts now: the local time (ruling S1), the
// fraction of the second, and a random number in hex. Ids sort by time, even within a
// second, so that "last" means the run started last. If the clock was set back since the
// newest run started, as it is in autumn, the id uses the second after that run's.
func (h *Home) NewRun() string {
	id := newRun(time.Now())
	runs, err := h.Runs()
	if err != nil || len(runs) == 0 || runs[len(runs)-1] < id {
		return id
	}
	newest := runs[len(runs)-1]
	if at, err := time.Parse(runTime, newest[:min(len(newest), len(runTime))]); err == nil {
		id = newRun(at.Add(time.Second))
	}
	return id
}

func newRun(at time.Time) string {
	var b [1]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%s-%04x%02x", at.Format(runTime), at.Nanosecond()>>14, b)
}

// Runs returns the ids of all runs, oldest first.
func (h *Home) Runs() ([]string, error) {
	d, err := h.in.Root.Open(runsDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, n := range names {
		if run, ok := strings.CutSuffix(n, ".jsonl"); ok {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs, nil
}

// FindRun returns the run that the user means by ref: an id, a unique prefix of an id
// or of its last part, or "last". The error is a [*NotFoundError] if there is no such
// run.
func (h *Home) FindRun(ref string) (string, error) {
	runs, err := h.Runs()
	if err != nil {
		return "", err
	}
	if ref == "last" && len(runs) > 0 {
		return runs[len(runs)-1], nil
	}
	var matches []string
	for _, r := range runs {
		if r == ref {
			return r, nil
		}
		if ref != "" && (strings.HasPrefix(r, ref) || strings.HasPrefix(ShortRun(r), ref)) {
			matches = append(matches, r)
		}
	}
	if len(matches) == 1 {
		return matches[0], nil
	}
	return "", &NotFoundError{Ref: ref, Matches: matches}
}

// ShortRun returns the last part of a run's id, which users can type.
func ShortRun(run string) string { return run[strings.LastIndexByte(run, '-')+1:] }

// KeepFile writes a file with the contents of an object, for the user, and returns its path.
func (h *Home) KeepFile(object string) (path string, err error) {
	b, err := h.Get(object)
	if err == nil {
		err = h.in.MakeDurable(keptDir)
	}
	if err == nil {
		err = h.replaceFile(keptDir+"/"+object, b)
	}
	if err != nil {
		return "", fmt.Errorf("keep a file: %w", err)
	}
	return h.in.At(keptDir + "/" + object), nil
}

func runFile(run string) string { return runsDir + "/" + run + ".jsonl" }
