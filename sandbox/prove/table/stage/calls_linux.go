package stage

import (
	"net/netip"
	"runtime"

	"golang.org/x/sys/unix"
)

// Open opens a file and closes it.
func Open(path string, flags int) error { return OpenAt(unix.AT_FDCWD, path, flags) }

// OpenAt is Open relative to a directory.
func OpenAt(dir int, path string, flags int) error {
	return Close(unix.Openat(dir, path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0))
}

// Put writes a few bytes to a file of the scene.
func Put(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("crossed\n"))
	return err
}

// Close closes a descriptor and returns the error of opening it.
func Close(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// Call makes a system call that returns a descriptor, and closes it.
func Call(number, a, b, c uintptr) error {
	fd, _, errno := unix.Syscall(number, a, b, c)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// Socket makes a socket and closes it.
func Socket(domain, kind, protocol int) error {
	return Close(unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol))
}

// Threaded returns a Try that runs on a thread of its own, which ends afterwards and
// shares neither root nor working directory with other threads.
func Threaded(do func(Scene) error) func(Scene) error {
	return func(s Scene) error {
		result := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				result <- Unknown("cannot separate a thread: " + err.Error())
				return
			}
			result <- do(s)
		}()
		return <-result
	}
}

// Apart returns a Threaded one in a new mount namespace if one can be made, so that its
// mounts do not remain on a machine without walls.
func Apart(do func(Scene) error) func(Scene) error {
	return Threaded(func(s Scene) error {
		if unix.Unshare(unix.CLONE_NEWNS) == nil {
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
		}
		return do(s)
	})
}

// Inet returns the family of an address, and the address for system calls.
func Inet(addr string) (int, unix.Sockaddr, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0, nil, Unknown(err.Error())
	}
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, nil
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}, nil
}

// patience is how long a connection or an answer may take.
var patience = &unix.Timeval{Sec: 2}

// Dial returns a new socket that is connected.
func Dial(domain, kind, protocol int, to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, patience)
	if err := unix.Connect(fd, to); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Send sends a byte, which shows a server that it was reached, and closes the
// socket. It returns err if that is not nil.
func Send(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Send(fd, []byte("x"), unix.MSG_NOSIGNAL)
}

// Stream returns a Try that connects to the address that it was given.
func Stream(protocol int) func(Scene) error {
	return func(s Scene) error {
		domain, to, err := Inet(s.Given)
		if err != nil {
			return err
		}
		return Send(Dial(domain, unix.SOCK_STREAM, protocol, to))
	}
}

// UDP sends a byte to the address that it was given, and waits for an answer, because
// only that shows that a server received it.
func UDP(s Scene) error {
	domain, to, err := Inet(s.Given)
	if err != nil {
		return err
	}
	fd, err := Dial(domain, unix.SOCK_DGRAM, 0, to)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Send(fd, []byte("x"), unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, patience)
	_, _, err = unix.Recvfrom(fd, make([]byte, 16), 0)
	return err
}

// Unix returns a Try that connects to the Unix socket whose address it was given.
func Unix(kind int) func(Scene) error {
	return func(s Scene) error {
		return Send(Dial(unix.AF_UNIX, kind, 0, &unix.SockaddrUnix{Name: s.Given}))
	}
}
