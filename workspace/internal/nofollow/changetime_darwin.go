package nofollow

import (
	"io/fs"
	"syscall"
	"time"
)

// ChangeTime returns when the file's contents or its entry last changed,
// according to the kernel; the zero time if unknown.
func ChangeTime(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(0, st.Ctimespec.Nano())
}
