package sandbox

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Forwarding passes the connections of a [Door] on to an address of this
// machine, and counts. It lets commands behind walls without a network reach
// that one address and no other (ruling A13). Make one with [Forward].
type Forwarding struct {
	addr   string
	ctx    context.Context
	cancel context.CancelFunc

	connections, failed, in, out atomic.Int64
}

// Forward passes connections on to a TCP address, such as 127.0.0.1:3000. It
// is dialled afresh for each, so that nobody needs to listen there yet.
// Whatever may be reached there may be reached by the command: the bytes are
// not looked at.
func Forward(addr string) *Forwarding {
	f := &Forwarding{addr: addr}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Door is the forwarding as a policy has it: the command finds it at the very
// address that it leads to.
func (f *Forwarding) Door() Door { return Door{Addr: f.addr, Serve: f.Serve} }

// Connections are how many were passed on, and how many could not be because
// nobody answered at the address or the forwarding is closed.
func (f *Forwarding) Connections() (passed, failed int64) {
	return f.connections.Load(), f.failed.Load()
}

// Bytes are those that came from the command and those that went to it.
func (f *Forwarding) Bytes() (from, to int64) { return f.in.Load(), f.out.Load() }

// Close ends all connections that are passed on, and lets none pass any more.
// It does not wait for their goroutines; they end by themselves.
func (f *Forwarding) Close() { f.cancel() }

// Serve passes one connection on until both sides have ended it, either side
// breaks, or the forwarding is closed. Each direction ends on its own, as a
// client that has sent all still waits for the answer.
func (f *Forwarding) Serve(inside net.Conn) {
	defer inside.Close()
	var d net.Dialer
	outside, err := d.DialContext(f.ctx, "tcp", f.addr)
	if err != nil {
		f.failed.Add(1)
		return
	}
	defer outside.Close()
	f.connections.Add(1)
	stop := context.AfterFunc(f.ctx, func() {
		inside.Close()
		outside.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pass(outside, inside, &f.in) })
	both.Go(func() { pass(inside, outside, &f.out) })
	both.Wait()
}

// pass copies one direction, counts, and tells the receiver that it has ended.
// A side that broke ends the other as well.
func pass(to, from net.Conn, count *atomic.Int64) {
	_, err := io.Copy(counted{to, count}, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok {
		err = half.CloseWrite()
	}
	if err != nil || !ok {
		to.Close()
		from.Close()
	}
}

// counted counts what is written.
type counted struct {
	to    io.Writer
	count *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.count.Add(int64(n))
	return n, err
}
