package kernel

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probesName is the name of the test binary when it tries the probes.
const probesName = "hone-probes"

// errAny stands for a result that is not checked. A probe with this result without a
// restraint is not tried then, because it may do harm.
var errAny = errors.New("anything")

// probe is an action and its result in each case; nil means that it succeeds.
type probe struct {
	name   string
	strict error // Landlock as the only wall
	walls  error // behind walls
	free   error // unrestrained, as any user
	try    func(scene) error
}

func strictly(p probe) error     { return p.strict }
func behindWalls(p probe) error  { return p.walls }
func unrestrained(p probe) error { return p.free }

// runProbes reads a scene from standard input, tries all probes on it, and writes the
// numbers of their errors to standard output.
func runProbes() {
	var s scene
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		panic(err)
	}
	runtime.LockOSThread()
	seen := map[string]syscall.Errno{}
	for _, p := range probes() {
		if s.Free && p.free == errAny {
			continue
		}
		var number syscall.Errno
		if err := p.try(s); err != nil && !errors.As(err, &number) {
			panic(p.name + ": " + err.Error())
		}
		seen[p.name] = number
	}
	must(0, json.NewEncoder(os.Stdout).Encode(seen))
}

func probes() []probe {
	var all []probe
	for _, list := range [][]probe{insideProbes(), outsideProbes(), socketProbes(), callProbes(), processProbes()} {
		all = append(all, list...)
	}
	return all
}

// opened tries to open a file.
func opened(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func insideProbes() []probe {
	in := func(s scene, name string) string { return filepath.Join(s.Inside, name) }
	return []probe{
		{"inside: read", nil, nil, nil, func(s scene) error { return opened(in(s, "file"), unix.O_RDONLY) }},
		{"inside: append", nil, nil, nil, func(s scene) error { return opened(in(s, "file"), unix.O_WRONLY|unix.O_APPEND) }},
		{"inside: truncate", nil, nil, nil, func(s scene) error { return unix.Truncate(in(s, "sub/../file"), 10) }},
		{"inside: create", nil, nil, nil, func(s scene) error { return opened(in(s, "new"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) }},
		{"inside: mkdir", nil, nil, nil, func(s scene) error { return unix.Mkdir(in(s, "newdir"), 0o755) }},
		{"inside: rename across", nil, nil, nil, func(s scene) error { return unix.Rename(in(s, "new"), in(s, "newdir/new")) }},
		{"inside: link across", nil, nil, nil, func(s scene) error { return unix.Link(in(s, "file"), in(s, "newdir/link")) }},
		{"inside: symlink", nil, nil, nil, func(s scene) error { return unix.Symlink(s.Outside, in(s, "out")) }},
		{"inside: through the symlink", unix.EACCES, nil, nil, func(s scene) error { return opened(in(s, "out/file"), unix.O_RDONLY) }},
		{"inside: fifo", nil, nil, nil, func(s scene) error { return unix.Mkfifo(in(s, "fifo"), 0o644) }},
		{"inside: device", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Mknod(in(s, "null"), unix.S_IFCHR|0o666, 0x103) }},
		{"inside: list", nil, nil, nil, func(s scene) error { _, err := os.ReadDir(s.Inside); return err }},
		{"inside: remove", nil, nil, nil, func(s scene) error { return unix.Unlink(in(s, "fifo")) }},
		{"inside: run", nil, nil, nil, func(s scene) error { return unix.Access(in(s, "program"), unix.X_OK) }},
		{"device: null", nil, nil, nil, func(scene) error { return opened("/dev/null", unix.O_RDWR) }},
		{"proc: own", nil, nil, nil, func(scene) error { return opened("/proc/self/environ", unix.O_RDONLY) }},
		{"proc: write", unix.EACCES, unix.EACCES, nil, func(scene) error { return opened("/proc/self/comm", unix.O_WRONLY) }},
		{"proc: another's environment", unix.EACCES, unix.EACCES, nil, func(s scene) error { return opened(procPath(s.Victim, "environ"), unix.O_RDONLY) }},
		{"lib: read", nil, nil, nil, func(s scene) error { return opened(filepath.Join(s.Lib, "sub/../file"), unix.O_RDONLY) }},
		{"lib: write", unix.EACCES, unix.EACCES, nil, func(s scene) error { return opened(filepath.Join(s.Lib, "file"), unix.O_WRONLY) }},
		{"lib: read and truncate", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return opened(filepath.Join(s.Lib, "file"), unix.O_RDONLY|unix.O_TRUNC) }},
		{"lib: create", unix.EACCES, unix.EACCES, nil, func(s scene) error { return opened(filepath.Join(s.Lib, "new"), unix.O_CREAT|unix.O_WRONLY) }},
		{"lib: link into", unix.EXDEV, unix.EXDEV, errAny, func(s scene) error {
			return unix.Link(filepath.Join(s.Lib, "file"), in(s, "fromlib"))
		}},
	}
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

func outsideProbes() []probe {
	out := func(s scene, name string) string { return filepath.Join(s.Outside, name) }
	return []probe{
		{"outside: stat", nil, nil, nil, func(s scene) error { _, err := os.Stat(out(s, "file")); return err }},
		{"outside: read", unix.EACCES, nil, nil, func(s scene) error { return opened(out(s, "file"), unix.O_RDONLY) }},
		{"outside: read /etc/passwd", unix.EACCES, nil, nil, func(scene) error { return opened("/etc/passwd", unix.O_RDONLY) }},
		{"outside: list", unix.EACCES, nil, nil, func(s scene) error { return opened(s.Outside, unix.O_RDONLY|unix.O_DIRECTORY) }},
		{"outside: write", unix.EACCES, unix.EACCES, nil, func(s scene) error { return opened(out(s, "file"), unix.O_WRONLY) }},
		{"outside: truncate", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Truncate(out(s, "file"), 3) }},
		{"outside: create", unix.EACCES, unix.EACCES, nil, func(s scene) error { return opened(out(s, "new"), unix.O_CREAT|unix.O_WRONLY) }},
		{"outside: mkdir", unix.EACCES, unix.EACCES, nil, func(s scene) error { return unix.Mkdir(out(s, "newdir"), 0o755) }},
		{"outside: symlink", unix.EACCES, unix.EACCES, nil, func(s scene) error { return unix.Symlink("x", out(s, "newlink")) }},
		{"outside: rename in it", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Rename(out(s, "file"), out(s, "sub/moved")) }},
		{"outside: rename into inside", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Rename(out(s, "file"), filepath.Join(s.Inside, "taken")) }},
		{"outside: link into inside", unix.EXDEV, unix.EXDEV, errAny, func(s scene) error { return unix.Link(out(s, "file"), filepath.Join(s.Inside, "linked")) }},
		{"outside: rename out of inside", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Rename(filepath.Join(s.Inside, "file"), out(s, "new")) }},
		{"outside: unlink", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Unlink(out(s, "program")) }},
		{"outside: rmdir", unix.EACCES, unix.EACCES, errAny, func(s scene) error { return unix.Rmdir(out(s, "sub")) }},
		{"outside: run", unix.EACCES, errAny, errAny, func(s scene) error {
			return errno(syscall.ForkExec(out(s, "program"), []string{"program"}, nil))
		}},
	}
}

// errno returns the error of a function that also returns a process, and waits for the
// process.
func errno(pid int, err error) error {
	if err == nil {
		_, err = unix.Wait4(pid, nil, 0, nil)
	}
	return err
}

// socket tries to make a socket.
func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// withSocket calls a function with a new socket.
func withSocket(family, kind, protocol int, do func(fd int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

func connect(to unix.Sockaddr) func(int) error {
	return func(fd int) error { return unix.Connect(fd, to) }
}

func loopback(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func socketProbes() []probe {
	pair := func(kind int) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if err == nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
		}
		return err
	}
	const stream, dgram = unix.SOCK_STREAM, unix.SOCK_DGRAM
	return []probe{
		{"tcp: connect", unix.EACCES, nil, nil, func(s scene) error { return withSocket(unix.AF_INET, stream, 0, connect(loopback(s.Listener))) }},
		{"tcp: connect over IPv6", unix.EACCES, errAny, errAny, func(s scene) error {
			mapped := &unix.SockaddrInet6{Port: s.Listener, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
			return withSocket(unix.AF_INET6, stream, 0, connect(mapped))
		}},
		{"tcp: connect to the door", nil, nil, nil, func(s scene) error { return withSocket(unix.AF_INET, stream, 0, connect(loopback(s.Door))) }},
		{"tcp: fast open", unix.EACCES, nil, nil, func(s scene) error {
			return withSocket(unix.AF_INET, stream, 0, func(fd int) error { return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, loopback(s.Listener)) })
		}},
		{"tcp: fast open by sendmsg", unix.EACCES, nil, nil, func(s scene) error {
			return withSocket(unix.AF_INET, stream, 0, func(fd int) error {
				return unix.Sendmsg(fd, []byte("x"), nil, loopback(s.Listener), unix.MSG_FASTOPEN)
			})
		}},
		{"tcp: listen", nil, nil, nil, func(scene) error {
			return withSocket(unix.AF_INET, stream, 0, func(fd int) error { return errors.Join(unix.Bind(fd, loopback(0)), unix.Listen(fd, 1)) })
		}},
		{"mptcp", unix.EACCES, errAny, errAny, func(scene) error { return socket(unix.AF_INET, stream, unix.IPPROTO_MPTCP) }},
		{"udp", unix.EACCES, nil, nil, func(scene) error { return socket(unix.AF_INET, dgram, 0) }},
		{"udp over IPv6", unix.EACCES, errAny, errAny, func(scene) error { return socket(unix.AF_INET6, dgram, 0) }},
		{"raw", unix.EACCES, unix.EPERM, errAny, func(scene) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		{"packet", unix.EAFNOSUPPORT, unix.EAFNOSUPPORT, errAny, func(scene) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
		{"packet by its old name", unix.EACCES, unix.EAFNOSUPPORT, errAny, func(scene) error { return socket(unix.AF_INET, unix.SOCK_PACKET, 0) }},
		{"vsock", unix.EAFNOSUPPORT, unix.EAFNOSUPPORT, errAny, func(scene) error { return socket(unix.AF_VSOCK, stream, 0) }},
		{"crypto", unix.EAFNOSUPPORT, unix.EAFNOSUPPORT, errAny, func(scene) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
		{"netlink: routes", nil, nil, nil, func(scene) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE) }},
		{"netlink: events", unix.EAFNOSUPPORT, unix.EAFNOSUPPORT, errAny, func(scene) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) }},
		{"unix: path", belowABI(9, unix.EACCES), errAny, nil, func(s scene) error {
			return withSocket(unix.AF_UNIX, stream, 0, connect(&unix.SockaddrUnix{Name: s.Path}))
		}},
		{"unix: abstract", belowABI(9, unix.EACCES), unix.EPERM, nil, func(s scene) error {
			return withSocket(unix.AF_UNIX, stream, 0, connect(&unix.SockaddrUnix{Name: s.Abstract}))
		}},
		{"unix: pair", nil, nil, nil, func(scene) error { return pair(stream) }},
		{"unix: pair of packets", nil, nil, nil, func(scene) error { return pair(unix.SOCK_SEQPACKET) }},
		{"unix: pair of datagrams", belowABI(9, unix.EACCES), nil, nil, func(scene) error { return pair(dgram) }},
	}
}

// belowABI returns the error only on kernels with an older Landlock.
func belowABI(abi int, err error) error {
	if landlockABI() < abi {
		return err
	}
	return errAny
}

// raw makes a system call whose arguments cannot do harm.
func raw(call uintptr, args ...uintptr) error {
	args = append(args, 0, 0, 0, 0, 0, 0)
	_, _, e := unix.RawSyscall6(call, args[0], args[1], args[2], args[3], args[4], args[5])
	return errnoOf(e)
}

func callProbes() []probe {
	call := func(name string, want error, number uintptr, args ...uintptr) probe {
		return probe{name, want, want, errAny, func(scene) error { return raw(number, args...) }}
	}
	const nowhere = ^uintptr(0)
	return []probe{
		call("call: mount", unix.EPERM, unix.SYS_MOUNT),
		call("call: umount2", unix.EPERM, unix.SYS_UMOUNT2),
		call("call: chroot", unix.EPERM, unix.SYS_CHROOT),
		call("call: pivot_root", unix.EPERM, unix.SYS_PIVOT_ROOT),
		call("call: open_tree", unix.EPERM, unix.SYS_OPEN_TREE, nowhere),
		call("call: fsopen", unix.EPERM, unix.SYS_FSOPEN),
		call("call: mount_setattr", unix.EPERM, unix.SYS_MOUNT_SETATTR, nowhere),
		call("call: setns", unix.EPERM, unix.SYS_SETNS, nowhere),
		call("call: unshare user", unix.EPERM, unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		call("call: clone user", unix.EPERM, unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)),
		call("call: clone3", unix.ENOSYS, unix.SYS_CLONE3),
		call("call: bpf", unix.EPERM, unix.SYS_BPF, nowhere),
		call("call: perf_event_open", unix.EPERM, unix.SYS_PERF_EVENT_OPEN),
		call("call: userfaultfd", unix.EPERM, unix.SYS_USERFAULTFD, nowhere),
		call("call: keyctl", unix.EPERM, unix.SYS_KEYCTL),
		call("call: add_key", unix.EPERM, unix.SYS_ADD_KEY),
		call("call: io_uring_setup", unix.ENOSYS, unix.SYS_IO_URING_SETUP),
		call("call: open_by_handle_at", unix.EPERM, unix.SYS_OPEN_BY_HANDLE_AT, nowhere),
		call("call: settimeofday", unix.EPERM, unix.SYS_SETTIMEOFDAY),
		call("call: TIOCSTI", unix.EPERM, unix.SYS_IOCTL, nowhere, unix.TIOCSTI),
		{"call: TIOCSTI with more bits", unix.EPERM, unix.EPERM, errAny, func(scene) error { return raw(unix.SYS_IOCTL, nowhere, 1<<40|unix.TIOCSTI) }},
		{"call: unshare files", nil, nil, nil, func(scene) error { return raw(unix.SYS_UNSHARE, unix.CLONE_FILES) }},
		{"call: shmget", unix.ENOSYS, nil, nil, func(scene) error {
			id, _, e := unix.RawSyscall(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, 0o600)
			if e == 0 {
				return raw(unix.SYS_SHMCTL, id, unix.IPC_RMID)
			}
			return e
		}},
	}
}

// renice sets the priority of a process to its current value, which needs no privilege
// whatever the priority of the tests is.
func renice(pid int) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, pid, 20-now) // the kernel returns the reverse
}

func processProbes() []probe {
	return []probe{
		{"process: signal", unix.EPERM, unix.EPERM, nil, func(s scene) error { return unix.Kill(s.Victim, 0) }},
		{"process: signal to the parent", unix.EPERM, unix.EPERM, errAny, func(scene) error { return unix.Kill(os.Getppid(), 0) }},
		{"process: limit", unix.EPERM, errAny, nil, func(s scene) error {
			var limit unix.Rlimit
			if err := unix.Prlimit(s.Victim, unix.RLIMIT_CORE, nil, &limit); err != nil {
				return errors.New("limits cannot be read: " + err.Error())
			}
			return unix.Prlimit(s.Victim, unix.RLIMIT_CORE, &limit, nil)
		}},
		{"process: priority", unix.EPERM, errAny, nil, func(s scene) error { return renice(s.Victim) }},
		{"process: own priority", nil, nil, nil, func(scene) error { return renice(0) }},
		{"process: trace", unix.EPERM, unix.EPERM, errAny, func(s scene) error { return unix.PtraceSeize(s.Victim) }},
		{"process: memory", unix.EPERM, unix.EPERM, errAny, func(s scene) error {
			var b [8]byte
			local := unix.Iovec{Base: &b[0], Len: 8}
			return raw(unix.SYS_PROCESS_VM_READV, uintptr(s.Victim), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&local)), 1)
		}},
	}
}
