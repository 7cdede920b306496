//go:build unix

package walldir

import (
	"os"

	"golang.org/x/sys/unix"
)

// The lock holds until the file is closed or the process ends.
func tryLock(dir string) (lock *os.File, ok bool) {
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
