//go:build unix

package harness

import (
	"os"

	"golang.org/x/sys/unix"
)

// claim takes a folder for this process until the file is closed or the
// process ends; false means that another has it.
func claim(dir string) (*os.File, bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil, false
	}
	return f, true
}
