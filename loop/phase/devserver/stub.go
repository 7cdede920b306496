package devserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

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
