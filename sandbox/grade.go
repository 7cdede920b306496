package sandbox

import (
	"fmt"
	"strings"
)

// Wall names a kind of walls.
type Wall string

// The walls, strongest first. Beyond NoWall they are Linux's. None of them
// guards the kernel against its own faults, or what is done with the tree after
// the command: what a command wrote may have been written to attack whoever
// reads it (ruling G9). The table of what was tried against each of them, and
// what came of it, is in the package prove.
const (
	// Auto is the strongest of Hidden, Bubblewrap and Landlock that can be had
	// here; the grade says which, and why not a stronger one.
	Auto Wall = "auto"

	// Hidden is built by this program alone: the command has user, mount,
	// process, IPC, host name and network namespaces of its own, and sees a
	// file system that is put together from what the policy shows. Everything
	// else does not exist. Landlock and a filter of system calls stand behind
	// it, as far as the kernel has them. It needs Linux 5.12 and a system that
	// lets the user make user namespaces.
	//
	// What it does not guard: files and folders that are hidden within one that
	// is shown leave an empty one behind. What was linked into a writable
	// folder before can be changed there. How busy the machine is can be seen.
	// The machine's root stays the one user inside, without its powers: files
	// of others cannot be written even where the policy shows them writable.
	// With Policy.Net, whatever listens on this machine can be reached.
	Hidden Wall = "hidden"

	// Bubblewrap is the same put together by the program bwrap, from 0.4 on,
	// which may be installed setuid where users must not make namespaces. Its
	// hidden files look like devices. Doors below port 1024 cannot be opened.
	Bubblewrap Wall = "bwrap"

	// Firejail is built by the program firejail, from 0.9.72 on, and is taken
	// only when it is named. Folders beside those of the policy do not exist;
	// the rest of the machine is seen, and only Landlock keeps it from being
	// opened. Where firejail runs inside of another sandbox it would run
	// commands without walls; that is refused.
	Firejail Wall = "firejail"

	// Landlock is Landlock and a filter of system calls alone, where there are
	// no namespaces to be had. What is not allowed cannot be opened, but is
	// seen to exist, and its mode, owner, times and attributes can be changed
	// where the user may. Read and Hide have no effect within a folder of
	// Write; protected files that were changed are put back after the command
	// (see Result.Restored), hidden ones stay readable. Other processes are
	// seen. A command cannot connect to servers of its own, unix sockets
	// included, nor anywhere else but to doors, whose ports are open at every
	// address. It needs Linux 5.13; the grade says what an old one leaves open.
	Landlock Wall = "landlock"

	// NoWall holds nothing back. Commands are bounded, and end with their
	// daemons, as behind walls, and protected files are put back.
	NoWall Wall = "none"
)

// Level is how much walls hold back.
type Level string

const (
	LevelHidden  Level = "hidden"  // what is not allowed does not exist
	LevelGuarded Level = "guarded" // what is not allowed cannot be opened, but may be seen to exist
	LevelOpen    Level = "open"    // nothing is held back
)

// Grade says what walls reached on this machine.
type Grade struct {
	Wall     Wall   `json:"wall"`
	Level    Level  `json:"level"`
	Landlock int    `json:"landlock,omitempty"` // the ABI that was used; 0 means none
	Seccomp  bool   `json:"seccomp,omitempty"`
	Net      string `json:"net"` // off, doors, on
	// Why says why Auto did not take a stronger one.
	Why string `json:"why,omitempty"`
	// Open are what a command can still do that the policy does not allow, in
	// words.
	Open []string `json:"open,omitempty"`
}

// String is the grade in a line.
func (g Grade) String() string {
	layers := []string{string(g.Level)}
	if g.Landlock > 0 {
		layers = append(layers, fmt.Sprintf("Landlock ABI %d", g.Landlock))
	}
	if g.Seccomp {
		layers = append(layers, "seccomp")
	}
	return fmt.Sprintf("%s (%s; network %s)", g.Wall, strings.Join(layers, ", "), g.Net)
}

// WallError says that a wall cannot be had.
type WallError struct {
	Wall   Wall
	Reason string // for a person
	Next   string // what to do about it; may be empty
	Err    error  // may be nil
}

// Error names the wall and the reason.
func (e *WallError) Error() string {
	text := fmt.Sprintf("the wall %s cannot be had: %s", e.Wall, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is what the operating system said, or nil.
func (e *WallError) Unwrap() error { return e.Err }

// Hint is what to do about it.
func (e *WallError) Hint() string { return e.Next }

// Restored is a protected path that a command changed, or tried to.
type Restored struct {
	// Path is absolute. Of a folder that was replaced as a whole only the folder
	// is told, and after the first hundred changes the folder around the rest.
	Path string `json:"path"`
	// Kept is where what the command left at Path is now, in [Policy.Aside];
	// empty where it left nothing there, where only a mode, an owner or a
	// second name was changed, or where there is no Aside.
	Kept string `json:"kept,omitempty"`
	// Lost says, for a person, why Path is NOT as it was before, or may not be;
	// empty means that it is.
	Lost string `json:"lost,omitempty"`
}
