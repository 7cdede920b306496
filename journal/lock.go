package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hone/journal/objects"
	"io"
	"os"
	"strings"
	"time"
)

// LockedError says that another process is working on the workspace.
type LockedError struct {
	Run string // the run that it is working on, or the previous run until it calls SetRun
}

func (e *LockedError) Error() string {
	if e.Run == "" {
		return "another hone is working here"
	}
	return "another hone is working here, on run " + e.Run
}

// Lock is the lock of a workspace. It ends with the process that holds it.
type Lock struct {
	// LastRun is the run that the workspace was last locked for, by any
	// process; empty if there was none.
	LastRun string
	file    *os.File
}

// ErrNoHolder is the error of [Home.SignalHolder] if no process that may be signalled holds
// the lock.
var ErrNoHolder = errors.New("no process that you can stop works in this directory")

// errLocked is returned by tryLock and tryShare if another process has the lock.
var errLocked = errors.New("held")

// lockGrace is how long Lock tries. If a process is killed while it starts a
// command, its forked copy keeps the lock until it executes the command. And
// [Home.LockedRun] shares the lock for a moment.
const lockGrace = 500 * time.Millisecond

// Lock locks the workspace for this process. If another process keeps the lock
// for longer than half a second, the error is a [*LockedError].
//
// While Lock waited, another process may have moved the home. The caller then closes
// this one, and opens the home where it is now.
func (h *Home) Lock() (*Lock, error) { return h.lock(tryLock, lockGrace) }

func (h *Home) lock(try func(*os.File) error, grace time.Duration) (*Lock, error) {
	f, err := openLock(h.in.Root, h.in.At(lockFile))
	if err != nil {
		return nil, fmt.Errorf("lock the workspace: %w", err)
	}
	err = try(f)
	for until := time.Now().Add(grace); errors.Is(err, errLocked) && time.Now().Before(until); err = try(f) {
		time.Sleep(10 * time.Millisecond)
	}
	who, readErr := io.ReadAll(io.LimitReader(f, 256))
	last := strings.TrimSpace(string(who))
	switch {
	case err == nil && readErr == nil:
		return &Lock{LastRun: last, file: f}, nil
	case errors.Is(err, errLocked):
		err = &LockedError{Run: last}
	default:
		err = fmt.Errorf("lock the workspace: %w", errors.Join(err, readErr))
	}
	return nil, errors.Join(err, f.Close())
}

// LockFile opens a file for writing and locks it until it is closed or the process ends. It creates
// a file that does not exist. While another process has the lock, it waits until the context is done.
func LockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for err = tryLock(f); errors.Is(err, errLocked) && ctx.Err() == nil; err = tryLock(f) {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err != nil {
		f.Close()
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return f, nil
}

// IsLocked reports whether a file is locked by [LockFile]. Several processes may ask at once.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(tryShare(f), errLocked)
}

func openLock(home *os.Root, path string) (*os.File, error) {
	// Opening a pipe in place of the file could wait for ever.
	info, err := home.Lstat(lockFile)
	if err == nil && !info.Mode().IsRegular() {
		return nil, objects.NotRegular(path)
	}
	return home.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
}

// SetRun records which run this process is working on, for processes that are
// refused the lock and for the next one that gets it.
func (l *Lock) SetRun(run string) error {
	l.LastRun = run
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(run+"\n"), 0)
	return err
}

// Unlock releases the lock.
func (l *Lock) Unlock() error { return l.file.Close() }

// LockedRun returns the run that a process is working on. ok is false if no
// process has the lock. Several processes may ask at once.
func (h *Home) LockedRun() (run string, ok bool) {
	l, err := h.lock(tryShare, 0)
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
