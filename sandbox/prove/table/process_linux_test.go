package table

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox/prove/table/stage"
)

// processAttempts returns attempts to reach processes outside, to exceed limits,
// and to outlive the command.
func processAttempts() []attempt {
	return slices.Concat(procAttempts(), signalAttempts(), victimAttempts(), limitAttempts())
}

// ofProver opens a file of the prover in /proc.
func ofProver(name, file string) attempt {
	return attempt{Name: name, Try: func(s scene) error {
		path, err := s.Prover.Proc(file)
		if err != nil {
			return err
		}
		return stage.Open(path, unix.O_RDONLY)
	}}
}

func procAttempts() []attempt {
	return []attempt{
		{Name: "proc-first-root", Try: func(s scene) error { return s.ReadSecret("/proc/1/root" + s.Outside("secret")) }},
		{Name: "proc-parent-root", Try: func(s scene) error {
			return s.ReadSecret("/proc/" + strconv.Itoa(os.Getppid()) + "/root" + s.Outside("secret"))
		}},
		{Name: "proc-prover-cwd", Try: func(s scene) error {
			path, err := s.Prover.Proc("cwd")
			if err != nil {
				return err
			}
			return list(path)
		}},
		ofProver("proc-prover-maps", "maps"),
		{
			Name: "proc-prover-descriptors",
			Prepare: func(st *stage.Stage, s scene) (string, error) {
				dir, err := os.Open(s.Outside())
				if err != nil {
					return "", err
				}
				st.AtEnd(func() { dir.Close() })
				return strconv.Itoa(int(dir.Fd())), nil
			},
			Try: func(s scene) error {
				path, err := s.Prover.Proc("fd/" + s.Given)
				if err != nil {
					return err
				}
				return list(path)
			},
		},
		ofProver("proc-prover-program", "exe"),
		ofProver("proc-prover-environment", "environ"),
		ofProver("proc-prover-command-line", "cmdline"),
		{Name: "proc-victim-environment", Prepare: startVictim, Child: beVictim, Try: func(s scene) error {
			path, err := known(s).Victim.Proc("environ")
			if err != nil {
				return err
			}
			return keyIn(s, path)
		}},
		{Name: "proc-environments", Prepare: startVictim, Child: beVictim, Try: tryEnvironments},
	}
}

// keyIn looks for the key in a file with an environment.
func keyIn(s scene, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for pair := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(pair, []byte(keyName+"=")); ok {
			return s.Secret(value)
		}
	}
	return stage.Held("it does not contain the key")
}

// tryEnvironments looks for the key in the environments of all processes behind
// the walls. If the machine's processes are visible it reads only those of the
// prover and its descendants: others cannot have the key.
func tryEnvironments(s scene) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var first error = stage.Held("no process has the key")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !ownProcesses(s) && !descends(s, pid) {
			continue
		}
		err = keyIn(s, "/proc/"+e.Name()+"/environ")
		var errno unix.Errno
		switch {
		case err == nil:
			return nil
		case errors.As(err, &errno) && pid == known(s).Victim.PID:
			first = err
		}
	}
	return first
}

// descends reports whether a process is the prover or one of its descendants.
func descends(s scene, pid int) bool {
	for range 64 {
		if pid == s.Prover.PID || pid <= 1 {
			return pid == s.Prover.PID && pid != 0
		}
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 {
			return false
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return false
}

// onVictim returns an attempt on the victim.
func onVictim(name string, do func(s scene, pid int) error) attempt {
	return attempt{Name: name, Prepare: startVictim, Child: beVictim, Try: func(s scene) error {
		if err := known(s).Victim.Check(); err != nil {
			return err
		}
		return do(s, known(s).Victim.PID)
	}}
}

func signalAttempts() []attempt {
	return []attempt{
		onVictim("signal-process", func(_ scene, pid int) error { return unix.Kill(pid, unix.SIGWINCH) }),
		onVictim("signal-by-descriptor", func(_ scene, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
		}),
		onVictim("signal-by-queue", func(_ scene, pid int) error {
			info := [128]byte{0: byte(unix.SIGWINCH), 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // as sigqueue does
			_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGWINCH), uintptr(unsafe.Pointer(&info)))
			if errno != 0 {
				return errno
			}
			return nil
		}),
		{Name: "signal-all", Alone: true, Outside: true, Prepare: startVictim, Child: beVictim, Try: trySignalAll},
		{Name: "signal-group", Prepare: startVictim, Child: beVictim, Try: func(s scene) error {
			if group := unix.Getpgrp(); group == 0 || group == known(s).Group && !ownProcesses(s) {
				return nil
			}
			return stage.Held("it has a group of its own")
		}},
		{Name: "stop-parent", Alone: true, Try: tryStopParent},
		{Name: "signal-parent-thread", Alone: true, Try: trySignalThreads},
	}
}

// victimAttempts returns attempts that do worse to the victim than signal it.
func victimAttempts() []attempt {
	return []attempt{
		onVictim("trace", trySeize),
		onVictim("read-memory", func(s scene, pid int) error {
			if known(s).Address == 0 {
				return stage.Unknown("no address")
			}
			var found [8]byte
			local := []unix.Iovec{{Base: &found[0]}}
			local[0].SetLen(len(found))
			_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: known(s).Address, Len: len(found)}}, 0)
			return err
		}),
		onVictim("take-descriptor", func(_ scene, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return stage.Close(unix.PidfdGetfd(fd, 0, 0))
		}),
		onVictim("set-priority", func(_ scene, pid int) error {
			// The call returns 20 minus the priority. The same one is set again.
			now, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
			if err != nil {
				return err
			}
			return unix.Setpriority(unix.PRIO_PROCESS, pid, 20-now)
		}),
		onVictim("set-limits", func(_ scene, pid int) error {
			var now unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now); err != nil {
				return err
			}
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &now, nil)
		}),
		onVictim("pin-processor", func(_ scene, pid int) error {
			var now unix.CPUSet
			if err := unix.SchedGetaffinity(pid, &now); err != nil {
				return err
			}
			return unix.SchedSetaffinity(pid, &now)
		}),
	}
}

// trySignalAll kills every process that it can. It does so only in a process
// namespace of its own: otherwise it would end all processes of this user.
func trySignalAll(s scene) error {
	if !ownProcesses(s) {
		return stage.ErrNotTried
	}
	return unix.Kill(-1, unix.SIGKILL)
}

// tryStopParent stops the keeper of the walls, and lets it continue.
func tryStopParent(scene) error {
	parent := os.Getppid()
	if parent == 0 {
		return unix.ESRCH
	}
	if err := unix.Kill(parent, unix.SIGSTOP); err != nil {
		return err
	}
	defer func() { _ = unix.Kill(parent, unix.SIGCONT) }()
	for range 20 { // a busy machine takes its time to stop all threads
		time.Sleep(10 * time.Millisecond)
		text, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/stat")
		if err != nil || bytes.Contains(text, []byte(") T ")) {
			return nil
		}
	}
	return stage.Held("it continues")
}

// trySignalThreads signals each thread of the keeper of the walls in each way; the signal is none, or
// one that is ignored. The kernel ends the first process of a namespace for no signal from inside.
func trySignalThreads(scene) error {
	parent := os.Getppid()
	if parent <= 1 {
		return stage.Held("it is the first process of its namespace")
	}
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(parent) + "/task")
	if err != nil {
		return err
	}
	err = unix.ESRCH
	for _, thread := range threads {
		id, bad := strconv.Atoi(thread.Name())
		if bad != nil {
			return stage.Unknown(bad.Error())
		}
		info := [128]byte{0: byte(unix.SIGWINCH), 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // as sigqueue does
		for _, call := range [][4]uintptr{
			{unix.SYS_KILL, uintptr(id), 0}, {unix.SYS_TKILL, uintptr(id), 0}, {unix.SYS_TGKILL, uintptr(parent), uintptr(id), 0},
			{unix.SYS_RT_SIGQUEUEINFO, uintptr(id), uintptr(unix.SIGWINCH), uintptr(unsafe.Pointer(&info))},
		} {
			if _, _, errno := unix.Syscall(call[0], call[1], call[2], call[3]); errno == 0 {
				return nil
			} else {
				err = errno
			}
		}
		if fd, bad := unix.Open("/proc/"+thread.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); bad == nil {
			err = unix.PidfdSendSignal(fd, 0, nil, 0)
			unix.Close(fd)
			if err == nil {
				return nil
			}
		}
	}
	return err
}

// trySeize traces a process without stopping it. The thread ends at once, and with
// it the tracing.
func trySeize(_ scene, pid int) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- unix.PtraceSeize(pid)
	}()
	return <-result
}

func limitAttempts() []attempt {
	return []attempt{
		{Name: "raise-limits", Try: func(scene) error {
			var now unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
				return err
			}
			if now.Max == unix.RLIM_INFINITY {
				return nil
			}
			return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1})
		}},
	}
}
