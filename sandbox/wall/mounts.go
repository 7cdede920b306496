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
	real, mounted := map[string]sandbox.Entry{}, map[string]sandbox.Entry{}
	for _, e := range entries {
		if !e.Absent && e.Link == "" {
			real[e.Path] = e
		}
	}
	at := func(path string) sandbox.Entry {
		for {
			if e, ok := real[path]; ok || path == filepath.Dir(path) {
				return e // of none: AccessNone
			}
			path = filepath.Dir(path)
		}
	}
	around := func(path string) sandbox.Access {
		if path == filepath.Dir(path) {
			return sandbox.AccessNone
		}
		return at(filepath.Dir(path)).Access
	}
	for _, e := range entries {
		switch {
		case e.Absent:
		case e.Link != "":
			if around(e.Path) == sandbox.AccessNone {
				mounted[e.Path] = e
			}
		default:
			if e.Lower != "" || e.Access != around(e.Path) {
				mounted[e.Path] = e
			}
			if e.Lower == "" && e.Access == sandbox.AccessWrite {
				continue
			}
			for dir := filepath.Dir(e.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
				if _, ok := mounted[dir]; !ok && at(dir).Access == sandbox.AccessWrite && at(dir).Lower == "" && around(dir) == sandbox.AccessWrite {
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
