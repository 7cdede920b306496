package workspace

import (
	"io/fs"
	"syscall"
)

// inodeStamp returns the change time in nanoseconds and the inode number.
func inodeStamp(info fs.FileInfo) (changed int64, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctimespec.Nano(), st.Ino
}
