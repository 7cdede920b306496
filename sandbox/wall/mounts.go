package wall

import (
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// mounts returns the entries that a wall mounts to show those of a policy and nothing else,
// outer ones first. It omits absent entries, those with the access of the directory around
// them, and symlinks that are shown with it.
//
// A command could move a file that is mounted read-only in a writable directory
// away together with its parent directory, and put another file in its place, or
// move a hidden one to where the next command finds it open. So each directory between
// is mounted on itself: a mount point cannot be renamed or removed (EBUSY). The price
// is that no file can be renamed or linked across it (EXDEV). In an overlay the kernel
// does not rename directories of the lower one (EXDEV). Mounts cannot protect
// symlinks and absent entries.
func mounts(entries []sandbox.Entry) []sandbox.Entry {
	places, mounted := sandbox.PlacesOf(entries), map[string]sandbox.Entry{}
	for _, e := range entries {
		switch {
		case e.Absent:
		case e.Link != "":
			if places.Around(e.Path).Access == sandbox.AccessNone {
				mounted[e.Path] = e
			}
		default:
			if e.Lower != "" || e.Access != places.Around(e.Path).Access {
				mounted[e.Path] = e
			}
			if e.Lower == "" && e.Access == sandbox.AccessWrite {
				continue
			}
			for dir := filepath.Dir(e.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
				at := places.At(dir)
				if _, ok := mounted[dir]; !ok && at.Access == sandbox.AccessWrite && at.Lower == "" && places.Around(dir).Access == sandbox.AccessWrite {
					mounted[dir] = sandbox.Entry{Path: dir, Access: sandbox.AccessWrite, Dir: true}
				}
			}
		}
	}
	ordered := make([]sandbox.Entry, 0, len(mounted))
	for _, e := range mounted {
		ordered = append(ordered, e)
	}
	slices.SortFunc(ordered, func(a, b sandbox.Entry) int { return strings.Compare(a.Path, b.Path) })
	return ordered
}
