package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// LockedError says that another process works on the workspace.
type LockedError struct {
	Run string // what it said it is doing, or the run before where it has not said yet
}

func (e *LockedError) Error() string {
	if e.Run == "" {
		return "another hone is at work here"
	}
	return "another hone is at work here, on run " + e.Run
}

// Lock is the workspace's lock. It goes with the process that holds it,
// however that ends.
type Lock struct {
	// Last is the run that was worked on last, by this process or another;
	// empty when there was none.
	Last string
	file *os.File
}

// errHeld is what tryLock answers when another process has the lock.
var errHeld = errors.New("held")

// Lock takes the workspace for this process, or answers a [*LockedError] at
// once: it never waits.
func (h *Home) Lock() (*Lock, error) {
	// Reading what is no file, a pipe above all, could wait for ever.
	err := h.regular(lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var f *os.File
	if err == nil {
		f, err = h.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the workspace: %w", err)
	}
	err = tryLock(f)
	who, readErr := io.ReadAll(io.LimitReader(f, 256))
	last := strings.TrimSpace(string(who))
	switch {
	case err == nil && readErr == nil:
		return &Lock{Last: last, file: f}, nil
	case errors.Is(err, errHeld):
		err = &LockedError{Run: last}
	default:
		err = fmt.Errorf("lock the workspace: %w", errors.Join(err, readErr))
	}
	return nil, errors.Join(err, f.Close())
}

// Say notes which run the process is on, for whoever is refused, and for the
// process that comes next.
func (l *Lock) Say(run string) error {
	l.Last = run
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(run+"\n"), 0)
	return err
}

// Unlock gives the workspace back.
func (l *Lock) Unlock() error { return l.file.Close() }

// Holder tells which run is being worked on; ok is false when no process has
// the lock.
func (h *Home) Holder() (run string, ok bool) {
	l, err := h.Lock()
	if err == nil {
		_ = l.Unlock()
		return "", false
	}
	var held *LockedError
	if errors.As(err, &held) {
		return held.Run, true
	}
	return "", false
}
