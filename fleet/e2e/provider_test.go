//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"hone/model"
	"hone/model/modeltest"
)

// provider is a model server of the test's own. It writes the file that a job's check
// reports as missing, and knows every call that it has received.
type provider struct {
	url   string
	think time.Duration

	mu    sync.Mutex
	calls map[call]int // how often each was received
}

// call identifies a model call: each is made once, unless it was lost.
type call struct {
	job, file string
	turn      int // in the session of a round
}

// tokens is what each reply reports.
const tokens = 120

func newProvider(t *testing.T, think time.Duration) *provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{url: "http://" + l.Addr().String() + "/v1", think: think, calls: map[call]int{}}
	s := &http.Server{Handler: p}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return p
}

// reports matches what the check of a job prints.
var reports = regexp.MustCompile(`(job-[0-9]+): (part[0-9]+\.txt) is missing`)

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c, turn := answer(body)
	p.mu.Lock()
	p.calls[c]++ // whether or not the client waits for the answer
	p.mu.Unlock()
	select {
	case <-time.After(p.think):
	case <-r.Context().Done():
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var s modeltest.Server
	s.Script(turn)
	s.ServeHTTP(w, r)
}

// answer returns which call a request is, and the reply to it.
func answer(body []byte) (call, modeltest.Turn) {
	m := reports.FindSubmatch(body)
	if m == nil {
		return call{}, modeltest.Turn{Status: http.StatusBadRequest, Message: "no check reported anything"}
	}
	c := call{string(m[1]), string(m[2]), 1}
	id := c.job + "-" + c.file[:len(c.file)-len(".txt")]
	turn := modeltest.Turn{Usage: &model.Usage{Input: tokens - 20, Output: 20}}
	if bytes.Contains(body, []byte(id)) {
		c.turn, turn.Text = 2, "The file is there."
		return c, turn
	}
	turn.Calls = []model.Call{{ID: id, Name: "write", Args: fmt.Sprintf(`{"path":%q,"content":"%s\n"}`, c.file, c.job)}}
	return c, turn
}

// log returns how many different calls there were, and how many were repeated.
func (p *provider) log() (different, repeated int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.calls {
		different++
		repeated += n - 1
	}
	return different, repeated
}
