package kernel

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Apply restrains the calling thread. The goroutine must be locked to the thread
// and never unlocked, see [OnOwnThread]. Only the limits are for the whole
// process, see [Restraint.limit]. The grade has Landlock, Seccomp and Open: what the restraint
// should deny and cannot on this kernel. processes is the RLIMIT_NPROC that was set; 0 if none was.
// If Strict is set and there is no Landlock, the error is a [*sandbox.WallError]. After an error a
// part may have been applied.
func (r Restraint) Apply() (g sandbox.Grade, processes uint64, err error) {
	if processes, err = r.limit(); err != nil {
		return g, 0, err
	}
	if r.Free {
		return g, processes, r.become(sandbox.Capabilities())
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return g, 0, fmt.Errorf("give up new privileges: %w", err)
	}
	// Before the capabilities: it opens paths that may need them.
	if g.Landlock, err = r.holdFiles(); err != nil {
		return g, 0, fmt.Errorf("restrict files with Landlock: %w", err)
	}
	keep := r.power()
	if err := dropCapabilities(keep); err != nil {
		return g, 0, fmt.Errorf("drop capabilities: %w", err)
	}
	if err := r.become(keep); err != nil {
		return g, 0, err
	}
	if g.Seccomp, err = r.filterCalls(g.Landlock); err != nil {
		return g, 0, fmt.Errorf("filter system calls: %w", err)
	}
	g.Open = r.open(g.Landlock, g.Seccomp)
	return g, processes, nil
}

// OnOwnThread calls a function on a new thread that runs nothing else, so that
// the function may restrain it, and returns when the function does. The thread
// is never the first of the process: the kernel decides by the first thread's
// restraint which process may signal or trace this one, and a command must not
// have the rights of its supervisor. The thread exists until the process ends,
// because children may be tied to it.
func OnOwnThread(do func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			OnOwnThread(do) // this goroutine keeps the first thread
		} else {
			do()
		}
		close(done)
		select {}
	}()
	<-done
}

// power returns the capabilities that commands keep: those of root over the modes of files.
// A program that sees that it is root relies on them, as a user relies on being able to change
// the modes of his own files. In a user namespace they reach only the files of its users;
// otherwise Landlock says which files can be opened.
func (r Restraint) power() uint64 {
	if os.Geteuid() != 0 || !r.Modes {
		return 0
	}
	power := uint64(1 << unix.CAP_DAC_OVERRIDE)
	if r.Apart {
		power |= 1 << unix.CAP_FOWNER
	}
	return power & sandbox.Capabilities()
}

// securebitNoFixup is the kernel's SECBIT_NO_SETUID_FIXUP.
const securebitNoFixup = 1 << 2

// become makes the calling thread and what it starts run as r.As, with these capabilities.
func (r Restraint) become(keep uint64) error {
	if r.As != (sandbox.User{}) {
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("keep capabilities: %w", err)
		}
		if !r.Free { // otherwise access(2) asks without the capabilities, and git finds no repository
			_ = unix.Prctl(unix.PR_SET_SECUREBITS, securebitNoFixup, 0, 0, 0)
		}
		// Of all threads, which need no groups; the rest is this thread's alone.
		if err := unix.Setgroups([]int{r.As.GID}); err != nil {
			return fmt.Errorf("run as group %d: %w", r.As.GID, err)
		}
		if err := unix.Setresgid(r.As.GID, r.As.GID, r.As.GID); err != nil {
			return fmt.Errorf("run as group %d: %w", r.As.GID, err)
		}
		if err := unix.Setresuid(r.As.UID, r.As.UID, r.As.UID); err != nil {
			return fmt.Errorf("run as user %d: %w", r.As.UID, err)
		}
	}
	if r.Free && r.As == (sandbox.User{}) {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	low, high := uint32(keep), uint32(keep>>32)
	data := [2]unix.CapUserData{{Effective: low, Permitted: low, Inheritable: low}, {Effective: high, Permitted: high, Inheritable: high}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("set capabilities: %w", err)
	}
	for ; keep != 0; keep &= keep - 1 {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(bits.TrailingZeros64(keep)), 0, 0); err != nil {
			return fmt.Errorf("keep capabilities: %w", err)
		}
	}
	return nil
}

// dropCapabilities drops the capabilities, other than some, that the calling thread could
// get by running a program.
func dropCapabilities(keep uint64) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	for c := uintptr(0); ; c++ {
		if c < 64 && keep>>c&1 == 1 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		// EINVAL comes after the last one. EPERM does not matter: without new
		// privileges a program gets no capability.
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The filter is for the calling thread. It reports whether this machine supports it.
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

// open describes what the restraint should deny and cannot.
func (r Restraint) open(abi int, seccomp bool) []string {
	var open []string
	if !seccomp {
		open = append(open, "system calls are not filtered: the kernel's dangerous interfaces are open")
	}
	if !r.Strict {
		return open
	}
	open = append(open, "files outside the policy are visible and can be watched for changes; their modes, owners, times and attributes can be changed if the user may")
	open = append(open, unheldEntries(r.Entries)...)
	if abi < 2 {
		open = append(open, "no file can be renamed or linked to another directory (EXDEV), because Landlock has ABI 1")
	}
	if abi < 3 {
		open = append(open, "the user's readable files can be truncated, because Landlock is older than ABI 3")
	}
	if abi < 5 {
		open = append(open, "ioctl on devices that can be opened is not restricted, because Landlock is older than ABI 5")
	}
	if !seccomp {
		open = append(open, "all kinds of sockets can be used; Landlock restricts only TCP connections, from ABI 4")
	}
	open = append(open, "other processes are visible with their command lines, and their scheduling can be changed to slow them down")
	if abi < 6 {
		open = append(open, "the user's other processes can be signalled, because Landlock is older than ABI 6")
	}
	switch {
	case r.Net:
	case abi >= 4 || !seccomp:
		open = append(open, "commands can listen on TCP ports, and other machines may connect to them")
	case len(r.Ports) > 0:
		open = append(open, "doors cannot be reached: Landlock older than ABI 4 can only close the whole network")
	}
	return open
}
