package prove

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttempts returns attempts to reach processes outside, to exceed limits,
// and to outlive the command.
func processAttempts() []Attempt {
	return slices.Concat(procAttempts(), signalAttempts(), victimAttempts(), limitAttempts())
}

func procAttempts() []Attempt {
	file := func(name, file string, who func(Scene) process) Attempt {
		return Attempt{Name: name, Try: func(s Scene) error {
			path, err := who(s).proc(file)
			if err != nil {
				return err
			}
			return open(path, unix.O_RDONLY)
		}}
	}
	prover := func(s Scene) process { return s.Prover }
	root := Attempt{Name: "proc-prover-root", Set: setFiles, Short: true, Try: func(s Scene) error {
		path, err := s.Prover.proc("root")
		if err != nil {
			return err
		}
		return s.readSecret(path + s.outside("secret"))
	}}
	return []Attempt{
		root,
		{Name: "proc-first-root", Set: setFiles, Try: func(s Scene) error { return s.readSecret("/proc/1/root" + s.outside("secret")) }},
		{Name: "proc-parent-root", Set: setFiles, Try: func(s Scene) error {
			return s.readSecret("/proc/" + strconv.Itoa(os.Getppid()) + "/root" + s.outside("secret"))
		}},
		{Name: "proc-prover-cwd", Try: func(s Scene) error {
			path, err := s.Prover.proc("cwd")
			if err != nil {
				return err
			}
			return list(path)
		}},
		file("proc-prover-mem", "mem", prover),
		file("proc-prover-maps", "maps", prover),
		{Name: "proc-prover-descriptors", Try: func(s Scene) error {
			path, err := s.Prover.proc("fd/" + strconv.Itoa(s.FD))
			if err != nil {
				return err
			}
			return list(path)
		}},
		file("proc-prover-program", "exe", prover),
		file("proc-prover-environment", "environ", prover),
		file("proc-prover-command-line", "cmdline", prover),
		{Name: "proc-victim-environment", Try: tryVictimEnvironment},
		{Name: "proc-environments", Try: tryEnvironments},
		{Name: "environment", Try: func(s Scene) error {
			for _, pair := range os.Environ() {
				name, _, _ := strings.Cut(pair, "=")
				if !slices.Contains(s.Env, name) {
					return nil
				}
			}
			return errHeld("it contains only the command's own variables")
		}},
	}
}

// tryVictimEnvironment looks for the key in the victim's environment.
func tryVictimEnvironment(s Scene) error {
	path, err := s.Victim.proc("environ")
	if err != nil {
		return err
	}
	return s.keyIn(path)
}

// keyIn looks for the key in a file with an environment.
func (s Scene) keyIn(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for pair := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(pair, []byte(s.Key+"=")); ok {
			return s.secret(value)
		}
	}
	return errHeld("it does not contain the key")
}

// tryEnvironments looks for the key in the environments of all processes behind
// the walls. If the machine's processes are visible it reads only those of the
// prover and its descendants: others cannot have the key.
func tryEnvironments(s Scene) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var first error = errHeld("no process has the key")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !s.ownProcesses() && !s.descends(pid) {
			continue
		}
		err = s.keyIn("/proc/" + e.Name() + "/environ")
		var errno unix.Errno
		switch {
		case err == nil:
			return nil
		case errors.As(err, &errno) && pid == s.Victim.PID:
			first = err
		}
	}
	return first
}

// descends reports whether a process is the prover or one of its descendants.
func (s Scene) descends(pid int) bool {
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
func onVictim(name string, do func(s Scene, pid int) error) Attempt {
	return Attempt{Name: name, Try: func(s Scene) error {
		if err := s.Victim.identify(); err != nil {
			return err
		}
		return do(s, s.Victim.PID)
	}}
}

func signalAttempts() []Attempt {
	return []Attempt{
		{Name: "signal-prover", Short: true, Try: func(s Scene) error {
			if err := s.Prover.identify(); err != nil {
				return err
			}
			return unix.Kill(s.Prover.PID, 0) // checks the right and sends nothing
		}},
		onVictim("signal-process", func(_ Scene, pid int) error { return unix.Kill(pid, unix.SIGWINCH) }),
		onVictim("signal-by-descriptor", func(_ Scene, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
		}),
		onVictim("signal-by-queue", func(_ Scene, pid int) error {
			info := [128]byte{0: byte(unix.SIGWINCH), 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // as sigqueue does
			_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGWINCH), uintptr(unsafe.Pointer(&info)))
			return number(errno)
		}),
		{Name: "signal-all", Alone: true, Outside: true, Try: trySignalAll},
		{Name: "signal-group", Try: func(s Scene) error {
			if group := unix.Getpgrp(); group == 0 || group == s.Group && !s.ownProcesses() {
				return nil
			}
			return errHeld("it has a group of its own")
		}},
		{Name: "stop-parent", Alone: true, Try: tryStopParent},
	}
}

// victimAttempts returns attempts that do worse to the victim than signal it.
func victimAttempts() []Attempt {
	return []Attempt{
		onVictim("trace", trySeize),
		onVictim("read-memory", func(s Scene, pid int) error {
			if s.Address == 0 {
				return errUnknown("no address")
			}
			var found [8]byte
			local := []unix.Iovec{{Base: &found[0]}}
			local[0].SetLen(len(found))
			_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: s.Address, Len: len(found)}}, 0)
			return err
		}),
		onVictim("take-descriptor", func(_ Scene, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return fileDescriptor(unix.PidfdGetfd(fd, 0, 0))
		}),
		onVictim("set-priority", func(_ Scene, pid int) error {
			// The call returns 20 minus the priority. The same one is set again.
			now, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
			if err != nil {
				return err
			}
			return unix.Setpriority(unix.PRIO_PROCESS, pid, 20-now)
		}),
		onVictim("set-limits", func(_ Scene, pid int) error {
			var now unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now); err != nil {
				return err
			}
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &now, nil)
		}),
		onVictim("pin-processor", func(_ Scene, pid int) error {
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
func trySignalAll(s Scene) error {
	if !s.ownProcesses() {
		return errNotTried
	}
	return unix.Kill(-1, unix.SIGKILL)
}

// tryStopParent stops the keeper of the walls, and lets it continue.
func tryStopParent(Scene) error {
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
	return errHeld("it continues")
}

// trySeize traces a process without stopping it. The thread ends at once, and with
// it the tracing.
func trySeize(_ Scene, pid int) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- unix.PtraceSeize(pid)
	}()
	return <-result
}

func limitAttempts() []Attempt {
	return []Attempt{
		{Name: "fork-bomb", Alone: true, Try: tryForks},
		{Name: "memory-hog", Alone: true, Try: tryMemory},
		{Name: "daemon", Set: setFiles, Alone: true, Outside: true, Try: tryDaemon},
		{Name: "raise-limits", Try: func(Scene) error {
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

// linger is how long the attempts wait for the limits to be enforced.
const linger = 1500 * time.Millisecond

// tryForks starts more processes than are allowed. They only wait. It returns nil
// if this process is still alive with them.
func tryForks(s Scene) error {
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

// tryMemory uses more memory than is allowed.
func tryMemory(s Scene) error {
	const piece = 32 << 20
	for taken := int64(0); taken < s.Memory+s.Memory/2; taken += piece {
		memory, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < piece; i += os.Getpagesize() {
			memory[i] = 1
		}
	}
	time.Sleep(linger)
	return nil
}

// tryDaemon leaves a process behind with another session and parent, no
// environment, no descriptors, and signals ignored. The prover recognizes it by
// the lock that it holds.
func tryDaemon(s Scene) error {
	lock := s.work("lock")
	leave := &exec.Cmd{Path: s.Program, Args: []string{helperName, "leave", s.Program, lock}, Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := leave.Run(); err != nil {
		return err
	}
	for range 200 { // until it has started
		if text, err := os.ReadFile(lock); err == nil && len(text) > 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errUnknown("it did not start")
}
