//go:build unix

package main

import (
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// It returns only if that fails.
func become(program string, argv, environ []string) (int, error) {
	return 0, &os.PathError{Op: "run", Path: program, Err: syscall.Exec(program, argv, environ)}
}

// A directory that its owner cannot enter would end this run and every later one.
func ensureOwnerAccess() { unix.Umask(unix.Umask(0) &^ 0o700) }

// ownSession lets a run go on when the client's terminal is closed.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// inForeground reports whether this process is in the foreground of a terminal.
func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// terminalInput reads from a terminal while this process is in its foreground. A
// plain read that waits for the user stops the process with SIGTTIN if the user puts
// it into the background.
type terminalInput struct{ *os.File }

// inputOf returns a reader of what the user types on a terminal. It waits while this
// process is in the background.
func inputOf(terminal *os.File) io.Reader { return terminalInput{terminal} }

// lookForInput is how often a reader looks for input, and whether it may read it.
const lookForInput = 200 * time.Millisecond

func (t terminalInput) Read(p []byte) (int, error) {
	for {
		ready := []unix.PollFd{{Fd: int32(t.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(lookForInput.Milliseconds()))
		switch {
		case err != nil && err != unix.EINTR:
			return t.File.Read(p)
		case n <= 0:
		case inForeground(t.File):
			return t.File.Read(p)
		default:
			time.Sleep(lookForInput)
		}
	}
}
