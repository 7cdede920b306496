package phase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"

	"hone/sandbox"
)

// Server is the way from the verifier's walls to the project's server, which
// runs behind walls of its own while a suite runs (rulings A9 and A13). It
// knows a server only while one is up.
type Server struct {
	url  string
	port int

	mu      sync.Mutex
	live    *stage // nil: no server is up
	address string // where commands find it
}

// NewServer is the way to a server that will answer at an address of this
// machine, such as http://localhost:3000.
func NewServer(address string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address: %w", address, err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("%q names no port", address)
	}
	return &Server{url: address, port: port, address: address}, nil
}

// Door is the door of the verifier's walls. In walls with a network of their
// own it stands where the server is said to be. In others the server itself
// has that place, and the door is anywhere: see [Server.Found].
func (s *Server) Door(ownNet bool) sandbox.Door {
	addr := "127.0.0.1:0"
	if ownNet {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	}
	return sandbox.Door{Addr: addr, Serve: s.serve}
}

// Found says where commands find the door, once the walls stand.
func (s *Server) Found(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, port, err := net.SplitHostPort(addr); err == nil && port != strconv.Itoa(s.port) {
		s.address = "http://" + addr
	}
}

// Address is where commands find the server.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// set says which server is up; nil: none.
func (s *Server) set(g *stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = g
}

// serve passes a connection of a command's on to the server that is up.
func (s *Server) serve(c net.Conn) {
	s.mu.Lock()
	g := s.live
	s.mu.Unlock()
	if g == nil {
		c.Close()
		return
	}
	g.forward.Serve(c)
}

// errDown is why nothing is passed on.
var errDown = errors.New("the server is not up")

// dial connects to the server itself.
func (g *stage) dial(ctx context.Context) (net.Conn, error) {
	g.mu.Lock()
	up := g.up
	g.mu.Unlock()
	if up == nil {
		return nil, errDown
	}
	return up.running.Dial(ctx, g.server.port)
}
