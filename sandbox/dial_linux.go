package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A command's network that is its own is reached by sockets of its own: the
// keeper, which is in there, makes them, and this process connects them. So it
// is here that is said where they lead, and nothing in there can say otherwise.

// families are the loopback addresses, in the order in which they are tried.
var families = [...]int{unix.AF_INET, unix.AF_INET6}

// give hands sockets of the command's network to the caller.
func (k *keeper) give(request int) {
	fds, err := newSockets()
	reply := &given{To: request}
	if err != nil {
		reply.Fail = failureOf(err)
	}
	_ = k.send(message{Given: reply}, fds...) // without a caller it ends anyway
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// newSockets makes a socket for each family that there is. The error says that
// there is none.
func newSockets() (fds []int, err error) {
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

// requests are those for sockets that the keeper has not answered yet. The zero
// requests are none.
type requests struct {
	mu      sync.Mutex
	last    int
	waiting map[int]chan<- answer
	over    bool // the control is closed, or about to be
}

// answer is what became of a request.
type answer struct {
	sockets []*os.File
	err     error
}

// ask asks the keeper for sockets. The request is to be dropped in the end.
func (r *requests) ask(c control) (number int, answers <-chan answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return 0, nil, errEnded
	}
	number = r.last + 1
	if err := c.sendNow(message{Give: number}); err != nil {
		return 0, nil, fmt.Errorf("ask its walls for a socket: %w", err)
	}
	if r.waiting == nil {
		r.waiting = map[int]chan<- answer{}
	}
	given := make(chan answer, 1)
	r.last, r.waiting[number] = number, given
	return number, given, nil
}

// answer hands on what came for a request; nobody may wait for it any more.
func (r *requests) answer(g given, fds []int) {
	var a answer
	for _, fd := range fds {
		a.sockets = append(a.sockets, os.NewFile(uintptr(fd), "socket"))
	}
	if g.Fail != nil {
		a.err = g.Fail.err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, ok := r.waiting[g.To]
	if !ok {
		closeAll(a.sockets)
		return
	}
	delete(r.waiting, g.To)
	waiting <- a // there is room for it
}

// drop gives up a request, and what came for it and was not taken.
func (r *requests) drop(number int, answers <-chan answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, number)
	select {
	case a := <-answers:
		closeAll(a.sockets)
	default:
	}
}

// end lets no more requests be made, as the control is to be closed.
func (r *requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// sockets are new sockets of the command's network.
func (l *walled) sockets(ctx context.Context) ([]*os.File, error) {
	number, answers, err := l.requests.ask(l.control)
	if err != nil {
		return nil, err
	}
	defer l.requests.drop(number, answers)
	select {
	case a := <-answers:
		return a.sockets, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial connects to a port of the command's own network.
func (l *walled) dial(ctx context.Context, port int) (net.Conn, error) {
	sockets, err := l.sockets(ctx)
	if err != nil {
		return nil, err
	}
	defer closeAll(sockets)
	return inTurn(ctx, sockets, func(socket *os.File) (net.Conn, error) { return connectLoopback(ctx, socket, port) })
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

// connecting is a connection that is being made.
type connecting struct {
	port int
	to   unix.Sockaddr // nil before the first try
	addr net.Addr      // the same, for a person
	err  error
}

// try begins to connect, or asks what has become of it. It reports whether that
// is known, with an error or without.
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

// loopbackOf is the loopback address of a socket's family.
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
	return nil, nil, fmt.Errorf("a socket of the family %d: %w", family, unix.EAFNOSUPPORT)
}
