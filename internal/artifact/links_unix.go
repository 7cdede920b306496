//go:build unix

package artifact

import (
	"io/fs"
	"syscall"
)

// nonblock keeps open from waiting for the other end of a FIFO.
const nonblock = syscall.O_NONBLOCK

func hasOtherNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
