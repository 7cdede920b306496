package prove

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func stat(path string) error {
	var info unix.Stat_t
	return unix.Stat(path, &info)
}

// open opens a file and closes it.
func open(path string, flags int) error { return openAt(unix.AT_FDCWD, path, flags) }

// openAt is open relative to a directory.
func openAt(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// put writes a few bytes to a file of the scene.
func put(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("crossed\n"))
	return err
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

// fileDescriptor closes a descriptor and returns the error of opening it.
func fileDescriptor(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// rawDescriptor makes a system call that returns a descriptor, and closes it.
func rawDescriptor(number, a, b, c uintptr) error {
	fd, _, errno := unix.Syscall(number, a, b, c)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// number returns an error number as an error; nil if it is 0.
func number(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// descriptor returns the path of an open file.
func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// onThread calls do on a thread of its own, which ends afterwards and shares
// neither root nor working directory with other threads.
func onThread(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			result <- errUnknown("cannot separate a thread: " + err.Error())
			return
		}
		result <- do()
	}()
	return <-result
}

// apart calls do in a new mount namespace if one can be made, so that its mounts
// do not remain on a machine without walls.
func apart(do func() error) error {
	if unix.Unshare(unix.CLONE_NEWNS) == nil {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
	}
	return do()
}

// socket makes a socket and closes it.
func socket(domain, kind, protocol int) error {
	return fileDescriptor(unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol))
}

// inet returns the family of an address, and the address for system calls.
func inet(addr string) (int, unix.Sockaddr, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0, nil, errUnknown(err.Error())
	}
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, nil
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}, nil
}

// connectTime is how long a connection may take, in seconds.
const connectTime = 2

// call returns a new socket that is connected.
func call(domain, kind, protocol int, to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: connectTime})
	if err := unix.Connect(fd, to); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// sendByte sends a byte, which shows a server that it was reached, and closes the
// socket. It returns err if that is not nil.
func sendByte(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Send(fd, []byte("x"), unix.MSG_NOSIGNAL)
}

// longestPath is the maximum length of a socket's path.
const longestPath = 107

// connectPath connects to a socket by its path, and sends a byte.
func connectPath(path string, kind int) error {
	if len(path) > longestPath {
		return errUnknown("the path is too long for a socket")
	}
	return sendByte(call(unix.AF_UNIX, kind, 0, &unix.SockaddrUnix{Name: path}))
}

// bindAt makes a socket at a path.
func bindAt(path string) error {
	if len(path) > longestPath {
		return errUnknown("the path is too long for a socket")
	}
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
		return errHeld(exit.String())
	}
	return err
}
