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

// kind is how one wall is built, and how it differs from the others.
type kind struct {
	level sandbox.Level
	// namespaces means that commands have namespaces of their own. The kernel
	// ends their processes with the process namespace.
	namespaces bool
	// mounted means that commands see a file system built from the policy.
	mounted bool
	// overlays means that the wall can mount the policy's overlays.
	overlays bool
	// args returns the command line with which another program, which has the
	// wall's name, builds the wall and runs the keeper behind it; nil if no other
	// program is needed. install tells the user how to get the program.
	args    func(program string, p sandbox.Policy, entries []sandbox.Entry, keeper []string) ([]string, error)
	install string
	// build builds the wall in the keeper, which is then started in namespaces
	// of its own; nil if the keeper builds nothing.
	build func(spec) error
	// restrain returns what the thread that starts the command gives up. It
	// also closes what the rest of the wall leaves open.
	restrain func(spec) kernel.Restraint
	// advice returns the likely reason why the wall cannot be built here, empty
	// if unknown, and what the user can do. nil if building it cannot fail.
	advice func(spec) (likely, next string)
}

// spec tells a helper what to do.
type spec struct {
	Wall    sandbox.Wall
	Policy  sandbox.Policy // without Doors
	Entries []sandbox.Entry
	Doors   []string // addresses
	Hidden  string   // the file to mount over hidden ones, see hiddenFrom; empty: the helper makes one
	Layers  string   // the directory with the layers of the overlays; empty if there are none
	// Wrapper is the command line of the program that builds the wall and runs
	// the keeper; empty if there is none.
	Wrapper []string
	// Outside are the namespaces of the process that built the walls, by kind.
	Outside map[string]string

	Argv  []string // empty: build the walls, report what they reached, and exit
	Dir   string
	Env   []string
	Stdin bool // the command reads the helper's standard input; otherwise none
	Caged bool // a control group limits the number of the helper's and the command's processes
}

// The descriptors of a helper.
const (
	specFD    = 3 // a file in memory that contains the spec; see receiveSpec
	controlFD = 4
	selfFD    = 5 // this program's file
	streamsFD = 6 // where a wrapped keeper receives the command's streams
)

// The file's position, which the helpers share, is not moved.
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

// It is not JSON because paths and arguments need not be UTF-8.
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

func (s spec) kind() kind {
	k, _ := kindOf(s.Wall)
	return k
}

func (s spec) ownNet() bool { return !s.Policy.Net && s.kind().namespaces }

// This process should have them for itself but shares them with the process that built the walls.
func (s spec) sharedNamespaces() []string {
	if !s.kind().namespaces {
		return nil
	}
	kinds := []string{"mnt", "pid", "ipc"}
	if s.ownNet() {
		kinds = append(kinds, "net")
	}
	inside := kernel.NamespaceIDs()
	return slices.DeleteFunc(kinds, func(kind string) bool { return inside[kind] != s.Outside[kind] && inside[kind] != "" })
}

// limits returns the restraint that every wall has in common.
func (s spec) limits() kernel.Restraint {
	return kernel.Restraint{Limits: s.Policy.Limits, As: s.Policy.As, Modes: !s.kind().mounted || s.Hidden != "", Net: s.Policy.Net || s.ownNet()}
}

// The mounts already guard the files.
func behindMounts(s spec) kernel.Restraint {
	r := s.limits()
	r.Files, r.Apart, r.Entries = true, true, kernel.BehindMounts(s.Entries)
	return r
}

// Only Landlock guards the files. Empty names are ignored.
func guardFiles(s spec, writable ...string) kernel.Restraint {
	r := s.limits()
	r.Files, r.Strict, r.Entries = true, true, slices.Concat(s.Entries, kernel.DevicesAndProc())
	for _, path := range writable {
		if path != "" {
			r.Entries = append(r.Entries, sandbox.Entry{Path: path, Access: sandbox.AccessWrite, Dir: true})
		}
	}
	return r
}

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

func (s spec) grade(r kernel.Reached) sandbox.Grade {
	g := sandbox.Grade{Wall: s.Wall, Level: s.kind().level, Landlock: r.Landlock, Seccomp: r.Seccomp, Net: "off", Open: r.Open}
	switch {
	case s.Policy.Net || s.kind().level == sandbox.LevelOpen:
		g.Net = "on"
	case len(s.Doors) > 0:
		g.Net = "doors"
	}
	if s.kind().level == sandbox.LevelOpen {
		g.Open = []string{"everything that the user may do"}
	}
	return g
}
