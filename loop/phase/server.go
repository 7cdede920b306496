package phase

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"hone/sandbox"
)

// Server connects the verifier's walls to the project's server, which runs behind
// walls of its own while a suite runs (rulings A9 and A13). It accepts connections
// only while an [Instance] or a [Stub] is up.
type Server struct {
	url  string
	port int

	mu      sync.Mutex
	live    func(net.Conn) // serves a connection; nil while no server is up
	address string         // where commands find it
}

// NewServer returns the Server for the URL of a server on this machine, such as
// http://localhost:3000. The URL must name a port.
func NewServer(address string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL: %w", address, err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("%q names no port", address)
	}
	return &Server{url: address, port: port, address: address}, nil
}

// Door returns the door of the verifier's walls. In walls with a network of their
// own it listens at the server's address. In other walls the server itself
// has that address, and the door listens on any free port: see [Server.SetAddr].
func (s *Server) Door(ownNet bool) sandbox.Door {
	addr := "127.0.0.1:0"
	if ownNet {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	}
	return sandbox.Door{Addr: addr, Serve: s.serve}
}

// SetAddr sets the address at which the door listens, once the walls exist.
func (s *Server) SetAddr(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, port, err := net.SplitHostPort(addr); err == nil && port != strconv.Itoa(s.port) {
		s.address = "http://" + addr
	}
}

// URL returns the URL that NewServer was given.
func (s *Server) URL() string { return s.url }

// Address returns the URL at which the verifier's commands reach the server.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// nil closes the connections of commands.
func (s *Server) setHandler(live func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = live
}

func (s *Server) serve(c net.Conn) {
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	if live == nil {
		c.Close()
		return
	}
	live(c)
}

var errDown = errors.New("the server is not up")

func (g *Instance) dial(ctx context.Context) (net.Conn, error) {
	g.mu.Lock()
	up := g.up
	g.mu.Unlock()
	if up == nil {
		return nil, errDown
	}
	return up.running.Dial(ctx, g.server.port)
}

// Stub stands in for the project's server, so that a suite can be seen to fail
// (ruling A14): it answers every request with one status and an empty body.
type Stub struct {
	server   *Server
	status   int
	requests atomic.Int64
}

// StartStub starts a stub, which serves until its method Stop is called. No other server
// may be up.
func (s *Server) StartStub(status int) *Stub {
	b := &Stub{server: s, status: status}
	s.setHandler(b.serve)
	return b
}

// Requests returns how many requests the stub has answered.
func (b *Stub) Requests() int { return int(b.requests.Load()) }

// Stop makes the stub refuse further connections.
func (b *Stub) Stop() { b.server.setHandler(nil) }

func (b *Stub) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		b.requests.Add(1)
		if req.Header.Get("Expect") != "" {
			fmt.Fprint(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", b.status, http.StatusText(b.status)); err != nil || req.Close {
			return
		}
	}
}
