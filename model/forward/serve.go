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
	headerTime   = 30 * time.Second // limit for sending a request's header
	idleConnTime = 10 * time.Minute // limit for an idle connection
	// drainTime is how long the server reads the rest of a refused request: if
	// it closed the connection earlier, the agent could lose the response.
	drainTime = 5 * time.Second
)

func (f *Forward) newServer() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(f.serve),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleConnTime,
		MaxHeaderBytes:    maxHeader,
		// The general handler would answer OPTIONS *.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return f.ctx },
	}
}

// ServeConn serves one connection, and returns when either side has closed it.
// A wall calls it for each connection from the inside. If too many connections
// are open, it closes this one.
func (f *Forward) ServeConn(c net.Conn) {
	select {
	case f.conns <- struct{}{}:
		defer func() { <-f.conns }()
	default:
		c.Close()
		return
	}
	// Serve always returns an error, here when the connection is closed.
	_ = f.server.Serve(&listener{Conn: c, closed: make(chan struct{})})
}

// listener is a connection that accepts itself, once.
type listener struct {
	net.Conn
	accepted bool
	once     sync.Once
	closed   chan struct{}
}

// Accept implements net.Listener. Its second call waits for the connection's
// end.
func (l *listener) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.closed
		return nil, net.ErrClosed
	}
	l.accepted = true
	return l, nil
}

// Close implements net.Conn and net.Listener.
func (l *listener) Close() error {
	defer l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.LocalAddr() }
