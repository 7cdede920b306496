package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitingBytes returns how many bytes of complete lines the user has typed on a terminal and no
// process has read yet.
func waitingBytes(terminal *os.File) int {
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}
