package wall

import (
	"bytes"
	"encoding/gob"
	"net"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
)

// spec is what a helper is to do.
type spec struct {
	Wall    sandbox.Wall
	Policy  sandbox.Policy // without what Doors serve
	Entries []sandbox.Entry
	Doors   []string // addresses
	// Wrapper is the command line of the program that builds the wall, which
	// runs the keeper.
	Wrapper []string
	// Outside are the namespaces of the process that asked, by kind.
	Outside map[string]string

	Argv  []string // empty: build the walls, say what was reached, and end
	Dir   string
	Env   []string
	Stdin bool // the helpers' standard input is the command's; otherwise it has none
}

// readSpec reads the spec without moving the position, which helpers share.
func readSpec() (s spec, err error) {
	var info unix.Stat_t
	if err := unix.Fstat(specFD, &info); err != nil {
		return s, os.NewSyscallError("fstat", err)
	}
	text := make([]byte, info.Size)
	if _, err := unix.Pread(specFD, text, 0); err != nil {
		return s, os.NewSyscallError("pread", err)
	}
	return s, gob.NewDecoder(bytes.NewReader(text)).Decode(&s)
}

// specFile is a file in memory that holds a spec. Paths and arguments need not
// be UTF-8.
func specFile(s spec) (*os.File, error) {
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "spec")
	if err := gob.NewEncoder(f).Encode(s); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// apart reports whether commands have a process namespace of their own, with
// which the kernel ends all of them.
func (s spec) apart() bool {
	return s.Wall == sandbox.Hidden || s.Wall == sandbox.Bubblewrap || s.Wall == sandbox.Firejail
}

// ownNet reports whether commands have a network of their own.
func (s spec) ownNet() bool { return !s.Policy.Net && s.apart() }

// shared are the namespaces that this process has in common with the one that
// asked for walls, and should not have.
func (s spec) shared() []string {
	if !s.apart() {
		return nil
	}
	kinds := []string{"mnt", "pid", "ipc"}
	if s.ownNet() {
		kinds = append(kinds, "net")
	}
	inside := kernel.NamespaceIDs()
	return slices.DeleteFunc(kinds, func(kind string) bool { return inside[kind] != s.Outside[kind] && inside[kind] != "" })
}

// restraint is what the thread that starts the command gives up, so that what
// the walls themselves let pass is closed as well.
func (s spec) restraint() kernel.Restraint {
	r := kernel.Restraint{Limits: s.Policy.Limits, Net: s.Policy.Net || s.ownNet()}
	switch s.Wall {
	case sandbox.Hidden, sandbox.Bubblewrap:
		r.Files, r.Apart, r.Entries = true, true, kernel.BehindMounts(s.Entries)
	case sandbox.Firejail:
		r.Files, r.Strict, r.Entries = true, true, slices.Concat(s.Entries, kernel.DevicesAndProc(), scratch("/tmp", "/dev/shm", s.Policy.Tmp))
	case sandbox.Landlock:
		r.Files, r.Strict, r.Entries, r.Ports = true, true, slices.Concat(s.Entries, kernel.DevicesAndProc(), scratch(s.Policy.Tmp)), s.ports()
	default:
		r.Free = true
	}
	return r
}

// mounted reports whether the command sees a file system that is put together
// from the policy.
func (s spec) mounted() bool { return s.Wall == sandbox.Hidden || s.Wall == sandbox.Bubblewrap }

// scratch are folders that may be written.
func scratch(paths ...string) []sandbox.Entry {
	var entries []sandbox.Entry
	for _, path := range paths {
		if path != "" {
			entries = append(entries, sandbox.Entry{Path: path, Access: sandbox.AccessWrite, Dir: true})
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
func (s spec) grade(r kernel.Reached) sandbox.Grade {
	g := sandbox.Grade{Wall: s.Wall, Level: levelOf(s.Wall), Landlock: r.Landlock, Seccomp: r.Seccomp, Net: "off", Open: r.Open}
	switch {
	case s.Policy.Net || s.Wall == sandbox.NoWall:
		g.Net = "on"
	case len(s.Doors) > 0:
		g.Net = "doors"
	}
	if s.Wall == sandbox.NoWall {
		g.Open = []string{"everything that the user may do"}
	}
	return g
}

// levelOf is what a wall holds back when it stands.
func levelOf(wall sandbox.Wall) sandbox.Level {
	switch wall {
	case sandbox.Hidden, sandbox.Bubblewrap:
		return sandbox.LevelHidden
	case sandbox.Landlock, sandbox.Firejail:
		return sandbox.LevelGuarded
	}
	return sandbox.LevelOpen
}
