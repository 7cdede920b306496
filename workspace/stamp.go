package workspace

import (
	"io/fs"
	"time"
)

// raceWindow is how long before a reading a file must have been touched last
// for its stamp to be trusted later: file systems count time in steps of up
// to two seconds, and a write within the step leaves no trace in the stamp.
const raceWindow = 2 * time.Second

// stamp is what a file system tells cheaply about the state of a file. The
// zero stamp is of no file and equals none.
type stamp struct {
	modified int64 // nanoseconds since 1970
	changed  int64 // last change of the inode, nanoseconds; 0 where there is none
	inode    uint64
}

// stampOf reads the stamp of what was seen.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{modified: info.ModTime().UnixNano()}
	s.changed, s.inode = inodeOf(info)
	return s
}

// settled reports whether a change after the given time is sure to show in
// the stamp. The change time is what counts where there is one, because a
// program can set the other.
func (s stamp) settled(taken time.Time) bool {
	last := s.changed
	if last == 0 {
		last = s.modified
	}
	return last < taken.Add(-raceWindow).UnixNano()
}
