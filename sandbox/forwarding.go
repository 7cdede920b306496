package sandbox

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Forwarding forwards the connections of a [Door] to one destination and counts
// them. It lets commands behind walls without a network reach that destination
// and no other (ruling A13). Make one with [Forward] or [ForwardBy].
type Forwarding struct {
	addr    string
	dial    func(context.Context) (net.Conn, error)
	reached func()
	ctx     context.Context
	cancel  context.CancelFunc

	first    sync.Mutex  // held while the first bytes are forwarded and reached runs
	notified atomic.Bool // reached has run, or is nil

	connections, failed, in, out atomic.Int64
}

// Forward forwards connections to a TCP address, such as 127.0.0.1:3000. It dials
// the address for each connection, so a server may start there later. It does not
// inspect the bytes: the command may ask the server for anything.
func Forward(addr string) *Forwarding { return ForwardBy(addr, nil, nil) }

// ForwardBy forwards connections to what dial connects to, such as a server
// behind other walls (see [Running.Dial]). The address is then only the door's,
// and may have port 0; see DoorAddr of the walls. A nil dial connects to the
// address.
//
// Reached, if not nil, is called once: after the first bytes of any command have
// been forwarded, and before any answer is passed back. A connection on which
// the command sends no byte does not count.
// Contract: both functions are called from any goroutine. Dial respects its
// context, which ends with [Forwarding.Close]. Its connection must accept writes
// before it is read, as sockets do and net.Pipe does not. While reached runs all
// connections of the forwarding wait.
func ForwardBy(addr string, dial func(context.Context) (net.Conn, error), reached func()) *Forwarding {
	f := &Forwarding{addr: addr, dial: dial, reached: reached}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.notified.Store(reached == nil)
	if dial == nil {
		var d net.Dialer
		f.dial = func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	return f
}

// Door returns the door of the forwarding for a policy. Commands find it at the
// forwarding's address; with [Forward] that is also its destination.
func (f *Forwarding) Door() Door { return Door{Addr: f.addr, Serve: f.Serve} }

// Connections returns how many connections were forwarded, and how many failed
// because no server answered or the forwarding was closed.
func (f *Forwarding) Connections() (passed, failed int64) {
	return f.connections.Load(), f.failed.Load()
}

// Bytes returns how many bytes came from commands and how many went to them.
func (f *Forwarding) Bytes() (from, to int64) { return f.in.Load(), f.out.Load() }

// Close closes all connections and refuses new ones. It does not wait for their
// goroutines, which end by themselves.
func (f *Forwarding) Close() { f.cancel() }

// Serve forwards one connection until both sides have closed it, either side
// fails, or the forwarding is closed. Each direction ends on its own, because a
// client that has sent everything still waits for the answer.
func (f *Forwarding) Serve(inside net.Conn) {
	defer inside.Close()
	outside, err := f.dial(f.ctx)
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
	both.Go(func() { pass(outside, inside, fromCommand{f, outside}) })
	both.Go(func() { pass(inside, outside, toCommand{f, inside}) })
	both.Wait()
}

// pass copies one direction through a writer, and closes the receiver's side of
// it at the end. If either side fails it closes both.
func pass(to, from net.Conn, through io.Writer) {
	_, err := io.Copy(through, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok {
		err = half.CloseWrite()
	}
	if err != nil || !ok {
		to.Close()
		from.Close()
	}
}

// fromCommand writes and counts what the command sends, and calls reached after
// the first bytes.
type fromCommand struct {
	f  *Forwarding
	to io.Writer
}

func (h fromCommand) Write(b []byte) (n int, err error) {
	if h.f.notified.Load() {
		n, err = h.to.Write(b)
	} else {
		n, err = h.f.sendFirst(h.to, b)
	}
	h.f.in.Add(int64(n))
	return n, err
}

// sendFirst writes what may be the first bytes and calls reached. Answers wait
// for it.
func (f *Forwarding) sendFirst(to io.Writer, b []byte) (int, error) {
	f.first.Lock()
	defer f.first.Unlock()
	n, err := to.Write(b)
	if n > 0 && !f.notified.Load() {
		f.reached()
		f.notified.Store(true)
	}
	return n, err
}

// toCommand writes and counts the answers.
type toCommand struct {
	f  *Forwarding
	to io.Writer
}

func (a toCommand) Write(b []byte) (int, error) {
	if !a.f.notified.Load() {
		a.f.awaitFirst()
	}
	n, err := a.to.Write(b)
	a.f.out.Add(int64(n))
	return n, err
}

// awaitFirst waits until reached has been called for first bytes that may have
// been answered already.
func (f *Forwarding) awaitFirst() {
	f.first.Lock()
	defer f.first.Unlock()
}
