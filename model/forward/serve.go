package forward

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerTime = 30 * time.Second // limit for sending a request's header
	restTime   = 10 * time.Minute // limit for an idle connection
	// drainTime is how long the server reads the rest of a refused request: if
	// it closed the connection earlier, the agent could lose the response.
	drainTime = 5 * time.Second
)

// start starts the server for the connections of ServeConn.
func (f *Forward) start() {
	f.queue = newQueue(8 * f.config.MaxConcurrent)
	f.server = &http.Server{
		Handler:           f,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       restTime,
		MaxHeaderBytes:    maxHeader,
		// The general handler would answer OPTIONS *.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return f.ctx },
	}
	// Serve returns only after Close, and always with an error.
	go func() { _ = f.server.Serve(f.queue) }()
}

// queue is a listener that accepts the connections passed to serve.
type queue struct {
	conns  chan net.Conn
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

func newQueue(places int) *queue {
	return &queue{conns: make(chan net.Conn), slots: make(chan struct{}, places), closed: make(chan struct{})}
}

// serve queues a connection and waits until it is closed. If all slots are
// taken, it closes the connection.
func (q *queue) serve(c net.Conn) {
	select {
	case q.slots <- struct{}{}:
		defer func() { <-q.slots }()
	default:
		c.Close()
		return
	}
	h := &queuedConn{Conn: c, ended: make(chan struct{})}
	select {
	case q.conns <- h:
	case <-q.closed:
		c.Close()
		return
	}
	select {
	case <-h.ended:
	case <-q.closed:
		// A connection that the server does not know yet is not closed by it.
		c.Close()
		<-h.ended
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "forward", Net: "unix"} }

// queuedConn is a connection that signals when it is closed.
type queuedConn struct {
	net.Conn
	once  sync.Once
	ended chan struct{}
}

func (h *queuedConn) Close() error {
	defer h.once.Do(func() { close(h.ended) })
	return h.Conn.Close()
}
