package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"hone/model"
	"hone/model/modeltest"
)

// nightProvider is a provider that thinks for a while, and has faults. It answers
// by the content of a request, so that the answer to a repeated request is the same.
type nightProvider struct {
	answer  func(body []byte) modeltest.Turn
	address string
	visits  chan func() // called while a request is being answered

	mu     sync.Mutex
	server *http.Server // nil while connections are refused
	ended  bool         // connections are refused for good
	calls  []nightCall
	fault  string // what happens to requests until over; empty: nothing
	over   time.Time
	// The answers are spread over the time until end: expect is how many there are
	// without faults.
	end    time.Time
	expect int
}

// nightCall is a request that arrived.
type nightCall struct {
	arrived time.Time
	usage   model.Usage // identifies the request: it is computed from its body
	used    bool        // a reply was begun
}

// newNightProvider starts a provider without faults that does not think.
func newNightProvider(t *testing.T, answer func(body []byte) modeltest.Turn) *nightProvider {
	t.Helper()
	p := &nightProvider{answer: answer, visits: make(chan func())}
	// Below the ports of outgoing connections, one of which could take it during an outage.
	err := errors.New("no try")
	for range 100 {
		p.address = fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		if err = p.open(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.close()
	})
	return p
}

// open accepts connections, at the same address as before, unless the test has ended.
func (p *nightProvider) open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.server = &http.Server{Handler: p}
	go func(s *http.Server) { _ = s.Serve(l) }(p.server)
	return nil
}

// close refuses connections, and cuts the existing ones.
func (p *nightProvider) close() {
	p.mu.Lock()
	s := p.server
	p.server = nil
	p.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

// suffer has a fault for some time.
func (p *nightProvider) suffer(t *testing.T, fault string, d time.Duration) {
	p.mu.Lock()
	p.fault, p.over = fault, time.Now().Add(d)
	p.mu.Unlock()
	if fault != "refused" {
		return
	}
	p.close()
	time.AfterFunc(d, func() {
		if err := p.open(); err != nil {
			t.Error(err)
		}
	})
}

// wellFor returns how long the provider has been without a fault; negative while it has one.
func (p *nightProvider) wellFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.over)
}

// spread spreads the expected number of answers over the time until end.
func (p *nightProvider) spread(expect int, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expect, p.end = expect, end
}

// arrive records a request. It returns the index of its call, how long the answer takes, and what
// goes wrong.
func (p *nightProvider) arrive(body []byte) (n int, think time.Duration, fault string, over time.Duration) {
	h := fnv.New64a()
	_, _ = h.Write(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, nightCall{arrived: time.Now(),
		usage: model.Usage{Input: int64(len(body))/4 + 1, Output: 1 + int64(h.Sum64()%9000)}})
	answered := 0
	for _, c := range p.calls {
		if c.used {
			answered++
		}
	}
	if over = time.Until(p.over); over > 0 {
		fault = p.fault
	}
	// An odd share of the rest, so that a few lost answers do not delay the end.
	think = max(0, time.Until(p.end)) / time.Duration(max(3, p.expect-answered+2))
	return len(p.calls) - 1, think, fault, over
}

// begin notes that a reply is sent, and returns its usage.
func (p *nightProvider) begin(n int) *model.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[n].used = true
	usage := p.calls[n].usage
	return &usage
}

// received returns the requests so far.
func (p *nightProvider) received() []nightCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]nightCall(nil), p.calls...)
}

func (p *nightProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n, think, fault, over := p.arrive(body)
	turn := modeltest.Turn{Status: http.StatusServiceUnavailable, Message: "overloaded"}
	switch fault {
	case "hangs":
		p.think(r, over)
		panic(http.ErrAbortHandler)
	case "503":
	case "503 with Retry-After":
		turn.RetryAfter = "2"
	case "429":
		turn.Status, turn.RetryAfter = http.StatusTooManyRequests, "1"
	case "slow":
		think += over
		fallthrough
	default:
		if !p.think(r, think) {
			return
		}
		turn = p.answer(body)
		turn.Usage, turn.Cut = p.begin(n), fault == "cuts"
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var s modeltest.Server
	s.Script(turn)
	s.ServeHTTP(w, r)
}

// think waits, and has visitors. It reports whether the client is still there.
func (p *nightProvider) think(r *http.Request, d time.Duration) bool {
	over := time.After(d)
	for {
		select {
		case <-over:
			return true
		case visit := <-p.visits:
			visit()
		case <-r.Context().Done():
			return false
		}
	}
}

// visit calls f while a request is being answered, and reports whether there was
// one within the time.
func (p *nightProvider) visit(f func(), within time.Duration) bool {
	done := make(chan struct{})
	select {
	case p.visits <- func() { defer close(done); f() }:
		<-done
		return true
	case <-time.After(within):
		return false
	}
}
