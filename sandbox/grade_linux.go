package sandbox

import (
	"net"
	"slices"
	"strconv"
)

// restraint is what the thread that starts the command gives up, so that what
// the walls themselves let pass is closed as well.
func (s spec) restraint() restraint {
	r := restraint{Limits: s.Policy.Limits, Net: s.Policy.Net || s.ownNet()}
	switch s.Wall {
	case Hidden, Bubblewrap:
		r.Files, r.Apart, r.Entries = true, true, behindMounts(s.Entries)
	case Firejail:
		r.Files, r.Strict, r.Entries = true, true, slices.Concat(s.Entries, unshown(), scratch("/tmp", "/dev/shm", s.Policy.Tmp))
	case Landlock:
		r.Files, r.Strict, r.Entries, r.Ports = true, true, slices.Concat(s.Entries, unshown(), scratch(s.Policy.Tmp)), s.ports()
	default:
		r.Free = true
	}
	return r
}

// mounted reports whether the command sees a file system that is put together
// from the policy.
func (s spec) mounted() bool { return s.Wall == Hidden || s.Wall == Bubblewrap }

// scratch are folders that may be written.
func scratch(paths ...string) []entry {
	var entries []entry
	for _, path := range paths {
		if path != "" {
			entries = append(entries, entry{Path: path, Access: write, Dir: true})
		}
	}
	return entries
}

// ports are those of the doors.
func (s spec) ports() []int {
	var ports []int
	for _, door := range s.Doors {
		if _, port, err := net.SplitHostPort(door); err == nil {
			n, _ := strconv.Atoi(port)
			ports = append(ports, n)
		}
	}
	return ports
}

// grade says what was reached.
func (s spec) grade(r reached) Grade {
	g := Grade{Wall: s.Wall, Level: s.Wall.level(), Landlock: r.Landlock, Seccomp: r.Seccomp, Net: "off", Open: r.Open}
	switch {
	case s.Policy.Net || s.Wall == NoWall:
		g.Net = "on"
	case len(s.Doors) > 0:
		g.Net = "doors"
	}
	if s.Wall == NoWall {
		g.Open = []string{"everything that the user may do"}
	}
	return g
}

// level is what a wall holds back when it stands.
func (wall Wall) level() Level {
	switch wall {
	case Hidden, Bubblewrap:
		return LevelHidden
	case Landlock, Firejail:
		return LevelGuarded
	}
	return LevelOpen
}
