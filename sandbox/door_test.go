package sandbox

import (
	"io"
	"net"
	"testing"
)

// listen is a loopback server that answers connections until the test ends.
func listen(t *testing.T, answer func(net.Conn)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return l.Addr()
}

// through is a connection to a door that leads to an address.
func through(t *testing.T, f *Forwarding) *net.TCPConn {
	t.Helper()
	door := listen(t, f.Door().Serve)
	c, err := net.Dial(door.Network(), door.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// TestForward sends more than any buffer holds, ends its side, and has the
// answer all the same.
func TestForward(t *testing.T) {
	const size = 8 << 20
	server := listen(t, func(c net.Conn) {
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		_, _ = c.Write(make([]byte, n+5))
	})
	f := Forward(server.String())
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
	if from, to := f.Bytes(); from != size || to != size+5 {
		t.Errorf("counted %d and %d bytes", from, to)
	}
	if passed, failed := f.Connections(); passed != 1 || failed != 0 {
		t.Errorf("counted %d connections, %d failed", passed, failed)
	}
	if f.Door().Addr != server.String() {
		t.Errorf("the door is at %s", f.Door().Addr)
	}
}

// TestForwardToNobody: the connection is ended, and counted as failed.
func TestForwardToNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	f := Forward(l.Addr().String())
	defer f.Close()
	if b, _ := io.ReadAll(through(t, f)); len(b) != 0 {
		t.Errorf("read %q", b)
	}
	if passed, failed := f.Connections(); passed != 0 || failed != 1 {
		t.Errorf("counted %d connections, %d failed", passed, failed)
	}
}

// TestForwardClose ends a connection that neither side would.
func TestForwardClose(t *testing.T) {
	ended := make(chan error, 1)
	server := listen(t, func(c net.Conn) {
		_, _ = c.Write([]byte("x"))
		_, err := c.Read(make([]byte, 1))
		ended <- err
	})
	f := Forward(server.String())
	c := through(t, f)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
	if err := <-ended; err == nil {
		t.Error("the server's side goes on")
	}
	if b, _ := io.ReadAll(through(t, f)); len(b) != 0 {
		t.Errorf("a closed forwarding passes on %q", b)
	}
}

// TestForwardBroken: a server that breaks off ends the command's side, though
// that still writes.
func TestForwardBroken(t *testing.T) {
	server := listen(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	f := Forward(server.String())
	defer f.Close()
	c := through(t, f)
	for {
		if _, err := c.Write(make([]byte, 64<<10)); err != nil {
			return
		}
	}
}
