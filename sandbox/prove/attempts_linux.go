package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/process"
)

// Attempt is one way to cross walls.
type Attempt struct {
	Name, About string // the same as in the table of all attempts
	// Landlock is the first ABI with which the landlock wall stops it: 0 if each does,
	// never if none does.
	Landlock int

	open    bool                // it must get through, because the policy allows it
	alone   bool                // it is on the limits, and has a process of its own
	changes string              // what of the scene it changes if it gets through, whatever try returned; empty if nothing
	try     func(s scene) error // crosses the walls, and returns nil if it got through
}

const never = 1 << 30

// OpenBehind reports whether the attempt gets through as documented behind walls of a
// grade. Without walls every one may.
func (a Attempt) OpenBehind(g sandbox.Grade) bool {
	return a.open || g.Wall == sandbox.NoWall || g.Wall == sandbox.Landlock && g.Landlock < a.Landlock
}

// held means that an attempt failed without an error of the system.
type held string

func (e held) Error() string { return string(e) }

// unknown means that an attempt cannot be made here.
type unknown string

func (e unknown) Error() string { return string(e) }

// The words of a result, in addition to the names of error numbers.
const gotOpen, gotHeld, gotUnknown = "open", "held", "unknown"

func resultOf(name string, err error) Result {
	r := Result{Name: name, Got: gotOpen}
	if err == nil {
		return r
	}
	r.Got, r.Text = gotHeld, err.Error()
	if errors.As(err, new(unknown)) {
		r.Got = gotUnknown
	} else if errno, ok := errors.AsType[unix.Errno](err); ok && unix.ErrnoName(errno) != "" {
		r.Got = unix.ErrnoName(errno)
	}
	return r
}

// Attempts returns the attempts of [Wall], in the order of the package comment.
func Attempts() []Attempt {
	return []Attempt{
		{Name: "read-file", About: "read a file", try: func(s scene) error { return s.readSecret(s.Outside("secret")) }},
		{Name: "overwrite-file", About: "overwrite a file", changes: "outside", try: func(s scene) error { return put(s.Outside("file"), 0) }},
		{Name: "write-readable", About: "write a read-only file", changes: "lib", try: func(s scene) error { return put(s.Lib("file"), 0) }},
		{Name: "descriptors", About: "use a file that the prover left open for its child processes", try: tryDescriptors},
		{Name: "kernel-log", About: "open /dev/kmsg", try: func(scene) error {
			return closed(unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))
		}},

		{Name: "git-config-write", About: "write .git/config", changes: "work/.git", try: func(s scene) error { return put(s.Work(".git", "config"), 0) }},
		{Name: "git-directory-move", About: "move .git away, and make another one", changes: "work/.git", try: func(s scene) error {
			return errors.Join(unix.Rename(s.Work(".git"), s.Work("old")), os.Mkdir(s.Work(".git"), 0o755))
		}},
		{Name: "missing-file-create", About: "create a protected file that does not exist", changes: "work/.config", try: func(s scene) error {
			return put(s.Work(".config", "hone.toml"), unix.O_CREAT|unix.O_EXCL)
		}},
		{Name: "cache-write", About: "write a file of a cache with an overlay", changes: "cache", try: func(s scene) error { return put(s.Cache("file"), 0) }},
		{Name: "workspace-socket", About: "connect to a Unix socket of another program in the workspace", try: dial("unix", "workspace-socket")},
		{Name: "hidden-read", About: "read .env", Landlock: never, try: func(s scene) error { return s.readSecret(s.Work(".env")) }},
		{Name: "hidden-list", About: "list secrets/", Landlock: never, try: func(s scene) error {
			entries, err := os.ReadDir(s.Work("secrets"))
			if err == nil && len(entries) == 0 {
				return held("it is empty")
			}
			return err
		}},

		{Name: "proc-prover-root", About: "read a file through the prover's /proc/…/root", try: func(s scene) error {
			return s.readSecret(fmt.Sprintf("/proc/%d/root%s", s.PID, s.Outside("secret")))
		}},
		{Name: "proc-prover-mem", About: "open the prover's memory", try: func(s scene) error {
			if err := s.elsewhere(); err != nil {
				return err
			}
			return closed(unix.Open(fmt.Sprintf("/proc/%d/mem", s.PID), unix.O_RDONLY|unix.O_CLOEXEC, 0))
		}},
		{Name: "signal-prover", About: "have the right to signal the prover", Landlock: 6, try: func(s scene) error {
			if err := s.elsewhere(); err != nil {
				return err
			}
			return unix.Kill(s.PID, 0) // checks the right and sends nothing
		}},
		{Name: "environment", About: "find a variable that is not the command's own", try: func(scene) error {
			for _, pair := range os.Environ() {
				if !slices.Contains(environment(), pair) && !strings.HasPrefix(pair, "HONE_COMMAND_ID=") {
					return nil
				}
			}
			return held("it contains only the command's own variables")
		}},

		{Name: "fork-bomb", About: "start more processes than the limit", alone: true, try: tryForks},
		{Name: "memory-hog", About: "use more memory than the limit", alone: true, try: tryMemory},
		{Name: "daemon", About: "leave a process behind with another session and parent, no environment, signals ignored", alone: true, try: tryDaemon},

		{Name: "mount-bind", About: "mount an outside directory in the tree", try: tryMount},
		{Name: "unshare-user", About: "enter a new user namespace (unshare)", try: func(s scene) error {
			cmd := s.again("nothing")
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}
			return cmd.Run()
		}},
		{Name: "io-uring", About: "set up an io_uring", try: func(scene) error {
			var parameters [120]byte
			fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
			if errno != 0 {
				return errno
			}
			return closed(int(fd), nil)
		}},
		{Name: "session-keyring", About: "find the user's keyring", try: func(scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
			return err
		}},
		{Name: "terminal-input", About: "type into standard input's terminal (TIOCSTI)", try: func(scene) error {
			return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x')
		}},
		{Name: "new-privileges", About: "gain privileges by running a setuid program (no_new_privs is not set)", try: func(scene) error {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err != nil || set == 0 {
				return err
			}
			return held("running a program gives no privileges")
		}},
		{Name: "capabilities", About: "have any capability", try: func(scene) error {
			modes := uint64(1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER) // of root
			if os.Getuid() != 0 {
				modes = 0
			}
			if sandbox.Capabilities()&^modes != 0 {
				return nil
			}
			return held("there are none but root's over the modes of files")
		}},

		{Name: "tcp", About: "TCP to a server at a loopback address", try: dial("tcp", "tcp")},
		{Name: "unix-path", About: "connect to a Unix socket by its path", try: dial("unix", "unix-path")},
		{Name: "unix-abstract", About: "connect to an abstract Unix socket", try: dial("unix", "unix-abstract")},
		// To have the socket is enough; it connects to nothing.
		{Name: "vsock", About: "have a socket to the host of a virtual machine", try: func(scene) error {
			return closed(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		}},
		{Name: "sysv-memory", About: "attach to SysV shared memory", try: func(s scene) error {
			id, err := strconv.Atoi(s.Servers["sysv-memory"])
			if err != nil {
				return unknown("there is no shared memory")
			}
			memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			return unix.SysvShmDetach(memory)
		}},
		{Name: "door", About: "TCP to a door of the policy, which must be open", open: true, try: dial("tcp", "door")},
	}
}

func (s scene) readSecret(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && digest(text) != s.Digest {
		err = held("it is not the secret")
	}
	return err
}

// elsewhere returns an error if the prover's number is that of another process here. The prover may
// be reachable even if it is not visible.
func (s scene) elsewhere() error {
	if here, ok := process.ReadStatus(s.PID); ok && here.Born != s.Born {
		return unix.ESRCH
	}
	return nil
}

func put(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err == nil {
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte("crossed\n"))
	}
	return err
}

func closed(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func tryDescriptors(scene) error {
	for fd := 3; fd < 1024; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return unix.EBADF
}

func dial(network, server string) func(scene) error {
	return func(s scene) error {
		if s.Servers[server] == "" {
			return unknown("nothing can listen there")
		}
		conn, err := net.DialTimeout(network, s.Servers[server], 2*time.Second)
		if err == nil {
			conn.Close()
		}
		return err
	}
}

// Its mounts do not remain on a machine without walls.
func tryMount(s scene) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil && unix.Unshare(unix.CLONE_NEWNS) == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount(s.Outside(), s.Work("secrets"), "", unix.MS_BIND, "")
		}
		result <- err
	}()
	return <-result
}

// linger is how long the attempts wait for the limits to be enforced.
const linger = 1500 * time.Millisecond

// tryForks starts more processes than are allowed. They only wait. It returns nil
// if this process is still alive with them.
func tryForks(scene) error {
	const beyond = 200
	for range maxProcesses + beyond {
		if err := forkIdle(); err != nil {
			return err
		}
	}
	time.Sleep(linger)
	return nil
}

// forkIdle starts a process that waits until it is killed. The process only makes
// system calls, because the Go runtime does not work in it.
//
//go:norace
func forkIdle() error {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	for pid == 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
	return nil
}

// tryMemory uses more memory than is allowed. Where the kernel itself counts memory, it
// does not get that far.
func tryMemory(scene) error {
	memory, err := unix.Mmap(-1, 0, maxMemory+maxMemory/2, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	time.Sleep(linger)
	return nil
}

func (s scene) again(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: s.Program, Args: append([]string{helperName}, args...)}
}

// tryDaemon leaves a process behind with another session and parent, no
// environment, no descriptors, and signals ignored. Whether it is left is seen outside.
func tryDaemon(s scene) error {
	ready := s.Work("ready")
	leave := s.again("daemon", s.Program, ready)
	leave.Env, leave.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	if err := leave.Run(); err != nil {
		return err
	}
	for range 200 { // until it has started
		if _, err := os.Stat(ready); err == nil {
			return held("it ended with the command")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return unknown("it did not start")
}

// beDaemon starts the daemon, or, told only a file to make, is the daemon, which stays until it is killed. The file is in
// the scene's directory, by which the prover recognizes it.
func beDaemon(args []string) {
	ready := args[len(args)-1]
	if len(args) == 2 {
		daemon := scene{Program: args[0]}.again("daemon", ready)
		daemon.Env, daemon.Dir, daemon.SysProcAttr = []string{}, filepath.Dir("/"), &syscall.SysProcAttr{Setsid: true}
		_ = daemon.Start() // otherwise nothing makes the file
		return
	}
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	_ = os.WriteFile(ready, nil, 0o644)
	for {
		_, _ = unix.Poll(nil, -1)
	}
}

// Conditions returns a digest of what the result of [Wall] depends on: this
// program and the wall's own, the kernel since it was booted, and what the system
// allows this user. While it is the same, another proof would have the same result.
func Conditions(kind sandbox.Wall, tree string) (string, error) {
	programs := []string{"/proc/self/exe"}
	if kind == sandbox.Bubblewrap || kind == sandbox.Firejail {
		program, err := sandbox.FindProgram(string(kind), os.Environ(), tree)
		if err != nil {
			return "", err
		}
		programs = append(programs, program)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	groups, err := os.Getgroups()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %d %d %v\n", kind, boot, os.Geteuid(), os.Getuid(), os.Getegid(), groups)
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		id, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, id)
	}
	for _, program := range programs {
		var st unix.Stat_t
		if err := unix.Stat(program, &st); err != nil {
			return "", &fs.PathError{Op: "stat", Path: program, Err: err}
		}
		fmt.Fprintln(h, st.Dev, st.Ino, st.Size, st.Mode, st.Ctim.Nano())
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(status)) {
		if slices.ContainsFunc([]string{"Cap", "NoNewPrivs", "Seccomp"}, func(name string) bool { return strings.HasPrefix(line, name) }) {
			fmt.Fprint(h, line)
		}
	}
	for _, file := range settings() {
		value, _ := os.ReadFile(file) // a system that lacks it is another condition
		fmt.Fprintf(h, "%s %q\n", file, value)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func settings() []string {
	files := []string{"/proc/self/attr/current", "/sys/kernel/security/lsm", "/proc/sys/kernel/yama/ptrace_scope"}
	for _, pattern := range []string{"/proc/sys/user/max_*_namespaces", "/proc/sys/kernel/*userns*", "/proc/sys/kernel/seccomp/*", "/proc/sys/kernel/apparmor_*"} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		files = append(files, found...)
	}
	return files
}
