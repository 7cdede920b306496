package wall

import (
	"context"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxDial is how long a server whose queue is full keeps a connection waiting.
const maxDial = 30 * time.Second

// connect connects to a port of this process's network, and sends the connection.
func connect(answer control, port int) {
	defer answer.close()
	ctx, cancel := context.WithTimeout(context.Background(), maxDial)
	defer cancel()
	conn, err := dialLoopback(ctx, port)
	var socket *os.File
	if err == nil {
		defer conn.Close()
		socket, err = conn.(*net.TCPConn).File()
	}
	if err != nil {
		_ = answer.send(message{Fail: failureOf(err)})
		return
	}
	defer socket.Close()
	_ = answer.send(message{}, int(socket.Fd())) // fails only if the caller no longer waits
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
