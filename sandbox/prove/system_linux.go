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

// open opens a file, and leaves it alone.
func open(path string, flags int) error { return openAt(unix.AT_FDCWD, path, flags) }

func openAt(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// put writes a few bytes into a file of the scene.
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

func fileDescriptor(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// rawDescriptor makes a call that returns a descriptor.
func rawDescriptor(number, a, b, c uintptr) error {
	fd, _, errno := unix.Syscall(number, a, b, c)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func number(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// descriptor is the file that a descriptor leads to, as a path.
func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// onThread does something on a thread of its own, which ends with it and
// shares neither root nor working directory with the others.
func onThread(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			result <- errUnknown("no thread of its own: " + err.Error())
			return
		}
		result <- do()
	}()
	return <-result
}

// apart does something to the mounts: to those of a new namespace, where one
// can be had, so that nothing of it is left on a machine without walls.
func apart(do func() error) error {
	if unix.Unshare(unix.CLONE_NEWNS) == nil {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
	}
	return do()
}

func socket(domain, kind, protocol int) error {
	return fileDescriptor(unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol))
}

// inet is an address as the system takes it, and its family.
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

// patience is how long a connection may take, in seconds.
const patience = 2

// call makes a socket, and connects it.
func call(domain, kind, protocol int, to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: patience})
	if err := unix.Connect(fd, to); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// say sends a byte, by which somebody who listens knows that it was reached.
func say(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Send(fd, []byte("x"), unix.MSG_NOSIGNAL)
}

// longestPath is how long a socket's path may be.
const longestPath = 107

func connectPath(path string, kind int) error {
	if len(path) > longestPath {
		return errUnknown("the path is too long for a socket")
	}
	return say(call(unix.AF_UNIX, kind, 0, &unix.SockaddrUnix{Name: path}))
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

// ended is a program's failure, which has no number of the system's.
func ended(err error) error {
	if exit, ok := err.(*exec.ExitError); ok {
		return errHeld(exit.String())
	}
	return err
}
