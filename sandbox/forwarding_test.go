package sandbox_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// through returns a connection to a door that leads to an address.
func through(t *testing.T, f *sandbox.Forwarding) *net.TCPConn {
	t.Helper()
	door := runtest.Listen(t, f.Door().Serve)
	c, err := net.Dial(door.Network(), door.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// TestForward sends more than any buffer holds, closes its side, and still receives
// the answer.
func TestForward(t *testing.T) {
	const size = 8 << 20
	server := runtest.Listen(t, func(c net.Conn) {
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		_, _ = c.Write(make([]byte, n+5))
	})
	f := sandbox.ForwardBy(server.String(), nil, nil)
	defer f.Close()
	c := through(t, f)
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || len(answer) != size+5 {
		t.Errorf("%d bytes, %v", len(answer), err)
	}
	if f.Door().Addr != server.String() {
		t.Errorf("the door is at %s", f.Door().Addr)
	}
}

// TestForwardWithoutServer checks that without a server the connection is closed.
func TestForwardWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	f := sandbox.ForwardBy(l.Addr().String(), nil, nil)
	defer f.Close()
	if b, _ := io.ReadAll(through(t, f)); len(b) != 0 {
		t.Errorf("read %q", b)
	}
}

// TestForwardClose closes a connection that both sides keep open.
func TestForwardClose(t *testing.T) {
	ended := make(chan error, 1)
	server := runtest.Listen(t, func(c net.Conn) {
		_, _ = c.Write([]byte("x"))
		_, err := c.Read(make([]byte, 1))
		ended <- err
	})
	f := sandbox.ForwardBy(server.String(), nil, nil)
	c := through(t, f)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
	if err := <-ended; err == nil {
		t.Error("the server's side is still open")
	}
	if b, _ := io.ReadAll(through(t, f)); len(b) != 0 {
		t.Errorf("a closed forwarding passes on %q", b)
	}
}

// TestForwardBroken checks that a server that breaks off also closes the side of the
// command, which still writes.
func TestForwardBroken(t *testing.T) {
	server := runtest.Listen(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	f := sandbox.ForwardBy(server.String(), nil, nil)
	defer f.Close()
	c := through(t, f)
	for {
		if _, err := c.Write(make([]byte, 64<<10)); err != nil {
			return
		}
	}
}

// TestForwardBy checks that dial decides the destination, and that reached is called
// for each request, before any answer, and not for a connection without a byte.
func TestForwardBy(t *testing.T) {
	server := runtest.Listen(t, func(c net.Conn) {
		defer c.Close()
		_, _ = io.Copy(c, c)
	})
	var reached, told atomic.Int64
	release := make(chan struct{})
	f := sandbox.ForwardBy("127.0.0.1:0", func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, server.Network(), server.String())
	}, func() {
		reached.Add(1)
		<-release
		told.Store(1)
	})
	defer f.Close()
	if f.Door().Addr != "127.0.0.1:0" {
		t.Errorf("the door is at %s", f.Door().Addr)
	}
	silent := through(t, f)
	must(0, silent.CloseWrite())
	if b := must(io.ReadAll(silent)); len(b) != 0 || reached.Load() != 0 {
		t.Errorf("a silent connection: read %q, reached %d times", b, reached.Load())
	}
	var all sync.WaitGroup
	for range 20 {
		c := through(t, f)
		all.Go(func() {
			must(c.Write([]byte("a")))
			b := make([]byte, 1)
			if _, err := io.ReadFull(c, b); err != nil || b[0] != 'a' || told.Load() != 1 {
				t.Errorf("%v, %q, reached before: %d", err, b, told.Load())
			}
		})
	}
	close(release)
	all.Wait()
	if n := reached.Load(); n != 20 {
		t.Errorf("reached was called %d times", n)
	}
	c := through(t, f)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "a body", "POST /x HTTP/1.1\r\n\r\n{}", "no request HTTP/1.1\r\n"} {
		must(io.WriteString(c, text))
		must(0, func() error { _, err := io.ReadFull(c, make([]byte, len(text))); return err }())
	}
	if n := reached.Load(); n != 22 {
		t.Errorf("reached was called %d times, want once for each request of a connection", n)
	}
}

// TestForwardByThatFails checks that a failed dial does not count as reached.
func TestForwardByThatFails(t *testing.T) {
	f := sandbox.ForwardBy("127.0.0.1:0", func(context.Context) (net.Conn, error) { return nil, errors.New("nobody") }, func() { t.Error("reached") })
	defer f.Close()
	c := through(t, f)
	_, _ = c.Write([]byte("a"))
	if b, _ := io.ReadAll(c); len(b) != 0 {
		t.Errorf("read %q", b)
	}
}

// TestForwardByHoldsTheAnswer checks that answers wait while reached runs.
func TestForwardByHoldsTheAnswer(t *testing.T) {
	server := runtest.Listen(t, func(c net.Conn) {
		defer c.Close()
		_, _ = c.Read(make([]byte, 1))
		_, _ = c.Write([]byte("answer"))
	})
	connected, told := make(chan net.Conn, 1), make(chan struct{})
	f := sandbox.ForwardBy(server.String(), nil, func() {
		defer close(told)
		if _, err := runtest.ReadSoon(<-connected); err == nil {
			t.Error("an answer came before reached returned")
		}
	})
	defer f.Close()
	c := through(t, f)
	connected <- c
	must(c.Write([]byte("x")))
	<-told
	if b, err := io.ReadAll(c); err != nil || string(b) != "answer" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestForwardByLetsTheServerSpeakFirst checks that a greeting is not an answer, so
// that reached is not called.
func TestForwardByLetsTheServerSpeakFirst(t *testing.T) {
	server := runtest.Listen(t, func(c net.Conn) {
		defer c.Close()
		_, _ = c.Write([]byte("hello"))
	})
	f := sandbox.ForwardBy(server.String(), nil, func() { t.Error("reached") })
	defer f.Close()
	if b, err := io.ReadAll(through(t, f)); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}
