//go:build !linux

package listing

import (
	"io/fs"
	"time"
)

// stamp identifies no state on this system, where no listing is stored.
type stamp struct {
	isDir  bool
	device uint64
	size   int64
}

func stampOf(string) (stamp, bool) { return stamp{}, false }

func stampOfInfo(fs.FileInfo) stamp { return stamp{} }

func (stamp) isReliable(time.Time) bool { return false }

func showsChanges(string) bool { return false }
