package wall

import (
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// mountKind is what a wall puts at a path.
type mountKind int

const (
	mountRead     mountKind = iota // the path itself, read-only, with what is mounted below it
	mountWrite                     // the path itself, writable, with what is mounted below it
	mountHideFile                  // something in a file's place that cannot be read or written
	mountHideDir                   // an empty folder, read-only once everything below it is mounted
	mountLink                      // a symlink, to be made; nothing is mounted
)

// mount is one thing that a wall which builds a file system puts there.
type mount struct {
	Path   string
	Kind   mountKind
	Dir    bool   // Path is a folder
	Target string // of a mountLink
}

// mounts are what a wall must put where to show the entries of a policy and
// nothing else, outer ones first. Entries that change nothing where they lie
// are left out, and so are absent ones.
//
// A file that is mounted read-only in a writable folder could be moved away
// together with the folder that holds it, and another one put in its place. So
// each folder between is mounted on itself: a mount point can be neither
// renamed nor removed (EBUSY). The price is that nothing is renamed or linked
// across it (EXDEV). It is not paid for hidden entries, which stay hidden
// wherever they are moved; symlinks and absent entries cannot be held in place
// by a mount at all.
func mounts(entries []sandbox.Entry) []mount {
	m := mounter{entries: map[string]sandbox.Entry{}, mounts: map[string]mount{}}
	for _, e := range entries {
		if !e.Absent && e.Link == "" {
			m.entries[e.Path] = e
		}
	}
	for _, e := range entries {
		switch {
		case e.Absent:
		case e.Link != "":
			m.link(e)
		default:
			m.entry(e)
		}
	}
	ordered := make([]mount, 0, len(m.mounts))
	for _, one := range m.mounts {
		ordered = append(ordered, one)
	}
	slices.SortFunc(ordered, func(a, b mount) int { return strings.Compare(a.Path, b.Path) })
	return ordered
}

type mounter struct {
	entries map[string]sandbox.Entry
	mounts  map[string]mount
}

// at is the access that a path has, by the longest entry that holds it; hide
// where none does.
func (m mounter) at(path string) sandbox.Access {
	for {
		if e, ok := m.entries[path]; ok {
			return e.Access
		}
		if path == filepath.Dir(path) {
			return sandbox.AccessNone
		}
		path = filepath.Dir(path)
	}
}

// around is the access that the folder around a path has.
func (m mounter) around(path string) sandbox.Access {
	if path == filepath.Dir(path) {
		return sandbox.AccessNone
	}
	return m.at(filepath.Dir(path))
}

// entry mounts an entry that differs from what is around it.
func (m mounter) entry(e sandbox.Entry) {
	if e.Access == sandbox.AccessRead {
		m.pin(e.Path)
	}
	if e.Access == m.around(e.Path) {
		return
	}
	kind := mountHideFile
	switch {
	case e.Access == sandbox.AccessRead:
		kind = mountRead
	case e.Access == sandbox.AccessWrite:
		kind = mountWrite
	case e.Dir:
		kind = mountHideDir
	}
	m.mounts[e.Path] = mount{Path: e.Path, Kind: kind, Dir: e.Dir}
}

// link makes a symlink where it would not be seen otherwise.
func (m mounter) link(e sandbox.Entry) {
	if m.around(e.Path) == sandbox.AccessNone {
		m.mounts[e.Path] = mount{Path: e.Path, Kind: mountLink, Target: e.Link}
	}
}

// pin mounts the folders that hold a path, and could be renamed, on themselves.
func (m mounter) pin(path string) {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if m.at(dir) == sandbox.AccessWrite && m.around(dir) == sandbox.AccessWrite {
			m.mounts[dir] = mount{Path: dir, Kind: mountWrite, Dir: true}
		}
	}
}
