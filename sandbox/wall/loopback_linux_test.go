package wall

import (
	"context"
	"errors"
	"os"
	"sync"
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
	l := &walled{over: make(chan struct{})}
	var theirs *os.File
	l.control, theirs = must2(newControl())
	var answered sync.WaitGroup
	defer func() {
		l.control.hangUp()
		answered.Wait()
		theirs.Close()
	}()
	answered.Go(func() { // as a supervisor
		for c := (control{int(theirs.Fd())}); ; {
			m, fds, err := c.receive()
			if err != nil {
				return
			}
			go connect(control{fds[0]}, m.Dial)
		}
	})
	cancelled := 0
	for range 10 { // some fit into the queue
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		conn, err := l.dial(ctx, port)
		if err == nil {
			defer conn.Close()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			cancelled++
		}
	}
	if cancelled == 0 {
		t.Error("no connection waited")
	}
}
