package listing

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when a file's contents or its entry changed last, by the
// kernel's account; the zero time if there is none.
func changeTime(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(0, st.Ctimespec.Nano())
}
