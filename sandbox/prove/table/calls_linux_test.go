package table

import (
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox/prove/table/stage"
)

func stat(path string) error {
	var info unix.Stat_t
	return unix.Stat(path, &info)
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

// descriptor returns the path of an open file.
func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// bindAt makes a socket at a path.
func bindAt(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}

// openQueue opens a POSIX message queue, and makes it if the flags say so.
func openQueue(name string, flags int) error {
	at, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(at)), uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func removeQueue(name string) {
	if at, err := unix.BytePtrFromString(name); err == nil {
		_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(at)), 0, 0)
	}
}

// heldError returns the error of an attempt: that of a program without its type, which
// has no error number.
func heldError(err error) error {
	if exit, ok := err.(*exec.ExitError); ok {
		return stage.Held(exit.String())
	}
	return err
}
