package kernel

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Restrain makes the calling thread, and all that it starts, give up what a policy does not allow.
// That cannot be undone. The goroutine must be locked to the thread and never unlocked, see
// [OnOwnThread]. Only the limits are for the whole process, see limit.
//
// Entries are those of the policy, as the command sees them. Where mounts guard the files already
// ([sandbox.Wall.Mounts]), Landlock and the filter of system calls are a second wall, and otherwise
// the only one; without a wall there are only the limits and the user.
//
// The grade has Landlock, Seccomp and Open: what the policy does not allow and this kernel cannot
// deny. If there is no Landlock and it is the only wall, the error is a [*sandbox.WallError]. After
// an error a part may have been applied.
func Restrain(p sandbox.Policy, entries []sandbox.Entry) (g sandbox.Grade, err error) {
	return restrain(p, heldBy(p.Wall, entries))
}

// Landlock enforces the entries, as far as this kernel can. Nil leaves all files open behind mounts.
func restrain(p sandbox.Policy, entries []sandbox.Entry) (g sandbox.Grade, err error) {
	if err := limit(p); err != nil {
		return g, err
	}
	if p.Wall == sandbox.NoWall {
		return g, become(p, sandbox.Capabilities())
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return g, fmt.Errorf("give up new privileges: %w", err)
	}
	// Before the capabilities: it opens paths that may need them.
	var unheld []string
	if g.Landlock, unheld, err = holdFiles(p, entries); err != nil {
		return g, fmt.Errorf("restrict files with Landlock: %w", err)
	}
	// A program that sees that it is root relies on root's power over modes, as a user relies on being
	// able to change the modes of his own files. In a user namespace it reaches only the files of its
	// users; otherwise Landlock says which files can be opened.
	keep := uint64(0)
	if os.Geteuid() == 0 {
		keep = 1 << unix.CAP_DAC_OVERRIDE
		if p.Wall.Mounts() {
			keep |= 1 << unix.CAP_FOWNER
		}
		keep &= sandbox.Capabilities()
	}
	if err := become(p, keep); err != nil {
		return g, err
	}
	if g.Seccomp, err = filterCalls(p, g.Landlock); err != nil {
		return g, fmt.Errorf("filter system calls: %w", err)
	}
	g.Open = open(p, unheld, g.Landlock, g.Seccomp)
	return g, nil
}

// heldBy returns the paths that Landlock is to enforce with a wall.
//
// Where nothing is mounted commands need /proc, and the devices that contain no data. Landlock
// denies the secrets of other processes in /proc (environment, memory, open files), but not their
// existence and command lines. /tmp and /dev/shm are omitted because other programs of the user use
// them, except behind firejail, which has its own, and terminals because the user reads them.
func heldBy(wall sandbox.Wall, entries []sandbox.Entry) []sandbox.Entry {
	dir := func(path string, a sandbox.Access) sandbox.Entry {
		return sandbox.Entry{Path: path, Access: a, Dir: true}
	}
	if wall.Mounts() {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e sandbox.Entry) bool { return e.Access != sandbox.AccessWrite })
		return append(entries, dir("/", sandbox.AccessRead), dir("/dev", sandbox.AccessWrite), dir("/tmp", sandbox.AccessWrite))
	}
	entries = append(slices.Clone(entries), dir("/proc", sandbox.AccessRead))
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		if _, err := os.Lstat("/dev/" + name); err == nil {
			entries = append(entries, sandbox.Entry{Path: "/dev/" + name, Access: sandbox.AccessWrite})
		}
	}
	if wall == sandbox.Firejail {
		entries = append(entries, dir("/tmp", sandbox.AccessWrite), dir("/dev/shm", sandbox.AccessWrite))
	}
	return entries
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

// securebitNoFixup is the kernel's SECBIT_NO_SETUID_FIXUP.
const securebitNoFixup = 1 << 2

// become makes the calling thread and what it starts run as p.As, with these capabilities. A program that
// it runs cannot gain others, not even from the bounding set, because no_new_privs is set.
func become(p sandbox.Policy, keep uint64) error {
	free := p.Wall == sandbox.NoWall
	if p.As != (sandbox.User{}) {
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("keep capabilities: %w", err)
		}
		if !free { // otherwise access(2) asks without the capabilities, and git finds no repository
			_ = unix.Prctl(unix.PR_SET_SECUREBITS, securebitNoFixup, 0, 0, 0)
		}
		// Of all threads, which need no groups; the rest is this thread's alone.
		if err := unix.Setgroups([]int{p.As.GID}); err != nil {
			return fmt.Errorf("run as group %d: %w", p.As.GID, err)
		}
		if err := unix.Setresgid(p.As.GID, p.As.GID, p.As.GID); err != nil {
			return fmt.Errorf("run as group %d: %w", p.As.GID, err)
		}
		if err := unix.Setresuid(p.As.UID, p.As.UID, p.As.UID); err != nil {
			return fmt.Errorf("run as user %d: %w", p.As.UID, err)
		}
	}
	if free && p.As == (sandbox.User{}) {
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

// The filter is for the calling thread. It reports whether this machine supports it.
func filterCalls(p sandbox.Policy, abi int) (bool, error) {
	program, ok := filter(p, thisMachine(), abi)
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

// open describes what the policy does not allow and the kernel cannot deny.
func open(p sandbox.Policy, unheld []string, abi int, seccomp bool) []string {
	var open []string
	if !seccomp {
		open = append(open, "system calls are not filtered: the kernel's dangerous interfaces are open")
	}
	if p.Wall.Mounts() {
		return open
	}
	open = append(open, "files outside the policy are visible and can be watched for changes; their modes, owners, times and attributes can be changed if the user may")
	open = append(open, unheld...)
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
	case !closesNet(p):
	case abi >= 4 || !seccomp:
		open = append(open, "commands can listen on TCP ports, and other machines may connect to them")
	case len(p.Doors) > 0:
		open = append(open, "doors cannot be reached: Landlock older than ABI 4 can only close the whole network")
	}
	return open
}

// Namespaces returns the attributes that start a process in namespaces of its
// own, as the same user, with the capabilities to build the hidden wall. net
// leaves it in this process's network. The user as exists there too.
func Namespaces(net bool, as sandbox.User) *syscall.SysProcAttr {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !net {
		flags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Getuid(), os.Getgid()
	return &syscall.SysProcAttr{
		Cloneflags:  uintptr(flags),
		UidMappings: mappings(uid, as.UID),
		GidMappings: mappings(gid, as.GID),
		// Supplementary groups can only be given up where they may be set.
		GidMappingsEnableSetgroups: as != (sandbox.User{}),
		AmbientCaps:                []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE},
	}
}

func mappings(own, other int) []syscall.SysProcIDMap {
	m := []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	if other != 0 && other != own {
		m = append(m, syscall.SysProcIDMap{ContainerID: other, HostID: other, Size: 1})
	}
	return m
}

// NamespaceIDs returns the names of this process's namespaces, by kind.
func NamespaceIDs() map[string]string {
	ids := map[string]string{}
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "user"} {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			ids[kind] = id
		}
	}
	return ids
}
