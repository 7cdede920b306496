package wall

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// families are the loopback addresses, in the order in which they are tried.
var families = [...]int{unix.AF_INET, unix.AF_INET6}

// loopbackSockets makes one socket for each address family of this system. Its error
// means that there is none.
func loopbackSockets() (fds []int, err error) {
	for _, family := range families {
		fd, e := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
		if e != nil {
			err = e
			continue
		}
		fds = append(fds, fd)
	}
	if len(fds) > 0 {
		return fds, nil
	}
	return nil, os.NewSyscallError("socket", err)
}

// connectLoopback connects a socket to a port at its family's loopback address.
func connectLoopback(ctx context.Context, socket *os.File, port int) (net.Conn, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	c := connecting{port: port}
	err = raw.Write(c.try)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: c.addr, Err: err}
	}
	return net.FileConn(socket)
}

type connecting struct {
	port int
	to   unix.Sockaddr // nil before the first try
	addr net.Addr      // to, for errors
	err  error
}

// It reports whether there is a result; err is then set or nil.
func (c *connecting) try(fd uintptr) bool {
	if c.to == nil {
		if c.to, c.addr, c.err = loopbackOf(int(fd), c.port); c.err != nil {
			return true
		}
	}
	switch err := unix.Connect(int(fd), c.to); err {
	case unix.EINPROGRESS, unix.EALREADY:
		return false
	case nil, unix.EISCONN:
		c.err = nil
	default:
		c.err = os.NewSyscallError("connect", err)
	}
	return true
}

func loopbackOf(fd, port int) (unix.Sockaddr, net.Addr, error) {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		return nil, nil, os.NewSyscallError("getsockopt", err)
	case family == unix.AF_INET:
		to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
		return to, &net.TCPAddr{IP: to.Addr[:], Port: port}, nil
	case family == unix.AF_INET6:
		to := &unix.SockaddrInet6{Port: port, Addr: [16]byte(net.IPv6loopback)}
		return to, &net.TCPAddr{IP: net.IPv6loopback, Port: port}, nil
	}
	return nil, nil, fmt.Errorf("socket of family %d: %w", family, unix.EAFNOSUPPORT)
}

// raiseLoopback raises the loopback interface of this process's network namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
