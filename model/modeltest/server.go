// Package modeltest holds what every provider is tested with: a loopback
// server that speaks the providers' real protocols from a script of turns,
// and the conformance suite that names the behaviours each provider shows.
//
// The server is for tests, of the providers and of the commands above them;
// it checks no key and listens on the loopback interface alone.
package modeltest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"hone/model"
)

// Turn is what the server does with one request.
type Turn struct {
	Text  string       // the visible answer
	Calls []model.Call // tool calls after the text
	// Thinking is sent as the wire sends signed or encrypted reasoning, so
	// that it must come back as an opaque part.
	Thinking string
	Finish   model.Finish // empty: Stop, or Calls where there are calls
	Detail   string       // the provider's own word for the finish; empty: a fitting one
	Usage    *model.Usage // nil: the wire's usage fields are left out

	Status     int           // an HTTP error in place of an answer; 0: none
	Message    string        // its message
	Code       string        // its provider-specific code or type, such as context_length_exceeded
	RetryAfter string        // the Retry-After header, if not empty
	Delay      time.Duration // silence before the first byte
	Chunk      int           // bytes of text in a stream event; 0: 16; characters are not split by it
	Split      int           // bytes in a TCP write; 0: one write an event; splits characters wherever it falls
	Cut        bool          // the connection is closed in the middle of the answer
	NoEnd      bool          // the stream closes cleanly, but without the wire's last event
	Garbage    bool          // the middle of the answer is not of the protocol
	Hang       bool          // after half of the answer nothing more comes until the client leaves
}

// Wire puts turns into one provider's protocol.
type Wire interface {
	// Match reports whether a request's path is this wire's.
	Match(path string) bool
	// Stream reports whether the request asks for a stream.
	Stream(r *http.Request, body []byte) bool
	// Events are the stream's events in order, each whole and ready to be
	// sent; the last is the one that says that the stream is complete.
	Events(t Turn) [][]byte
	// Body is the answer to a request that asks for no stream.
	Body(t Turn) []byte
	// Error is the body of a Turn with a Status.
	Error(t Turn) []byte
}

// Received is a request as the server saw it.
type Received struct {
	Path   string
	Query  string
	Header http.Header
	Body   []byte
}

// Server answers request n with turn n, and every later one with the last.
type Server struct {
	URL string

	mu       sync.Mutex
	turns    []Turn
	received []Received
}

// NewServer starts a server that is closed with the test.
func NewServer(t testing.TB, turns ...Turn) *Server {
	s := &Server{turns: turns}
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	s.URL = h.URL
	return s
}

// Received returns the requests so far, in order.
func (s *Server) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Received(nil), s.received...)
}

// Script replaces the turns and starts again at the first.
func (s *Server) Script(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns, s.received = turns, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	for _, wire := range wires {
		if wire.Match(r.URL.Path) {
			play(w, r, wire, s.next(r, body), body)
			return
		}
	}
	http.NotFound(w, r)
}

func (s *Server) next(r *http.Request, body []byte) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, Received{r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body})
	return s.turns[min(len(s.received), len(s.turns))-1]
}

// wires are those that a Server speaks; each stands in a file of its name.
var wires = []Wire{chat{}, responses{}, gemini{}, anthropic{}}

// play sends one turn, faults included.
func play(w http.ResponseWriter, r *http.Request, wire Wire, t Turn, body []byte) {
	if !pause(r, t.Delay) {
		return
	}
	if t.RetryAfter != "" {
		w.Header().Set("Retry-After", t.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case t.Status != 0:
		w.WriteHeader(t.Status)
		_, _ = w.Write(wire.Error(t))
	case wire.Stream(r, body):
		w.Header().Set("Content-Type", "text/event-stream")
		playEvents(w, r, wire.Events(t), t)
	default:
		playEvents(w, r, [][]byte{wire.Body(t)}, t)
	}
}

// playEvents writes the events, and does in their middle what the turn says.
func playEvents(w http.ResponseWriter, r *http.Request, events [][]byte, t Turn) {
	if t.NoEnd {
		events = events[:len(events)-1]
	}
	middle := len(events) / 2
	for i, event := range events {
		if i == middle {
			switch {
			case t.Cut:
				write(w, event[:len(event)/2], t.Split)
				panic(http.ErrAbortHandler)
			case t.Hang:
				write(w, event[:len(event)/2], t.Split)
				<-r.Context().Done()
				return
			case t.Garbage:
				write(w, []byte("data: {\"oops\": [,,,\xff\xfe\n\n"), t.Split)
			}
		}
		write(w, event, t.Split)
	}
}

func write(w http.ResponseWriter, b []byte, split int) {
	if split <= 0 {
		split = max(1, len(b))
	}
	for len(b) > 0 {
		n := min(split, len(b))
		_, _ = w.Write(b[:n])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		b = b[n:]
	}
}

func pause(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}
