package wall

import (
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

type mountKind int

const (
	mountRead     mountKind = iota // the path itself, read-only, with what is mounted below it
	mountWrite                     // the path itself, writable, with what is mounted below it
	mountHideFile                  // something that cannot be read or written, over a file
	mountHideDir                   // an empty directory, read-only once everything below it is mounted
	mountLink                      // a symlink to make; nothing is mounted
	mountOverlay                   // an overlay, writable
)

// mount is one path in a file system that a wall builds.
type mount struct {
	Path   string
	Kind   mountKind
	Dir    bool   // Path is a directory
	Target string // of a mountLink
	Lower  string // of a mountOverlay: the directory whose files it shows at first
}

// mounts returns the mounts that show the entries of a policy and nothing else,
// outer ones first. It omits absent entries and those with the access of the
// directory around them.
//
// A command could move a file that is mounted read-only in a writable directory
// away together with its parent directory, and put another file in its place.
// So each directory between is mounted on itself: a mount point cannot be
// renamed or removed (EBUSY). The price is that no file can be renamed or linked
// across it (EXDEV). Hidden entries do not need it: they stay hidden wherever
// they are moved. Mounts cannot protect symlinks and absent entries.
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

func (m mounter) around(path string) sandbox.Access {
	if path == filepath.Dir(path) {
		return sandbox.AccessNone
	}
	return m.at(filepath.Dir(path))
}

func (m mounter) entry(e sandbox.Entry) {
	if e.Access == sandbox.AccessRead || e.Lower != "" {
		m.pin(e.Path)
	}
	if e.Lower != "" {
		m.mounts[e.Path] = mount{Path: e.Path, Kind: mountOverlay, Dir: true, Lower: e.Lower}
		return
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

func (m mounter) link(e sandbox.Entry) {
	if m.around(e.Path) == sandbox.AccessNone {
		m.mounts[e.Path] = mount{Path: e.Path, Kind: mountLink, Target: e.Link}
	}
}

// A directory that is mounted on itself cannot be renamed.
func (m mounter) pin(path string) {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if m.at(dir) == sandbox.AccessWrite && m.around(dir) == sandbox.AccessWrite {
			m.mounts[dir] = mount{Path: dir, Kind: mountWrite, Dir: true}
		}
	}
}
