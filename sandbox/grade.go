package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Wall is the name of a kind of walls.
type Wall string

// The walls, strongest first. All except NoWall need Linux. None of them guards
// against faults of the kernel, or guards what happens to the tree after the
// command: files may have been written to attack the programs that read them
// (ruling G9). A table in sandbox/prove/table lists attempts to cross each wall
// and their results.
const (
	// Auto is the strongest of Hidden, Bubblewrap and Landlock that can be built
	// here. The grade names it, and says why a stronger one is not available.
	Auto Wall = "auto"
	// AutoMounts is Auto without Landlock, which cannot hide a part of what it shows.
	AutoMounts Wall = "auto-mounts"

	// Hidden needs no other program: the command has user, mount, process, IPC,
	// host name and network namespaces of its own, and sees a file system that
	// contains only the policy's paths. Landlock and a filter of system calls
	// add a second wall, as far as the kernel supports them. It needs Linux 5.12
	// and a system that lets the user make user namespaces.
	//
	// It leaves open: a hidden file in a visible directory appears as a device
	// that cannot be opened, a hidden directory as an empty one. A command can change files that have a hard link in a writable
	// directory, and can see how busy the machine is. With Policy.Net it can
	// reach every server on this machine. The machine's root remains the same
	// user inside and keeps its power over modes (CAP_DAC_OVERRIDE, CAP_FOWNER) alone,
	// which reaches only files of the users of its namespace.
	Hidden Wall = "hidden"

	// Bubblewrap is the same wall, built by the program bwrap, 0.4 or later,
	// which can be installed setuid on systems where users must not make
	// namespaces. Doors below port 1024 cannot be opened.
	Bubblewrap Wall = "bwrap"

	// Firejail is built by the program firejail, 0.9.72 or later. Auto never
	// chooses it. The directories around those of the policy contain nothing
	// else; the rest of the machine is visible, and only Landlock prevents a
	// command from opening it. In another sandbox firejail would run commands
	// without walls; Build refuses that.
	Firejail Wall = "firejail"

	// Landlock is Landlock and a filter of system calls, for systems without
	// namespaces. A command cannot open what the policy does not allow, but can
	// see that it exists, and can change its mode, owner, times and attributes
	// if the user may. Read and Hide have no effect in a directory of Write:
	// protected files are restored after the command (see Result.Restored), and
	// hidden ones remain readable. Other processes are visible. A command can
	// connect only to the ports of doors, at every address, and not even to its
	// own servers or unix sockets. It needs Linux 5.13; the grade lists what an
	// older kernel leaves open.
	Landlock Wall = "landlock"

	// NoWall holds nothing back. As behind walls, commands are limited, end
	// together with their daemons, and protected files are restored.
	NoWall Wall = "none"
)

// Namespaces reports whether commands have namespaces of their own behind the wall. The kernel ends
// their processes with the process namespace.
func (w Wall) Namespaces() bool { return w.Mounts() || w == Firejail }

// Mounts reports whether commands see a file system that is built from the policy.
func (w Wall) Mounts() bool { return w == Hidden || w == Bubblewrap }

// Level says in a word how much the wall holds back: with "hidden", what is not allowed does not exist for commands; with
// "guarded" they cannot open it, but may see it; with "open", nothing.
func (w Wall) Level() string {
	switch {
	case w.Mounts():
		return "hidden"
	case w == NoWall:
		return "open"
	}
	return "guarded"
}

// Grade describes walls as they work on this machine.
type Grade struct {
	Wall     Wall   `json:"wall"`
	Landlock int    `json:"landlock,omitempty"` // the ABI that was used; 0 means none
	Seccomp  bool   `json:"seccomp,omitempty"`
	Net      string `json:"net"` // off, doors, on
	// Why is the reason why Auto did not choose a stronger wall; empty if it
	// chose the strongest, or if Auto was not used.
	Why string `json:"why,omitempty"`
	// Open describes, for the user, what commands can still do although the
	// policy does not allow it.
	Open []string `json:"open,omitempty"`
}

// String returns the grade in one line.
func (g Grade) String() string {
	var layers []string
	if level := g.Wall.Level(); level != string(g.Wall) {
		layers = append(layers, level)
	}
	if g.Landlock > 0 {
		layers = append(layers, fmt.Sprintf("Landlock ABI %d", g.Landlock))
	}
	if g.Seccomp {
		layers = append(layers, "seccomp")
	}
	return fmt.Sprintf("%s (%s)", g.Wall, strings.Join(append(layers, "network "+g.Net), ", "))
}

// WallError means that a wall cannot be built here.
type WallError struct {
	Wall   Wall
	Reason string // for the user; empty if Err is enough
	Next   string // what the user can do; may be empty
	Err    error  // may be nil
}

// Error names the wall and the reason.
func (e *WallError) Error() string {
	text := fmt.Sprintf("the %s wall is not available", e.Wall)
	switch e.Wall {
	case Auto:
		text = "no wall is available"
	case AutoMounts:
		text = "no wall that hides the rest of the project works here"
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the operating system, or nil.
func (e *WallError) Unwrap() error { return e.Err }

// Hint returns what the user can do.
func (e *WallError) Hint() string { return e.Next }

// Restored is a protected path of a policy that commands changed and that was restored.
type Restored struct {
	// Path is absolute. It is that of the policy, also if only a file in it, or a
	// directory around it, was changed.
	Path string `json:"path"`
	// MovedTo is the path in [Policy.Aside] of what the command left there, or of a
	// directory that contains it. It is empty if the command left nothing, or changed
	// only the mode of a directory.
	MovedTo string `json:"kept,omitempty"`
	// NotRestored tells the user why Path is NOT as it was before, or may not be, and
	// names up to a hundred files; empty means that it is.
	NotRestored string `json:"lost,omitempty"`
}

// Note explains to the user what became of it.
func (r Restored) Note() string {
	text := r.Path + " is protected: a command changed it, and it was restored"
	if r.NotRestored != "" {
		text = r.Path + " is protected: a command changed it, and it was NOT restored: " + r.NotRestored
	}
	if r.MovedTo != "" {
		text += "; the command's version is in " + r.MovedTo
	}
	return text
}

// Repository is a git repository that a command made in the workspace (ruling G5), or a symlink that it put into one.
type Repository struct {
	Path string // absolute: a git directory, or a .git file or symlink
	Link bool   // it is a symlink in a git directory
	// Why is what git could run a program for. Empty means that there is nothing, and that
	// the repository stays.
	Why string
	// MovedTo is where it is now; empty if it stays.
	MovedTo string
}

// Note explains to the user and to a model what became of it.
func (r Repository) Note() string {
	what, where := "a command made the git repository "+r.Path, "it was moved to "+r.MovedTo
	if r.Link {
		what = "a command put the symlink " + r.Path + " into a git repository"
	}
	switch {
	case r.Why == "":
		return what
	case r.MovedTo == "":
		where = "it could not be moved away: do not call git there"
	}
	return fmt.Sprintf("%s, which could let git run a program (%s); %s", what, r.Why, where)
}

// WantsNetwork reports whether the output of a failed command suggests that it
// needed the network. It knows the messages of resolvers, common programs and
// package managers, behind walls without a network or in their offline modes. A
// closed port of this machine does not count. It is a guess: use it
// only for hints.
func WantsNetwork(output string) bool {
	text := strings.ToLower(output)
	signs := []string{ // in lower case
		// Resolvers and sockets: the C library, Go, Python, Node, Java, Rust.
		"could not resolve host",
		"temporary failure in name resolution",
		"temporary failure resolving",
		"name or service not known",
		"nodename nor servname provided",
		"unable to resolve host address",
		"failed to lookup address information",
		"dns error:",
		"no such host",
		"dial udp",
		"network is unreachable",
		"network unreachable",
		"no route to host",
		"getaddrinfo enotfound",
		"getaddrinfo eai_again",
		"enetunreach",
		"unknownhostexception",
		"connect eacces",
		"connect eperm",
		"[errno 13] connect call failed",
		"urlopen error [errno 13]",
		"establish a new connection: [errno 13]",
		// Programs.
		"unable to access 'http",
		"could not read from remote repository",
		// Package managers in their offline modes, or after retries.
		"disabled by goproxy=off",
		"module lookup disabled",
		"enotcached",
		"only-if-cached",
		"--offline was specified",
		"--offline flag",
		"cannot access the network",
		"in offline mode",
		"for offline mode",
		"no matching distribution found for",
		"network connectivity is disabled",
		"failed to download from",
		"failed to fetch http",
	}
	wants := func(sign string) bool { return strings.Contains(text, sign) }
	return slices.ContainsFunc(signs, wants) || refusedElsewhere.MatchString(text)
}

// refusedElsewhere matches a connection that this machine itself refused, such as
// "dial tcp 1.2.3.4:443: connect: permission denied", or the end of a traceback. Landlock also refuses those to a
// server that the command itself has started.
var refusedElsewhere = lazyregexp.New(`((dial tcp|connect to|connecting to|connection to server at|connect) |/dev/tcp/)[^\n]*: (permission denied|operation not permitted|eacces|eperm)\b|` +
	`permission denied - connect\(2\) for [^/\n]|exception: permission denied\n\s+at \S*net\.connect|` +
	`connect\([^/\n]*\n([e\s~^]*\n)?(e\s+)?permissionerror: \[errno 13\] permission denied(\n|$)`)
