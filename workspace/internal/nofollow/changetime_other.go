//go:build !linux && !darwin

package nofollow

import (
	"io/fs"
	"time"
)

// ChangeTime returns the zero time: it is not known on this system.
func ChangeTime(fs.FileInfo) time.Time { return time.Time{} }
