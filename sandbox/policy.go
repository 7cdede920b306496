package sandbox

import (
	"net"
	"runtime"
	"slices"
	"strings"
)

// Policy is all that commands behind walls get: what is shown (Read), what may be written (Write),
// what is covered (Hide, Placeholders, Overlays), the network, the environment and the limits. It starts
// with what the settings say, is completed in one place, by Equip in the package workshop, and is
// read by one, the package wall, which gives it to the process that starts the command and on to the
// kernel. Paths are absolute. The
// innermost path around a file decides about it; Hide takes precedence over
// Read, and Read over Write. A file below no path does not exist for commands, as
// far as the wall can hide it. The zero Policy lets a command reach nothing, not
// even the system's programs; see System in the package workshop. What the settings can say of it has a name in
// JSON, in which a run records them.
//
// Paths may contain symlinks: commands find the target under both names.
type Policy struct {
	// Wall is the kind of walls.
	Wall Wall `json:"wall,omitempty"`
	// Write are directories and files that may be read and changed. They must
	// exist.
	Write []string `json:"write,omitempty"`
	// Tree is what commands of others may write, if it is not in Write: no program in either
	// builds the walls. Commands do not see it.
	Tree string `json:"-"`
	// Read are directories and files that may be read and run. Missing ones are
	// skipped. In a directory of Write a command cannot create a missing one
	// either; or it is removed again afterwards, see [Result.Restored].
	Read []string `json:"read,omitempty"`
	// Hide are directories and files that do not exist for commands. In a
	// visible directory they are empty and cannot be read instead.
	Hide []string `json:"hide,omitempty"`
	// Tmp is the directory that the commands of a run see as /tmp. Some walls
	// cannot show it under another name. If it is empty each command has an
	// empty /tmp of its own behind walls that build a file system.
	Tmp string `json:"-"`
	// Aside is a directory outside everything that may be written, the same for all
	// processes of the user. It receives what a command put in place of a protected file,
	// and walls record there what they must restore and which placeholders they create.
	// It is required if a path of Read is in a directory of Write.
	Aside string `json:"-"`
	// Placeholders take the place of missing paths of Read while a command runs, by
	// path, so that the command cannot create them. Other missing paths, and all if
	// the wall can only grant, are removed afterwards instead.
	Placeholders map[string]Placeholder `json:"-"`
	// Overlays are directories that commands can change without changing the files
	// outside. Only Hidden has them, and only where the kernel mounts them for users
	// (Linux 5.11) on the file systems of Layers; other walls ignore them, and Hidden
	// ignores those of directories that do not exist or belong to another user. If a path is
	// also one of Read it is read-only there. Read and Write have no effect below the
	// path of an overlay.
	Overlays []Overlay `json:"-"`
	// Layers is a directory outside everything that commands may reach. It receives
	// what they write in Overlays. It is required if there are any.
	Layers string `json:"-"`
	// Env is the environment of commands, as KEY=VALUE; see Walls.Env in the package wall.
	Env []string `json:"-"`
	// Net lets commands use the network as this process can.
	Net bool `json:"net,omitempty"`
	// Doors are the addresses that commands can reach without Net.
	Doors []Door `json:"-"`
	// Limits bound each command.
	Limits
	// As is whom commands run as.
	As User `json:"-"`
}

// Placeholder is a harmless file or directory in place of one that does not exist.
// The zero Placeholder is an empty file.
type Placeholder struct {
	Dir  bool   // an empty directory
	Text string // the contents of a file
}

// Overlay is a directory that starts with the contents of another one, such as the
// user's cache. A command finds there what earlier commands of the run left. But if
// several commands run at the same time, each has its own copy, which a later
// command may get.
type Overlay struct {
	Path  string   // where commands find it: an existing directory
	Lower string   // the directory with the first contents, which is never written; it may be Path
	Env   []string // the variables of commands that find it, as KEY=VALUE
}

// Limits limit a command together with all that it started. The comments say
// what zero means; a negative number means no limit.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"`    // bytes of memory that processes map and no file on a disk backs; 0 means no limit
	Processes int   `json:"processes,omitempty"` // processes and threads; 0 means 4096
}

// MaxProcesses returns how many processes and threads are allowed; 0 means no
// limit.
func (l Limits) MaxProcesses() int {
	const standard = 4096
	switch {
	case l.Processes < 0:
		return 0
	case l.Processes == 0:
		return standard
	}
	return l.Processes
}

// Door is an address behind the walls that a function outside serves (rulings A8
// and A13).
type Door struct {
	// Addr is the address that commands use: a loopback address and a port, such
	// as 127.0.0.1:3000. Port 0 lets the walls choose; their DoorAddr returns it.
	Addr string
	// Serve answers one connection and closes it.
	// Contract: it is called from many goroutines, and returns when either side
	// closes the connection.
	Serve func(net.Conn)
}

// CleanEnv returns a copy of an environment without the variables that drop
// names, such as those with providers' keys (ruling G6). It compares names as
// the system does: without case on Windows. A nil drop removes none.
func CleanEnv(env, drop []string) []string {
	kept := make([]string, 0, len(env))
	for _, kv := range env {
		name := EnvName(kv)
		if !slices.ContainsFunc(drop, func(d string) bool { return sameName(d, name) }) {
			kept = append(kept, kv)
		}
	}
	return kept
}

// EnvValue returns the value of a variable in an environment: the last one if there
// are several, as programs see it, and empty if there is none.
func EnvValue(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n := EnvName(kv); sameName(n, name) {
			return strings.TrimPrefix(kv[len(n):], "=")
		}
	}
	return ""
}

// EnvName returns the part of KEY=VALUE before the equals sign. On Windows a name may start with
// one.
func EnvName(kv string) string {
	if kv == "" {
		return ""
	}
	if i := strings.IndexByte(kv[1:], '='); i >= 0 {
		return kv[:i+1]
	}
	return kv
}

func sameName(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// User is whom commands run as. The zero User is that of this process.
//
// Root in a container works in the tree of the user who mounted it there. Its commands run as
// that user, so that they can write the tree, and what they write is the user's. They keep
// root's power over the modes of files: in a user namespace over those of root and of that
// user, which these could change themselves.
type User struct{ UID, GID int }
