package wall

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A server that does not accept connections does not delay a dial whose context ends.
func TestConnectIsCancelled(t *testing.T) {
	listener := must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	defer unix.Close(listener)
	must(0, unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(0, unix.Listen(listener, 0))
	port := must(unix.Getsockname(listener)).(*unix.SockaddrInet4).Port
	cancelled := 0
	for range 10 { // some fit into the queue
		fds := must(loopbackSockets())
		socket, rest := os.NewFile(uintptr(fds[0]), "socket"), fds[1:]
		for _, fd := range rest {
			unix.Close(fd)
		}
		defer socket.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		conn, err := connectLoopback(ctx, socket, port)
		if err == nil {
			defer conn.Close()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			cancelled++
		}
	}
	if cancelled == 0 {
		t.Error("no connection waited")
	}
}
