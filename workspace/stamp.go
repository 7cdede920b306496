package workspace

import (
	"time"

	"hone/workspace/internal/nofollow"
)

// raceWindow is how long before a reading a file must last have changed for its
// stamp to be trusted later. File systems count time in steps of up to two
// seconds, and a second write within one step leaves the stamp unchanged.
const raceWindow = 2 * time.Second

// stamp is what a file system reports cheaply about the state of a file. The
// zero stamp belongs to no file and is never trusted.
type stamp struct {
	modified int64 // nanoseconds since 1970
	changed  int64 // last change of the inode in nanoseconds; 0 if unknown
	inode    uint64
}

func stampOf(info nofollow.Info) stamp {
	return stamp{modified: info.Modified, changed: info.Changed, inode: info.Inode}
}
