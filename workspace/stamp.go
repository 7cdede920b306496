package workspace

import (
	"time"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
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

// Look is what the file system tells about paths at one time, and about their directories.
type Look struct {
	paths []string
	infos map[string]nofollow.Info
}

// Look looks at paths without reading them. A path that is not there, or cannot be looked
// at, is missing in it.
func (t *Tree) Look(paths []string) Look {
	l := Look{paths: paths, infos: map[string]nofollow.Info{}}
	cur := nofollow.Cursor{Root: t.root}
	defer cur.Close()
	for _, p := range paths {
		for ; p != ""; p = treepath.Parent(p) {
			if _, ok := l.infos[p]; ok {
				break
			}
			if info, err := cur.Lstat(p); err == nil {
				l.infos[p] = info
			}
		}
	}
	return l
}

// Written returns the paths that were written, replaced, made or removed between two looks
// at the same paths, also those that are what they were again. Without inode change times
// (Windows), a program that resets the modification time hides that.
func (l Look) Written(later Look) (written []string) {
	for _, p := range l.paths {
		is, was := later.infos[p], l.infos[p]
		changed := is != was
		for dir := treepath.Parent(p); dir != "" && !changed; dir = treepath.Parent(dir) {
			changed = l.moved(dir, later)
		}
		if changed {
			written = append(written, p)
		}
	}
	return written
}

// A change of the files in a directory sets both of its times, a change of its name one.
func (l Look) moved(dir string, later Look) bool {
	is, was := later.infos[dir], l.infos[dir]
	return is.Inode != was.Inode || is.Changed != was.Changed && is.Changed != is.Modified
}
