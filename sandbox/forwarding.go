package sandbox

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
)

// Forwarding forwards the connections of a [Door] to one destination, and tells of each request. It lets commands
// behind walls without a network reach that destination and no other (ruling A13). Make one with [ForwardBy].
type Forwarding struct {
	addr    string
	dial    func(context.Context) (net.Conn, error)
	reached func()
	ctx     context.Context
	cancel  context.CancelFunc

	request sync.Mutex // held while a request's first bytes are forwarded and reached runs
}

// ForwardBy forwards connections to what dial connects to, such as a server
// behind other walls (see [Running.Dial]). The address is then only the door's,
// and may have port 0; see DoorAddr of the walls. A nil dial connects to the
// address.
//
// Reached, if not nil, is called for each request: after its first bytes have been
// forwarded, and before any answer is passed back. The first bytes of a connection
// are a request, and so is what starts with an HTTP request line later on. A
// connection on which the command sends no byte does not count.
// Contract: both functions are called from any goroutine. Dial respects its
// context, which ends with [Forwarding.Close]. Its connection must accept writes
// before it is read, as sockets do and net.Pipe does not. While reached runs all
// connections of the forwarding wait.
func ForwardBy(addr string, dial func(context.Context) (net.Conn, error), reached func()) *Forwarding {
	f := &Forwarding{addr: addr, dial: dial, reached: reached}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if dial == nil {
		var d net.Dialer
		f.dial = func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	return f
}

// Door returns the door of the forwarding for a policy. Commands find it at the
// forwarding's address; with a nil dial that is also its destination.
func (f *Forwarding) Door() Door { return Door{Addr: f.addr, Serve: f.Serve} }

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
		return
	}
	defer outside.Close()
	stop := context.AfterFunc(f.ctx, func() {
		inside.Close()
		outside.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { copyDirection(outside, inside, &fromCommand{f: f, to: outside}) })
	both.Go(func() { copyDirection(inside, outside, toCommand{f, inside}) })
	both.Wait()
}

// It closes the receiver's side at the end, or both if either side fails.
func copyDirection(to, from net.Conn, through io.Writer) {
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

// fromCommand writes what the command sends, and calls reached for each
// request.
type fromCommand struct {
	f     *Forwarding
	to    io.Writer
	asked bool // the connection has sent bytes
}

func (h *fromCommand) Write(b []byte) (n int, err error) {
	if h.f.reached == nil || h.asked && !requestLine(b) {
		return h.to.Write(b)
	}
	h.asked = true
	h.f.request.Lock() // answers wait for the first bytes of a request
	defer h.f.request.Unlock()
	if n, err = h.to.Write(b); n > 0 {
		h.f.reached()
	}
	return n, err
}

func requestLine(b []byte) bool {
	line, _, ok := bytes.Cut(b[:min(len(b), 8<<10)], []byte("\r\n"))
	words := bytes.Fields(line)
	return ok && len(words) == 3 && bytes.HasPrefix(words[2], []byte("HTTP/1.")) && bytes.Equal(words[0], bytes.ToUpper(words[0]))
}

type toCommand struct {
	f  *Forwarding
	to io.Writer
}

func (a toCommand) Write(b []byte) (int, error) {
	func() {
		a.f.request.Lock() // reached may still run for a request that was answered already
		defer a.f.request.Unlock()
	}()
	return a.to.Write(b)
}
