//go:build unix

package main

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// foreground reports whether this process is in the foreground of a terminal.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// terminalInput reads from a terminal while this process is in its foreground. A
// plain read that waits for the user stops the process with SIGTTIN if the user puts
// it into the background.
type terminalInput struct{ *os.File }

// input returns a reader of what the user types on a terminal.
func input(terminal *os.File) io.Reader { return terminalInput{terminal} }

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
		case foreground(t.File):
			return t.File.Read(p)
		default:
			time.Sleep(lookForInput)
		}
	}
}
