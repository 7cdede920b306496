package prove

import (
	"golang.org/x/sys/unix"
)

// networkAttempts returns attempts to reach servers outside.
func networkAttempts() []Attempt {
	tcp := Attempt{Name: "tcp", Short: true, Try: tryStream(unix.IPPROTO_TCP)}
	path := Attempt{Name: "unix-path", Set: setFiles, Short: true, Try: func(s Scene) error { return tryPath(s, unix.SOCK_STREAM) }}
	abstract := Attempt{Name: "unix-abstract", Short: true, Try: func(s Scene) error { return tryUnix(s, unix.SOCK_STREAM) }}
	return []Attempt{
		tcp,
		{Name: "tcp-address", Try: tryStream(unix.IPPROTO_TCP)},
		{Name: "tcp-ipv6", Try: tryStream(unix.IPPROTO_TCP)},
		{Name: "tcp-other-port", Try: tryStream(unix.IPPROTO_TCP)},
		{Name: "tcp-fast-open", Try: tryFastOpen},
		{Name: "mptcp", Try: tryStream(unix.IPPROTO_MPTCP)},
		{Name: "udp", Try: tryDatagram},
		{Name: "udp-resolver", Try: tryResolver},
		{Name: "door", Try: tryStream(unix.IPPROTO_TCP)},
		path,
		{Name: "unix-path-datagram", Set: setFiles, Try: func(s Scene) error { return tryPath(s, unix.SOCK_DGRAM) }},
		{Name: "unix-pair-datagram", Set: setFiles, Try: tryPair},
		abstract,
		{Name: "unix-abstract-datagram", Try: func(s Scene) error { return tryUnix(s, unix.SOCK_DGRAM) }},
		// For these, having a socket is enough; they connect to nothing.
		{Name: "vsock", Try: func(Scene) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
		{Name: "raw", Try: func(Scene) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		{Name: "packet", Try: func(Scene) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
		{Name: "netlink-audit", Try: func(Scene) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) }},
		{Name: "crypto-socket", Try: func(Scene) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
	}
}

func tryStream(protocol int) func(Scene) error {
	return func(s Scene) error {
		addr, err := s.addr()
		if err != nil {
			return err
		}
		domain, to, err := inet(addr)
		if err != nil {
			return err
		}
		return sendByte(call(domain, unix.SOCK_STREAM, protocol, to))
	}
}

// tryFastOpen connects by sending, without the connect call.
func tryFastOpen(s Scene) error {
	addr, err := s.addr()
	if err != nil {
		return err
	}
	domain, to, err := inet(addr)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, to)
}

func tryDatagram(s Scene) error {
	addr, err := s.addr()
	if err != nil {
		return err
	}
	domain, to, err := inet(addr)
	if err != nil {
		return err
	}
	fd, err := call(domain, unix.SOCK_DGRAM, 0, to)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Send(fd, []byte("x"), unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	// Only an answer shows that a server received it.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: connectTime})
	_, _, err = unix.Recvfrom(fd, make([]byte, 16), 0)
	return err
}

// tryResolver connects a socket to the machine's name server. It sends nothing.
func tryResolver(s Scene) error {
	if s.Resolver == "" {
		return errUnknown("no name server")
	}
	domain, to, err := inet(s.Resolver)
	if err != nil {
		return err
	}
	return fileDescriptor(call(domain, unix.SOCK_DGRAM, 0, to))
}

func tryPath(s Scene, kind int) error { return connectPath(s.outside("socket"), kind) }

// tryPair sends to a path through one of a pair of sockets.
func tryPair(s Scene) error {
	if len(s.outside("socket")) > longestPath {
		return errUnknown("the path is too long for a socket")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: s.outside("socket")})
}

func tryUnix(s Scene, kind int) error {
	addr, err := s.addr()
	if err != nil {
		return err
	}
	return sendByte(call(unix.AF_UNIX, kind, 0, &unix.SockaddrUnix{Name: addr}))
}
