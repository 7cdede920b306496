// Package modeltest tests providers. [Conformance] runs the tests that every
// provider must pass, [Benchmark] measures one, and [NewServer] starts a
// server that speaks all the providers' real protocols and plays a script of
// turns. For a protocol of your own, write a [Wire].
//
// Tests of other packages may use the server too. It listens on the loopback
// interface only and does not check keys.
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

// Turn is the server's response to one request. The zero Turn is an empty,
// complete reply.
type Turn struct {
	Text  string       // the visible answer
	Calls []model.Call // tool calls after the text
	// Thinking is sent as the wire's signed or encrypted reasoning, which a
	// provider must return as an opaque part.
	Thinking string
	Finish   model.Finish // empty means Calls if there are calls, otherwise Stop
	Detail   string       // the wire's finish reason; empty means the one for Finish
	Usage    *model.Usage // nil omits the wire's usage fields
	// Misreport changes the usage; nil reports it as it is.
	Misreport *Misreport

	Status     int           // an HTTP error status; 0 means a normal response
	Message    string        // the error's message
	Code       string        // the error's code or type, such as context_length_exceeded
	RetryAfter string        // the Retry-After header; empty omits it
	Delay      time.Duration // silence before the first byte
	Chunk      int           // bytes of text per event, whole characters only; 0 means 16
	Split      int           // bytes per TCP write, which may split characters; 0 means one write per event
	Cut        bool          // closes the connection in the middle of the response
	NoEnd      bool          // ends the stream cleanly, but without the wire's last event
	Garbage    bool          // inserts text that is not of the protocol in the middle
	Hang       bool          // sends nothing after the middle until the client leaves
}

// Received is a request that the server received.
type Received struct {
	Path   string
	Query  string
	Header http.Header
	Body   []byte
}

// Server answers request n with turn n, and requests after the last turn with
// the last turn. It is safe for concurrent use.
type Server struct {
	URL string

	mu       sync.Mutex
	wire     Wire
	turns    []Turn
	received []Received
}

// NewServer starts a server that stops when the test ends. At least one turn
// is needed to answer a request.
func NewServer(t testing.TB, turns ...Turn) *Server {
	s := &Server{turns: turns}
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	s.URL = h.URL
	return s
}

// Received returns the requests since NewServer or Script, in order.
func (s *Server) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Received(nil), s.received...)
}

// Script replaces the turns and clears the received requests.
func (s *Server) Script(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns, s.received = turns, nil
}

// Speak makes the server speak w on every path; if w is nil, the path of each
// request chooses one of the built-in wires, as it does without Speak.
func (s *Server) Speak(w Wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wire = w
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	wire, turn := s.next(r, body)
	if wire == nil {
		http.Error(w, "modeltest: no built-in wire has the path "+r.URL.Path+"; for a protocol of your own, "+
			"set Wire in modeltest.Provider, or call Server.Speak", http.StatusNotFound)
		return
	}
	play(w, r, wire, turn, body)
}

// next records a request that has a wire, and returns the wire and the turn.
func (s *Server) next(r *http.Request, body []byte) (Wire, Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wire := s.wire
	if wire == nil {
		wire = builtInFor(r.URL.Path)
	}
	if wire == nil {
		return nil, Turn{}
	}
	s.received = append(s.received, Received{r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body})
	return wire, s.turns[min(len(s.received), len(s.turns))-1]
}

// play sends one turn.
func play(w http.ResponseWriter, r *http.Request, p Wire, t Turn, body []byte) {
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
		_, _ = w.Write(p.Error(t))
	case p.Stream(r, body):
		w.Header().Set("Content-Type", "text/event-stream")
		playEvents(w, r, p.Events(t), t)
	default:
		playEvents(w, r, [][]byte{p.Body(t)}, t)
	}
}

// playEvents writes the events, with the turn's fault in the middle.
func playEvents(w http.ResponseWriter, r *http.Request, events [][]byte, t Turn) {
	if t.NoEnd && len(events) > 0 {
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
