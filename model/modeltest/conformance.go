package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hone/model"
)

// Provider describes a provider to the conformance suite. A path is a place in
// the JSON body of its requests: names and indices separated by dots, such as
// "messages.0.content".
type Provider struct {
	// New returns a model that calls the server at url, which has no path,
	// with the key. It must not read the environment.
	New func(url, key string, t model.Timeouts) model.Model
	// Wire is the protocol that the server speaks on every path. If it is nil,
	// the server speaks the wires of this module's providers, by path.
	Wire Wire
	// Lacks names what the protocol cannot express, with the reason: an
	// ability ([Streaming], [Tools]), or a single test as go test prints it
	// below the test that calls Conformance, such as "request/output_limit".
	// These tests are skipped with the reason. A name that does not exist is a
	// failure. Nil means that nothing is lacking.
	//
	// A protocol that does not count cached or reasoning tokens lacks
	// "reply/usage" and "reply/unreadable_usage", which expect both. Its own test
	// then shows that input and output are read exactly.
	Lacks map[string]string
	// Opaque is the Wire of its opaque parts; empty if it has none.
	Opaque string
	// KeyVariable is the variable that the hint for a rejected key names;
	// empty if no hint names one.
	KeyVariable string

	System    string // path of the system text
	Messages  string // path of the list that grows with the conversation
	MaxOutput string // path of the output limit
	Reasoning string // path of a value that differs between reasoning levels

	// CacheWrite reports that the wire counts tokens written to a cache.
	CacheWrite bool
	// ObjectArgs reports that the wire sends a call's arguments as a JSON
	// object, so that their text may change and must be an object.
	ObjectArgs bool
}

// The abilities that a protocol may lack. See [Provider.Lacks].
const (
	// Streaming means that a reply arrives in parts. A provider without it
	// passes the entire text to Request.Stream once.
	Streaming = "streaming"
	// Tools means that the protocol has tool calls and their results. A
	// provider without it ignores Request.Tools; the package texttools adds
	// calls to it as text.
	Tools = "tools"
)

// Conformance tests the behavior that every provider must have, against a
// server that speaks its protocol. The package's own tests contain a small
// provider, its wire and what it lacks: see wire_test.go.
//
// A provider without HTTP, such as model/script, cannot be tested by it. Its own
// test shows that it reports its usage, without which the budget counts all that
// a reply could have cost, that it calls Request.Stream at least once, and that
// it returns the context's error.
func Conformance(t *testing.T, p Provider) {
	groups := []struct {
		name  string
		tests []conformanceTest
	}{
		{"reply", replyTests()},
		{"fault", faultTests()},
		{"request", requestTests()},
		{"size", sizeTests()},
	}
	names := []string{Streaming, Tools}
	for _, g := range groups {
		for _, test := range g.tests {
			names = append(names, test.path(g.name))
		}
	}
	for name := range p.Lacks {
		if !slices.Contains(names, name) {
			t.Errorf("Lacks has %q, which does not exist; the names are\n%s", name, strings.Join(names, "\n"))
		}
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					p.skip(t, test.path(g.name))
					test.run(t, p)
				})
			}
		})
	}
}

// conformanceTest is one test of the suite.
type conformanceTest struct {
	name string
	run  func(*testing.T, Provider)
}

// path returns the test's name in [Provider.Lacks].
func (c conformanceTest) path(group string) string {
	return group + "/" + strings.ReplaceAll(c.name, " ", "_")
}

// skip skips a test if the provider lacks an ability or the test's path.
func (p Provider) skip(t *testing.T, name string) {
	t.Helper()
	if reason, ok := p.Lacks[name]; ok {
		t.Skipf("the provider lacks %s: %s", name, reason)
	}
}

// has reports whether the provider has an ability.
func (p Provider) has(ability string) bool {
	_, lacks := p.Lacks[ability]
	return !lacks
}

// key is the secret of every conformance test.
const key = "sk-conformance-0123456789abcdef"

// start returns a server with the turns and a model that calls it.
func (p Provider) start(t *testing.T, turns ...Turn) (*Server, model.Model) {
	t.Helper()
	s := NewServer(t, turns...)
	s.Speak(p.Wire)
	return s, p.New(s.URL, key, model.Timeouts{})
}

// ask returns the reply to one turn.
func (p Provider) ask(t *testing.T, turn Turn) model.Reply {
	t.Helper()
	_, m := p.start(t, turn)
	reply, err := m.Generate(t.Context(), question())
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	return reply
}

// fault returns the error for one turn, which must be of one of the kinds. The
// provider must have made exactly one attempt.
func (p Provider) fault(t *testing.T, turn Turn, kinds ...model.Kind) *model.Error {
	t.Helper()
	s, m := p.start(t, turn)
	reply, err := m.Generate(t.Context(), question())
	if n := len(s.Received()); n != 1 {
		t.Errorf("the server received %d requests, want one attempt", n)
	}
	return wantFault(t, reply, err, kinds...)
}

func wantFault(t *testing.T, reply model.Reply, err error, kinds ...model.Kind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("Generate = %.200q, %v; want a *model.Error of kind %q", reply.Text(), err, kinds)
	}
	for _, kind := range kinds {
		if e.Kind == kind {
			return e
		}
	}
	t.Fatalf("the error %v is of kind %q, want %q", e, e.Kind, kinds)
	return nil
}

// question returns a minimal request.
func question() model.Request {
	return model.Request{Messages: []model.Message{userText("What is the capital of France?")}}
}

func userText(texts ...string) model.Message {
	m := model.Message{Role: model.User}
	for _, text := range texts {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	return m
}

// tools returns two tools; their names and schemas are not sorted.
func tools() []model.Spec {
	return []model.Spec{
		{Name: "write", Description: "Writes a file.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string","description":"the file's path"},"content":{"type":"string"}},"required":["path","content"]}`)},
		{Name: "read", Description: "Reads a file.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	}
}

// send sends the request and returns the body that the server received.
func (p Provider) send(t *testing.T, req model.Request) []byte {
	t.Helper()
	s, m := p.start(t, Turn{Text: "ok"})
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatalf("Generate: %v", err)
	}
	return lastBody(t, s)
}

func lastBody(t *testing.T, s *Server) []byte {
	t.Helper()
	received := s.Received()
	if len(received) == 0 {
		t.Fatal("the server received no request")
	}
	body := received[len(received)-1].Body
	if !json.Valid(body) {
		t.Fatalf("the request's body is not JSON: %.500q", body)
	}
	return body
}

// valueAt returns the raw JSON at a path; nil if there is none.
func valueAt(body []byte, path string) json.RawMessage {
	value := json.RawMessage(body)
	for name := range strings.SplitSeq(path, ".") {
		if index, err := strconv.Atoi(name); err == nil {
			var list []json.RawMessage
			if json.Unmarshal(value, &list) != nil || index >= len(list) {
				return nil
			}
			value = list[index]
			continue
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(value, &fields) != nil {
			return nil
		}
		value = fields[name]
	}
	return value
}

// wantInOrder fails unless each word is in the body once, in this order.
func wantInOrder(t *testing.T, body []byte, words ...string) {
	t.Helper()
	last := -1
	for _, word := range words {
		if n := bytes.Count(body, []byte(word)); n != 1 {
			t.Errorf("%q is in the request %d times, want once: %.2000s", word, n, body)
			return
		}
		i := bytes.Index(body, []byte(word))
		if i < last {
			t.Errorf("%q comes too early in the request: %.2000s", word, body)
		}
		last = i
	}
}

// sameArgs reports whether two calls' arguments are the same text, or, if the
// wire sends objects, the same JSON value.
func (p Provider) sameArgs(a, b string) bool {
	if !p.ObjectArgs || a == b {
		return a == b
	}
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil &&
		bytes.Equal(encode(x), encode(y))
}

// patience is how long a test waits for what must happen. Only a test that fails reaches it.
const patience = 5 * time.Minute

// eventually waits until ok returns true.
func eventually(ok func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}
