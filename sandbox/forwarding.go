package sandbox

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Forwarding passes the connections of a [Door] on to an address of this
// machine, or wherever else its dial leads, and counts. It lets commands behind
// walls without a network reach that one place and no other (ruling A13). Make
// one with [Forward] or [ForwardBy].
type Forwarding struct {
	addr    string
	dial    func(context.Context) (net.Conn, error)
	reached func()
	ctx     context.Context
	cancel  context.CancelFunc

	first sync.Mutex // held while the first bytes are handed on and that is told
	told  atomic.Bool

	connections, failed, in, out atomic.Int64
}

// Forward passes connections on to a TCP address, such as 127.0.0.1:3000. It
// is dialled afresh for each, so that nobody needs to listen there yet.
// Whatever may be reached there may be reached by the command: the bytes are
// not looked at.
func Forward(addr string) *Forwarding { return ForwardBy(addr, nil, nil) }

// ForwardBy is Forward to whatever dial connects to, such as a server behind
// other walls (see [Running.Dial]). The address is then only where commands
// find the door, and may have port 0; see DoorAddr of the walls. A nil dial is
// Forward's.
//
// Reached, if not nil, is called once: when the first bytes of any command have
// been handed to what was dialled, and before any byte that answers them is
// passed back. A connection without a byte of the command's is none.
// Contract: both are called from any goroutine. Dial keeps to its context,
// which ends with [Forwarding.Close]. What is dialled must take what is written
// to it before it is read from, as sockets do and net.Pipe does not. Reached
// holds up all connections of the forwarding while it runs.
func ForwardBy(addr string, dial func(context.Context) (net.Conn, error), reached func()) *Forwarding {
	f := &Forwarding{addr: addr, dial: dial, reached: reached}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.told.Store(reached == nil)
	if dial == nil {
		var d net.Dialer
		f.dial = func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	return f
}

// Door is the forwarding as a policy has it: the command finds it at the
// forwarding's own address, which is the very one that it leads to where
// [Forward] made it.
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
	both.Go(func() { pass(outside, inside, handing{f, outside}) })
	both.Go(func() { pass(inside, outside, answering{f, inside}) })
	both.Wait()
}

// pass copies one direction by a writer to the receiver, and tells the receiver
// that it has ended. A side that broke ends the other as well.
func pass(to, from net.Conn, by io.Writer) {
	_, err := io.Copy(by, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok {
		err = half.CloseWrite()
	}
	if err != nil || !ok {
		to.Close()
		from.Close()
	}
}

// handing writes what comes from the command, counts, and tells of the first.
type handing struct {
	f  *Forwarding
	to io.Writer
}

func (h handing) Write(b []byte) (n int, err error) {
	if h.f.told.Load() {
		n, err = h.to.Write(b)
	} else {
		n, err = h.f.handFirst(h.to, b)
	}
	h.f.in.Add(int64(n))
	return n, err
}

// handFirst writes what may be the first bytes, and tells of them, while no
// answer is passed back.
func (f *Forwarding) handFirst(to io.Writer, b []byte) (int, error) {
	f.first.Lock()
	defer f.first.Unlock()
	n, err := to.Write(b)
	if n > 0 && !f.told.Load() {
		f.reached()
		f.told.Store(true)
	}
	return n, err
}

// answering writes what goes to the command, and counts.
type answering struct {
	f  *Forwarding
	to io.Writer
}

func (a answering) Write(b []byte) (int, error) {
	if !a.f.told.Load() {
		a.f.awaitFirst()
	}
	n, err := a.to.Write(b)
	a.f.out.Add(int64(n))
	return n, err
}

// awaitFirst waits until first bytes that are being handed on, and may be
// answered already, have been told of.
func (f *Forwarding) awaitFirst() {
	f.first.Lock()
	defer f.first.Unlock()
}
