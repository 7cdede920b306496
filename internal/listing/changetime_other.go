//go:build !linux && !darwin

package listing

import (
	"io/fs"
	"time"
)

// changeTime returns the zero time: it is not known on this system.
func changeTime(fs.FileInfo) time.Time { return time.Time{} }
