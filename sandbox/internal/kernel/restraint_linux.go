// Package kernel has the kernel hold a command: by Landlock, a filter of system
// calls, resource limits, dropped capabilities, namespaces, and a control group.
// [Restraint.Apply] is the way in; it works on the calling thread and on what
// that starts. What the kernel at hand cannot do is in [Reached].
package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Restraint is what the thread that starts a command gives up first. It cannot
// be taken back, and everything that the thread starts has given it up too. The
// zero restraint gives up privileges, closes what [Restraint.rules] names, and
// limits processes to the usual number.
type Restraint struct {
	// Entries are the paths as the command sees them. Where the walls are made
	// of mounts see [BehindMounts]; where Landlock is the only wall they are
	// the policy's with [DevicesAndProc].
	Entries []sandbox.Entry `json:"entries,omitempty"`
	// Files holds Entries by Landlock, as well as this kernel can.
	Files bool `json:"files,omitempty"`
	// Strict says that there is no other wall. Without Landlock it is then an
	// error; what reaches other processes and the network is closed too.
	Strict bool `json:"strict,omitempty"`
	// Net leaves the network open where Strict would close it.
	Net bool `json:"net,omitempty"`
	// Ports are the TCP ports that may be connected to although Strict closes
	// the network: those of doors. They are open at every address, as Landlock
	// knows none, and listening is free. So commands cannot connect to servers
	// of their own on other ports, and who can reach the machine can connect
	// to those servers.
	Ports []int `json:"ports,omitempty"`
	// Limits are the policy's.
	Limits sandbox.Limits `json:"limits"`
	// Apart says that the command's user namespace is its own, in which the
	// kernel counts its processes from zero.
	Apart bool `json:"apart,omitempty"`
	// Free gives up nothing and only limits, for no walls at all.
	Free bool `json:"free,omitempty"`
}

// Reached is what a restraint came to on this kernel.
type Reached struct {
	Landlock int  `json:"landlock,omitempty"` // the ABI that was used; 0 means none
	Seccomp  bool `json:"seccomp,omitempty"`
	// Processes is the RLIMIT_NPROC that was set; 0 where there is none.
	Processes uint64 `json:"processes,omitempty"`
	// Open are what this restraint was asked to hold and cannot, in words.
	Open []string `json:"open,omitempty"`
}

// Apply gives up what the restraint says. It works on the calling thread, whose
// goroutine must be locked to it and never unlocked, see [OnOwnThread]; only the
// limits are the whole process's, see [Restraint.limit]. Where Strict is set and Landlock is
// missing, the error is a [*WallError]. After an error the thread may have
// given up a part.
func (r Restraint) Apply() (got Reached, err error) {
	if got.Processes, err = r.limit(); err != nil || r.Free {
		return got, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return got, fmt.Errorf("forgo new privileges: %w", err)
	}
	// Before the capabilities go: it opens paths that only they may open.
	if got.Landlock, err = r.holdFiles(); err != nil {
		return got, fmt.Errorf("hold files by Landlock: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return got, fmt.Errorf("drop capabilities: %w", err)
	}
	if got.Seccomp, err = r.filterCalls(got.Landlock); err != nil {
		return got, fmt.Errorf("filter system calls: %w", err)
	}
	got.Open = r.open(got.Landlock, got.Seccomp)
	return got, nil
}

// OnOwnThread calls a function on a thread that nothing else ever runs on, so
// that it can be restrained, and returns when the function does. The thread is
// not the process's first: who may send signals to a process, or look into it,
// is judged by what that one has given up, and a command must not be equal to
// what watches it. The thread stays until the process ends, because children
// can be tied to it.
func OnOwnThread(do func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			OnOwnThread(do) // this one is held meanwhile, and after
		} else {
			do()
		}
		close(done)
		select {}
	}()
	<-done
}

// dropCapabilities drops all capabilities of the calling thread, and those that
// a program could get by being run.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		// EINVAL comes after the last one. Who may not drop them gets none
		// from them either: no new privileges are to be had.
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			break
		}
		if err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// filterCalls sets the filter of system calls on the calling thread, and
// reports whether this machine has any.
func (r Restraint) filterCalls(abi int) (bool, error) {
	program, ok := r.filter(thisMachine(), abi)
	if !ok {
		return false, nil
	}
	given := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&given)), 0, 0)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return err == nil, err
}

// open says in words what was to be held and is not.
func (r Restraint) open(abi int, seccomp bool) []string {
	var open []string
	if !seccomp {
		open = append(open, "no system call is filtered: the kernel's more dangerous interfaces are open")
	}
	if !r.Strict {
		return open
	}
	open = append(open, r.openFiles(abi)...)
	if !seccomp {
		open = append(open, "sockets of all kinds can be used; only TCP connections are held, if Landlock has ABI 4")
	}
	return append(open, r.openOthers(abi, seccomp)...)
}

// openFiles says what Landlock leaves open of files, as the only wall.
func (r Restraint) openFiles(abi int) []string {
	open := []string{"outside of the policy, files are seen to exist, can be watched for changes, and can have their modes, owners, times and attributes changed where the user may"}
	open = append(open, unheldEntries(r.Entries)...)
	if abi < 2 {
		open = append(open, "nothing can be renamed or linked from one folder to another (EXDEV), as Landlock has ABI 1")
	}
	if abi < 3 {
		open = append(open, "readable files of the user's can be truncated, as Landlock is below ABI 3")
	}
	if abi < 5 {
		open = append(open, "ioctl on devices that can be opened is not held, as Landlock is below ABI 5")
	}
	return open
}

// openOthers says what Landlock leaves open of other processes and the network.
func (r Restraint) openOthers(abi int, seccomp bool) []string {
	open := []string{"other processes are seen, with their command lines, and can be slowed down by their scheduling"}
	if abi < 6 {
		open = append(open, "the user's other processes can be sent signals, as Landlock is below ABI 6")
	}
	if r.Net {
		return open
	}
	if abi >= 4 || !seccomp {
		return append(open, "commands can listen on TCP ports, and be connected to from outside")
	}
	if len(r.Ports) > 0 {
		open = append(open, "doors cannot be reached: with Landlock below ABI 4 the network can only be closed altogether")
	}
	return open
}

// BehindMounts are the entries for walls that are made of mounts, which hold
// the files already: all that is shown may be read, what the policy lets be
// written, /dev and /tmp may be written, and /proc may not.
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

// DevicesAndProc are the entries that commands need beside the policy's where nothing
// is mounted for them: the devices that hold nothing, and /proc.
//
// What /proc tells of processes that are not the command's is held by Landlock
// where it is secret (environment, memory, open files), but not that they run,
// and with which command line. Left out are /tmp and /dev/shm, which
// other programs of the user use too, and terminals, which the user reads.
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
