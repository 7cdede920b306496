package table

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/prove/table/stage"
)

// productAttempts returns those that the program makes as well, in the form of the table: each has files and
// directories of its own, and its result is compared word by word.
func productAttempts() []attempt {
	return slices.Concat(productFiles(), productGuarded(), productProcesses(), productKernel(), productNetwork())
}

func productFiles() []attempt {
	return []attempt{
		{Name: "read-file", About: "read a file", Try: func(s scene) error { return s.ReadSecret(s.Outside("secret")) }},
		{Name: "overwrite-file", About: "overwrite a file", Try: func(s scene) error { return stage.Put(s.Outside("file"), unix.O_WRONLY) }},
		{
			Name: "write-readable", About: "write a read-only file",
			Prepare: func(_ *stage.Stage, s scene) (string, error) {
				return "", s.Write(s.Lib(s.Name, "file"), "untouched\n")
			},
			Try: func(s scene) error { return stage.Put(s.Lib(s.Name, "file"), unix.O_WRONLY) },
		},
		{
			Name: "descriptors", About: "use a file that the prover left open for its child processes",
			Prepare: func(st *stage.Stage, s scene) (string, error) {
				fd, err := unix.Open(s.Outside(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
				if err == nil {
					st.AtEnd(func() { unix.Close(fd) })
				}
				return "", err
			},
			Try: func(scene) error {
				for fd := 3; fd < 1024; fd++ {
					flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
					if err == nil && flags&unix.FD_CLOEXEC == 0 {
						return nil
					}
				}
				return unix.EBADF
			},
		},
		{
			Name: "kernel-log", About: "open /dev/kmsg",
			Prepare: func(*stage.Stage, scene) (string, error) {
				if _, err := os.Stat("/dev/kmsg"); err != nil {
					return "", stage.Unknown("this machine has no /dev/kmsg")
				}
				return "", nil
			},
			Try: func(scene) error { return stage.Open("/dev/kmsg", unix.O_RDONLY) },
		},
	}
}

// productGuarded returns attempts on protected and hidden paths in a writable
// directory.
func productGuarded() []attempt {
	missing := stage.Missing(attempt{Name: "missing-file-create", About: "create a protected file that does not exist", Try: func(s scene) error {
		return stage.Put(s.Work(".config", "hone.toml"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	}})
	missing.Outside = true // walls may remove it afterwards
	return []attempt{
		stage.Git(attempt{Name: "git-config-write", About: "write .git/config", Try: func(s scene) error {
			return stage.Put(s.Work(".git", "config"), unix.O_WRONLY)
		}}),
		stage.Git(attempt{Name: "git-directory-move", About: "move .git away, and make another one", Try: func(s scene) error {
			if err := unix.Rename(s.Work(".git"), s.Work("old")); err != nil {
				return err
			}
			return s.Write(s.Work(".git", "config"), "crossed\n")
		}}),
		missing,
		stage.Cache(attempt{Name: "cache-write", About: "write a file of a cache with an overlay", Try: func(s scene) error {
			return stage.Put(s.Cache("file"), unix.O_WRONLY)
		}}),
		{
			Name: "workspace-socket", About: "connect to a Unix socket of another program in the workspace",
			Prepare: func(st *stage.Stage, s scene) (string, error) { return st.Serve(s.Name, "unix", s.Work("endpoint")) },
			Policy:  func(s scene, p *sandbox.Policy) { p.Hide = append(p.Hide, s.Work("endpoint")) },
			Try:     stage.Unix(unix.SOCK_STREAM),
		},
		stage.Secret(attempt{Name: "hidden-read", About: "read .env", Landlock: stage.Never, Try: func(s scene) error {
			return s.ReadSecret(s.Work(".env"))
		}}, ".env", ".env"),
		stage.Secret(attempt{Name: "hidden-list", About: "list secrets/", Landlock: stage.Never, Try: func(s scene) error {
			entries, err := os.ReadDir(s.Work("secrets"))
			if err == nil && len(entries) == 0 {
				return stage.Held("it is empty")
			}
			return err
		}}, "secrets/key", "secrets"),
	}
}

// productProcesses returns attempts to reach processes outside, to exceed limits,
// and to outlive the command.
func productProcesses() []attempt {
	return []attempt{
		{Name: "proc-prover-root", About: "read a file through the prover's /proc/…/root", Try: func(s scene) error {
			path, err := s.Prover.Proc("root")
			if err != nil {
				return err
			}
			return s.ReadSecret(path + s.Outside("secret"))
		}},
		{Name: "proc-prover-mem", About: "open the prover's memory", Try: func(s scene) error {
			path, err := s.Prover.Proc("mem")
			if err != nil {
				return err
			}
			return stage.Open(path, unix.O_RDONLY)
		}},
		{Name: "environment", About: "find a variable that is not the command's own", Try: func(s scene) error {
			for _, pair := range os.Environ() {
				name, _, _ := strings.Cut(pair, "=")
				if !slices.Contains(s.Env, name) {
					return nil
				}
			}
			return stage.Held("it contains only the command's own variables")
		}},
		{Name: "signal-prover", About: "have the right to signal the prover", Landlock: 6, Try: func(s scene) error {
			if err := s.Prover.Check(); err != nil {
				return err
			}
			return unix.Kill(s.Prover.PID, 0) // checks the right and sends nothing
		}},
		{Name: "fork-bomb", About: "start more processes than the limit", Alone: true, Try: tryForks},
		{Name: "memory-hog", About: "use more memory than the limit", Alone: true, Try: tryMemory},
		{
			Name: "daemon", About: "leave a process behind with another session and parent, no environment, signals ignored",
			Alone: true, Outside: true, Try: tryDaemon, Child: beDaemon,
		},
	}
}

// linger is how long the attempts wait for the limits to be enforced.
const linger = 1500 * time.Millisecond

// tryForks starts more processes than are allowed. They only wait. It returns nil
// if this process is still alive with them.
func tryForks(s scene) error {
	const beyond = 200
	for range s.Processes + beyond {
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
func tryMemory(s scene) error {
	memory, err := unix.Mmap(-1, 0, int(s.Memory+s.Memory/2), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	time.Sleep(linger)
	return nil
}

// tryDaemon leaves a process behind with another session and parent, no
// environment, no descriptors, and signals ignored.
func tryDaemon(s scene) error {
	ready := s.Work("ready")
	leave := s.Again("leave", s.Program, s.Name, ready)
	leave.Env, leave.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	if err := leave.Run(); err != nil {
		return err
	}
	for range 200 { // until it has started
		if _, err := os.Stat(ready); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return stage.Unknown("it did not start")
}

// beDaemon starts the daemon, or is the daemon, which stays until it is killed. What it
// is told contains the scene's directory, by which the prover recognizes it.
func beDaemon(args []string) error {
	if args[0] == "leave" {
		s := scene{Program: args[1], Name: args[2]}
		daemon := s.Again("stay", args[3])
		daemon.Env, daemon.Dir, daemon.SysProcAttr = []string{}, "/", &syscall.SysProcAttr{Setsid: true}
		return daemon.Start()
	}
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	if err := os.WriteFile(args[1], nil, 0o644); err != nil {
		return err
	}
	for {
		_, _ = unix.Poll(nil, -1)
	}
}

// productKernel returns attempts that use the kernel's own means to leave a wall
// or to attack the kernel, or rights that a command must not have.
func productKernel() []attempt {
	return []attempt{
		{Name: "mount-bind", About: "mount an outside directory in the tree", Try: stage.Apart(func(s scene) error {
			return unix.Mount(s.Outside(), s.Work(), "", unix.MS_BIND, "")
		})},
		{
			Name: "unshare-user", About: "enter a new user namespace (unshare)",
			Try:   func(s scene) error { return s.RunAgain(&syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}) },
			Child: func([]string) error { return nil },
		},
		{Name: "io-uring", About: "set up an io_uring", Try: func(scene) error {
			var parameters [120]byte
			return stage.Call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
		}},
		{Name: "session-keyring", About: "find the user's keyring", Try: func(scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
			return err
		}},
		{Name: "terminal-input", About: "type into standard input's terminal (TIOCSTI)", Try: func(scene) error {
			return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x')
		}},
		{Name: "new-privileges", About: "gain privileges by running a setuid program (no_new_privs is not set)", Try: func(scene) error {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err != nil || set == 0 {
				return err
			}
			return stage.Held("running a program gives no privileges")
		}},
		{Name: "capabilities", About: "have any capability", Try: tryCapabilities},
	}
}

func tryCapabilities(scene) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	modes := uint32(1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER) // of root
	if os.Getuid() != 0 {
		modes = 0
	}
	if (data[0].Effective|data[0].Permitted)&^modes|data[1].Effective|data[1].Permitted != 0 {
		return nil
	}
	return stage.Held(fmt.Sprintf("user %d has no capabilities but root's over the modes of files", os.Getuid()))
}

// productNetwork returns attempts to reach servers outside, and what processes share by
// number.
func productNetwork() []attempt {
	serve := func(network string, addr func(scene) string) func(*stage.Stage, scene) (string, error) {
		return func(st *stage.Stage, s scene) (string, error) { return st.Serve(s.Name, network, addr(s)) }
	}
	port := func(scene) string { return "127.0.0.1:0" }
	return []attempt{
		{Name: "tcp", About: "TCP to a server at a loopback address", Prepare: serve("tcp", port), Try: stage.Stream(unix.IPPROTO_TCP)},
		{Name: "door", About: "TCP to a door of the policy, which must be open", Open: true, Try: stage.Stream(unix.IPPROTO_TCP)},
		{
			Name: "unix-path", About: "connect to a Unix socket by its path",
			Prepare: serve("unix", func(s scene) string { return s.Outside("socket") }), Try: stage.Unix(unix.SOCK_STREAM),
		},
		{
			Name: "unix-abstract", About: "connect to an abstract Unix socket",
			Prepare: serve("unix", func(s scene) string { return "@" + filepath.Base(s.Dir) + s.Name }), Try: stage.Unix(unix.SOCK_STREAM),
		},
		// To have the socket is enough; it connects to nothing.
		{Name: "vsock", About: "have a socket to the host of a virtual machine", Try: func(scene) error { return stage.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
		{
			Name: "sysv-memory", About: "attach to SysV shared memory",
			Prepare: func(st *stage.Stage, _ scene) (string, error) {
				id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), unix.IPC_CREAT|unix.IPC_EXCL|0o600)
				if err != nil {
					return "", stage.Unknown("no shared memory: " + err.Error())
				}
				st.AtEnd(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
				return strconv.Itoa(id), nil
			},
			Try: func(s scene) error {
				id, err := strconv.Atoi(s.Given)
				if err != nil {
					return err
				}
				memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
				if err != nil {
					return err
				}
				return unix.SysvShmDetach(memory)
			},
		},
	}
}
