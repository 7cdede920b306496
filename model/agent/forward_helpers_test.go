package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"hone/model"
	"hone/model/anthropic"
	"hone/model/gemini"
	"hone/model/openai"
)

const testKey = "sk-real/0123456789abcdef"

// book is a ledger with configured results that records its calls.
type book struct {
	grant  int64 // 0 means as many tokens as requested, or 1000
	refuse error // of Reserve
	fail   error // of Commit

	mu      sync.Mutex
	asked   int
	calls   []reserved
	settled []settled
}

type reserved struct {
	model            string
	bytes, maxOutput int64
}

type settled struct {
	used  *model.Usage
	fault error
}

func (b *book) Reserve(model string, bytes, maxOutput int64) (int64, func(*usage, error) error, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked++; b.refuse != nil {
		return 0, nil, b.refuse
	}
	b.calls = append(b.calls, reserved{model, bytes, maxOutput})
	return cmp.Or(b.grant, maxOutput, 1000), func(used *usage, fault error) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.settled = append(b.settled, settled{used, fault})
		return b.fail
	}, nil
}

type usage = model.Usage

func (b *book) list() ([]reserved, []settled) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls), slices.Clone(b.settled)
}

// wait waits until a call is settled.
func (b *book) wait() {
	for {
		if _, done := b.list(); len(done) > 0 {
			return
		}
		runtime.Gosched()
	}
}

// one returns the settlement of the only call.
func (b *book) one(t *testing.T) settled {
	t.Helper()
	calls, done := b.list()
	if len(calls) != 1 || len(done) != 1 {
		t.Fatalf("%d calls were reserved and %d settled, want 1 of each", len(calls), len(done))
	}
	return done[0]
}

// open starts a forwarder and returns the address that it serves.
func open(t *testing.T, c ForwardConfig) (*Forward, string) {
	t.Helper()
	if c.Key == "" {
		c.Key = testKey
	}
	if c.Reader == nil {
		c.Reader = readers(c.Wire)
	}
	f, err := NewForward(c)
	if err != nil {
		t.Fatal(err)
	}
	return f, listen(t, f)
}

// readers returns the readers of a wire's own package.
func readers(w string) func(path string) model.Reader {
	return map[string]func(string) model.Reader{Gemini: gemini.NewReader, Anthropic: anthropic.NewReader, OpenAI: openai.NewReader}[w]
}

// listen returns an address whose connections the forwarder serves until the
// test ends.
func listen(t *testing.T, f *Forward) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { f.ServeConn(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.Close()
		served.Wait()
	})
	return l.Addr().String()
}

// upstream starts a provider that reads the request and calls h.
func upstream(t *testing.T, h func(w http.ResponseWriter, r *http.Request, body []byte)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h(w, r, body)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// forbid starts a provider that must receive no request.
func forbid(t *testing.T) string {
	return upstream(t, func(_ http.ResponseWriter, r *http.Request, _ []byte) {
		t.Errorf("%s %s reached the provider", r.Method, r.RequestURI)
	})
}

type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// post sends a body like an agent.
func post(t *testing.T, url, body string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return do(t, req)
}

func do(t *testing.T, req *http.Request) reply {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b), err}
}

// raw sends bytes over a new connection and reads until it is closed.
func raw(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, c); err != nil && !errors.Is(err, net.ErrClosed) {
		fmt.Fprintf(&b, "\n%v", err)
	}
	return b.String()
}

// simple is a minimal call on a wire.
type simple struct {
	wire       string
	name, path string // the path follows the agent's base URL
	body       string // with a limit of 500 tokens
	limit      string // the member with the limit, as in body
}

func simples() []simple {
	return []simple{
		{Gemini, "gemini", "/v1beta/models/gemini-x:generateContent",
			`{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":500}}`, `"maxOutputTokens":500`},
		{Gemini, "gemini stream", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
			`{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":500}}`, `"maxOutputTokens":500`},
		{Anthropic, "anthropic", "/v1/messages",
			`{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`, `"max_tokens":500`},
		{Anthropic, "anthropic stream", "/v1/messages?beta=true",
			`{"model":"m","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, `"max_tokens":500`},
		{OpenAI, "chat", "/v1/chat/completions",
			`{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`, `"max_tokens":500`},
		{OpenAI, "chat stream", "/v1/chat/completions",
			`{"model":"m","max_tokens":500,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`, `"max_tokens":500`},
		{OpenAI, "responses", "/v1/responses", `{"model":"m","max_output_tokens":500,"input":"hi"}`, `"max_output_tokens":500`},
		{OpenAI, "responses stream", "/v1/responses", `{"model":"m","max_output_tokens":500,"stream":true,"input":"hi"}`, `"max_output_tokens":500`},
	}
}

// dial sends bytes and leaves the connection open until the test ends.
func dial(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

// plainPost returns the bytes of a POST request.
func plainPost(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// sameJSON reports whether two texts are the same JSON.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
