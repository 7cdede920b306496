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

// headerTime is how long an agent may take to send a request's header, and
// restTime how long a connection may rest between two of them.
const (
	headerTime = 30 * time.Second
	restTime   = 10 * time.Minute
	// drainTime is how long the server waits for what an agent still sends of
	// a refused request: a connection that is closed before loses the answer.
	drainTime = 5 * time.Second
)

// start begins to answer the connections that ServeConn is given.
func (f *Forward) start() {
	f.queue = newQueue(8 * f.config.MaxConcurrent)
	f.server = &http.Server{
		Handler:           f,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       restTime,
		MaxHeaderBytes:    maxHeader,
		// It would answer OPTIONS * by itself.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return f.ctx },
	}
	// It ends with an error always, and only by Close.
	go func() { _ = f.server.Serve(f.queue) }()
}

// queue is a listener whose connections are handed to it.
type queue struct {
	conns  chan net.Conn
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

func newQueue(places int) *queue {
	return &queue{conns: make(chan net.Conn), places: make(chan struct{}, places), closed: make(chan struct{})}
}

// serve hands a connection over and waits for its end. One too many is closed
// at once.
func (q *queue) serve(c net.Conn) {
	select {
	case q.places <- struct{}{}:
		defer func() { <-q.places }()
	default:
		c.Close()
		return
	}
	h := &handed{Conn: c, ended: make(chan struct{})}
	select {
	case q.conns <- h:
	case <-q.closed:
		c.Close()
		return
	}
	select {
	case <-h.ended:
	case <-q.closed:
		// The server may not know the connection yet, and would not close it.
		c.Close()
		<-h.ended
	}
}

// Accept is the server's.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close is the server's.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr names the queue for the server, which shows it to nobody.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "forward", Net: "unix"} }

// handed is a connection whose end is waited for.
type handed struct {
	net.Conn
	once  sync.Once
	ended chan struct{}
}

func (h *handed) Close() error {
	defer h.once.Do(func() { close(h.ended) })
	return h.Conn.Close()
}
