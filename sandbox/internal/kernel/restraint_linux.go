// Package kernel restrains a command with the means of the Linux kernel:
// Landlock, a filter of system calls, resource limits, dropped capabilities,
// namespaces, and a control group.
//
// Call [Restraint.Apply]. It restrains the calling thread and all that the
// thread starts, and says in a grade what the running kernel cannot do.
package kernel

import (
	"os"

	"hone/sandbox"
)

// Restraint is what the thread that starts a command gives up first. It cannot
// be undone, and everything that the thread starts inherits it. The zero
// Restraint gives up privileges, denies the system calls of [Restraint.rules],
// and limits processes to the usual number.
type Restraint struct {
	// Entries are the paths as the command sees them: [BehindMounts] if the
	// wall mounts a file system, otherwise the policy's and [DevicesAndProc].
	// Landlock enforces them, as far as this kernel can. Nil leaves all files open
	// unless Strict is set.
	Entries []sandbox.Entry `json:"entries,omitempty"`
	// Strict means that there is no other wall. Apply then fails without
	// Landlock, and also denies calls that reach other processes and the
	// network.
	Strict bool `json:"strict,omitempty"`
	// Net leaves the network open although Strict is set.
	Net bool `json:"net,omitempty"`
	// Ports are the TCP ports to which commands may connect although Strict
	// closes the network: those of doors. They are open at every address,
	// because Landlock does not know addresses. Commands cannot connect to their
	// own servers on other ports; but listening is allowed, and other machines
	// may connect to those servers.
	Ports []int `json:"ports,omitempty"`
	// Limits are those of the policy.
	Limits sandbox.Limits `json:"limits"`
	// Root means that the command is started by the machine's root, to whom RLIMIT_NPROC does not
	// apply, not even in a user namespace; see [RootOfMachine].
	Root bool `json:"root,omitempty"`
	// Apart means that the command has a user namespace of its own, in which the
	// kernel counts its processes separately.
	Apart bool `json:"apart,omitempty"`
	// Free only sets the limits and the user, for commands without walls.
	Free bool `json:"free,omitempty"`
	// Modes means that root keeps its power over the modes of files.
	Modes bool `json:"modes,omitempty"`
	// As is whom the thread runs as from then on. The calling thread must be root's unless it
	// is zero.
	As sandbox.User `json:"as,omitzero"`
}

// BehindMounts returns the entries for walls whose mounts already guard the
// files: everything may be read; /dev, /tmp and what the policy makes writable
// may be written.
func BehindMounts(entries []sandbox.Entry) []sandbox.Entry {
	shown := []sandbox.Entry{
		{Path: "/", Access: sandbox.AccessRead, Dir: true},
		{Path: "/dev", Access: sandbox.AccessWrite, Dir: true},
		{Path: "/tmp", Access: sandbox.AccessWrite, Dir: true},
	}
	for _, e := range entries {
		if e.Access == sandbox.AccessWrite {
			shown = append(shown, e)
		}
	}
	return shown
}

// DevicesAndProc returns the entries that commands need in addition to the
// policy's if nothing is mounted for them: /proc, and the devices that contain no
// data.
//
// Landlock denies the secrets of other processes in /proc (environment, memory,
// open files), but not their existence and command lines. /tmp and /dev/shm are
// omitted because other programs of the user use them, and terminals because the
// user reads them.
func DevicesAndProc() []sandbox.Entry {
	shown := []sandbox.Entry{{Path: "/proc", Access: sandbox.AccessRead, Dir: true}}
	for _, device := range []string{"null", "zero", "full", "random", "urandom"} {
		path := "/dev/" + device
		if _, err := os.Lstat(path); err == nil {
			shown = append(shown, sandbox.Entry{Path: path, Access: sandbox.AccessWrite})
		}
	}
	return shown
}
