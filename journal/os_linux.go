package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalHolder sends a signal to the process that holds the lock of the workspace. It never
// signals another process, even if process ids are reused. The error is [ErrNoHolder] if no
// process that may be signalled holds the lock, and [errors.ErrUnsupported] on systems that
// do not show which process holds a lock.
func (h *Home) SignalHolder(sig os.Signal) error {
	lock, err := h.in.Root.Lstat(lockFile)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoHolder, err)
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("find the process that has the lock: %w", err)
	}
	for _, entry := range processes {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || !locks(pid, lock) {
			continue
		}
		p, err := os.FindProcess(pid) // from here on p means this process only
		if err == nil && locks(pid, lock) {
			return p.Signal(sig)
		}
	}
	return ErrNoHolder
}

func locks(pid int, file fs.FileInfo) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return false
	}
	for _, fd := range open {
		if info, err := os.Stat(filepath.Join(proc, "fd", fd.Name())); err != nil || !os.SameFile(info, file) {
			continue
		}
		state, err := os.ReadFile(filepath.Join(proc, "fdinfo", fd.Name()))
		if err == nil && strings.Contains(string(state), "FLOCK") && strings.Contains(string(state), "WRITE") {
			return true
		}
	}
	return false
}

// preallocate gives a file disk space. The error is [errors.ErrUnsupported] if its file
// system cannot, or says that it does and does not.
func preallocate(f *os.File, size int64) error {
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Blocks*512 < size {
		return errors.ErrUnsupported
	}
	return nil
}
