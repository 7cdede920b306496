package prove

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttempts returns attempts that use the kernel's own means to leave a wall
// or to attack the kernel.
func kernelAttempts() []Attempt {
	return slices.Concat(mountAttempts(), namespaceAttempts(), callAttempts(), rightAttempts())
}

// threaded returns an attempt that runs on a thread of its own.
func threaded(name string, do func(Scene) error) Attempt {
	return Attempt{Name: name, Set: setFiles, Try: func(s Scene) error { return onThread(func() error { return do(s) }) }}
}

func mountAttempts() []Attempt {
	mount := threaded("mount-bind", func(s Scene) error {
		return apart(func() error { return unix.Mount(s.outside(), s.work(), "", unix.MS_BIND, "") })
	})
	mount.Short = true
	return []Attempt{
		mount,
		threaded("mount-writable", func(s Scene) error {
			return apart(func() error { return unix.Mount("", s.lib(), "", unix.MS_REMOUNT|unix.MS_BIND, "") })
		}),
		threaded("mount-tmpfs", func(s Scene) error {
			return apart(func() error { return unix.Mount("none", s.work(), "tmpfs", 0, "") })
		}),
		{Name: "mount-new-api", Set: setFiles, Try: func(s Scene) error {
			return fileDescriptor(unix.OpenTree(unix.AT_FDCWD, s.work(), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
		}},
		{Name: "mount-fsopen", Try: func(Scene) error { return fileDescriptor(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)) }},
		threaded("mount-attributes", func(s Scene) error {
			return apart(func() error {
				return unix.MountSetattr(unix.AT_FDCWD, s.lib(), 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
			})
		}),
		threaded("pivot-root", func(s Scene) error {
			return apart(func() error { return unix.PivotRoot(s.work(), s.work()) })
		}),
		threaded("chroot", tryChroot),
	}
}

func namespaceAttempts() []Attempt {
	return []Attempt{
		{Name: "unshare-user", Short: true, Try: func(s Scene) error { return s.child(&syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}) }},
		{Name: "clone-user", Try: func(s Scene) error { return s.child(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}) }},
		threaded("unshare-mounts", func(Scene) error { return unix.Unshare(unix.CLONE_NEWNS) }),
		threaded("unshare-network", func(Scene) error { return unix.Unshare(unix.CLONE_NEWNET) }),
		threaded("enter-network", func(s Scene) error { return s.enter("net", unix.CLONE_NEWNET) }),
		threaded("enter-mounts", func(s Scene) error { return s.enter("mnt", unix.CLONE_NEWNS) }),
	}
}

// callAttempts returns attempts with system calls that programs rarely need, and
// in which faults of the kernel were found.
func callAttempts() []Attempt {
	return []Attempt{
		{Name: "io-uring", Try: func(Scene) error {
			var parameters [120]byte
			return rawDescriptor(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
		}},
		{Name: "bpf", Try: func(Scene) error {
			array := [18]uint32{2, 4, 4, 1} // a map: kind, sizes of key and value, entries
			return rawDescriptor(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&array)), unsafe.Sizeof(array))
		}},
		{Name: "perf-event", Try: func(Scene) error {
			clock := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
			return fileDescriptor(unix.PerfEventOpen(&clock, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC))
		}},
		{Name: "userfaultfd", Try: func(Scene) error {
			return rawDescriptor(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
		}},
		{Name: "session-keyring", Try: func(Scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
			return err
		}},
		{Name: "add-key", Try: func(Scene) error {
			_, err := unix.AddKey("user", "hone", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
	}
}

// rightAttempts returns attempts to use rights that a command must not have.
func rightAttempts() []Attempt {
	return []Attempt{
		{Name: "terminal", Try: func(Scene) error { return open("/dev/tty", unix.O_RDWR) }},
		{Name: "terminal-input", Try: func(Scene) error {
			return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x')
		}},
		{Name: "set-clock", Try: func(Scene) error {
			// Nothing is set: the kernel checks the right first.
			var nothing unix.Timex
			nothing.Modes = 1 << 14 // ADJ_TICK, with an invalid tick
			_, err := unix.Adjtimex(&nothing)
			if err == unix.EINVAL {
				return nil
			}
			return err
		}},
		threaded("host-name", func(Scene) error {
			// In a new namespace, so that without walls the machine's name stays. The
			// kernel checks the same right.
			if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
				return err
			}
			return unix.Sethostname([]byte("crossed"))
		}),
		{Name: "oom-score", Try: func(s Scene) error { return s.child(nil, "oom") }},
		{Name: "new-privileges", Try: func(Scene) error {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err != nil || set == 0 {
				return err
			}
			return errHeld("running a program gives no privileges")
		}},
		{Name: "capabilities", Try: tryCapabilities},
		{Name: "core-dump", Try: func(Scene) error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		}},
	}
}

// child starts this program with attributes, and waits until it ends.
func (s Scene) child(attributes *syscall.SysProcAttr, args ...string) error {
	cmd := &exec.Cmd{Path: s.Program, Args: append([]string{helperName}, args...), SysProcAttr: attributes}
	if len(args) == 0 {
		cmd.Args = append(cmd.Args, "nothing")
	}
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok && exit.Exited() && exit.ExitCode() > 0 {
		return unix.Errno(exit.ExitCode()) // see status
	}
	return err
}

// tryChroot leaves a changed root in the old way: it changes the root to a
// directory below, and goes up from a directory outside it.
func tryChroot(s Scene) error {
	top, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errUnknown(err.Error())
	}
	defer unix.Close(top)
	if err := unix.Chroot(s.work()); err != nil {
		return err
	}
	if err := unix.Fchdir(top); err != nil {
		return err
	}
	for range 64 {
		if err := unix.Chdir(".."); err != nil {
			return err
		}
	}
	return openAt(unix.AT_FDCWD, "."+s.outside("secret"), unix.O_RDONLY)
}

// enter enters a namespace of the prover.
func (s Scene) enter(kind string, flag int) error {
	path, err := s.Prover.proc("ns/" + kind)
	if err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, flag)
}

// lowerScore makes this process the last that the kernel kills when memory is
// short.
func lowerScore() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1"), 0) }

func tryCapabilities(Scene) error {
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
	return errHeld(fmt.Sprintf("user %d has no capabilities but root's over the modes of files", os.Getuid()))
}
