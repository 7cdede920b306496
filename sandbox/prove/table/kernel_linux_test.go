package table

import (
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox/prove/table/stage"
)

// kernelAttempts returns attempts that use the kernel's own means to leave a wall
// or to attack the kernel.
func kernelAttempts() []attempt {
	return slices.Concat(mountAttempts(), namespaceAttempts(), callAttempts(), rightAttempts())
}

// threaded returns an attempt that runs on a thread of its own.
func threaded(name string, do func(scene) error) attempt {
	return attempt{Name: name, Try: stage.Threaded(do)}
}

// apart returns one that runs in a mount namespace of its own, if that can be had.
func apart(name string, do func(scene) error) attempt {
	return attempt{Name: name, Try: stage.Apart(do)}
}

func mountAttempts() []attempt {
	return []attempt{
		apart("mount-writable", func(s scene) error { return unix.Mount("", s.Lib(), "", unix.MS_REMOUNT|unix.MS_BIND, "") }),
		apart("mount-tmpfs", func(s scene) error { return unix.Mount("none", s.Work(), "tmpfs", 0, "") }),
		{Name: "mount-new-api", Try: func(s scene) error {
			return stage.Close(unix.OpenTree(unix.AT_FDCWD, s.Work(), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
		}},
		{Name: "mount-fsopen", Try: func(scene) error { return stage.Close(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)) }},
		apart("mount-attributes", func(s scene) error {
			return unix.MountSetattr(unix.AT_FDCWD, s.Lib(), 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}),
		apart("pivot-root", func(s scene) error { return unix.PivotRoot(s.Work(), s.Work()) }),
		threaded("chroot", tryChroot),
	}
}

func namespaceAttempts() []attempt {
	return []attempt{
		{
			Name: "clone-user", Child: func([]string) error { return nil },
			Try: func(s scene) error { return s.RunAgain(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}) },
		},
		threaded("unshare-mounts", func(scene) error { return unix.Unshare(unix.CLONE_NEWNS) }),
		threaded("unshare-network", func(scene) error { return unix.Unshare(unix.CLONE_NEWNET) }),
		threaded("enter-network", func(s scene) error { return enter(s, "net", unix.CLONE_NEWNET) }),
		threaded("enter-mounts", func(s scene) error { return enter(s, "mnt", unix.CLONE_NEWNS) }),
	}
}

// callAttempts returns attempts with system calls that programs rarely need, and
// in which faults of the kernel were found.
func callAttempts() []attempt {
	return []attempt{
		{Name: "bpf", Try: func(scene) error {
			array := [18]uint32{2, 4, 4, 1} // a map: kind, sizes of key and value, entries
			return stage.Call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&array)), unsafe.Sizeof(array))
		}},
		{Name: "perf-event", Try: func(scene) error {
			clock := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
			return stage.Close(unix.PerfEventOpen(&clock, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC))
		}},
		{Name: "userfaultfd", Try: func(scene) error {
			return stage.Call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
		}},
		{Name: "add-key", Try: func(scene) error {
			_, err := unix.AddKey("user", "hone", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
	}
}

// rightAttempts returns attempts to use rights that a command must not have.
func rightAttempts() []attempt {
	return []attempt{
		{Name: "terminal", Try: func(scene) error { return stage.Open("/dev/tty", unix.O_RDWR) }},
		{Name: "set-clock", Try: func(scene) error {
			// Nothing is set: the kernel checks the right first.
			var nothing unix.Timex
			nothing.Modes = 1 << 14 // ADJ_TICK, with an invalid tick
			_, err := unix.Adjtimex(&nothing)
			if err == unix.EINVAL {
				return nil
			}
			return err
		}},
		threaded("host-name", func(scene) error {
			// In a new namespace, so that without walls the machine's name stays. The
			// kernel checks the same right.
			if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
				return err
			}
			return unix.Sethostname([]byte("crossed"))
		}),
		{Name: "oom-score", Try: func(s scene) error { return s.RunAgain(nil) }, Child: lowerScore},
		{Name: "core-dump", Try: func(scene) error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		}},
	}
}

// tryChroot leaves a changed root in the old way: it changes the root to a
// directory below, and goes up from a directory outside it.
func tryChroot(s scene) error {
	top, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stage.Unknown(err.Error())
	}
	defer unix.Close(top)
	if err := unix.Chroot(s.Work()); err != nil {
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
	return stage.OpenAt(unix.AT_FDCWD, "."+s.Outside("secret"), unix.O_RDONLY)
}

// enter enters a namespace of the prover.
func enter(s scene, kind string, flag int) error {
	path, err := s.Prover.Proc("ns/" + kind)
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
func lowerScore([]string) error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1"), 0) }
