package model

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// serve starts a server with one handler. It reads the request's body first,
// because only then is the handler's context canceled when the client leaves.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// get fetches url through x and returns the error of the request or the body.
func get(x *Exchange, url string) error {
	req, err := http.NewRequestWithContext(x.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	res, err := x.Client().Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

func fault(t *testing.T, x *Exchange, err error) *Error {
	t.Helper()
	var e *Error
	if got := x.Fault(err); !errors.As(got, &e) {
		t.Fatalf("Fault(%v) = %v, want an *Error", err, got)
	}
	return e
}

func TestExchangeRaw(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"JSON", " {\"a\": 1}\n", `{"a": 1}`},
		{"events", "event: x\ndata: {\"a\":1}\n\n: comment\ndata:{\"b\":2}\r\n\r\ndata: [DONE]\n\n", `[{"a":1},{"b":2}]`},
		{"several data lines", "data: {\ndata: \"a\":1}\n\n", "[{\n\"a\":1}]"},
		{"data that is not JSON", "data: {\"a\ndata: b\n\n", `["{\"a\nb"]`},
		{"unfinished last event", "data: {\"a\":1}\n\ndata: {\"b\"", `[{"a":1},"{\"b\""]`},
		{"lines", "{\"a\":1}\n\n{\"b\":2}\n", `[{"a":1},{"b":2}]`},
		{"a line that is not JSON", "{\"a\":1}\n{\"b\"", ""},
		{"neither", "<html>", ""},
		{"empty", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.body) })
			x := NewExchange(t.Context(), Timeouts{})
			defer x.Close()
			if err := get(x, url); err != nil {
				t.Fatal(err)
			}
			if got := string(x.Raw()); got != test.want {
				t.Errorf("Raw = %q, want %q", got, test.want)
			}
			if x.Raw() != nil && !json.Valid(x.Raw()) {
				t.Errorf("Raw is not JSON: %s", x.Raw())
			}
		})
	}
}

func TestExchangeRecordsTheLastResponse(t *testing.T) {
	n := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("N", string(rune('0'+n)))
		w.WriteHeader(200 + n)
		_ = json.NewEncoder(w).Encode(n)
	})
	x := NewExchange(t.Context(), Timeouts{})
	defer x.Close()
	for range 2 {
		if err := get(x, url); err != nil {
			t.Fatal(err)
		}
	}
	if string(x.Raw()) != "2" || x.Status() != 202 || x.Header().Get("N") != "2" {
		t.Errorf("Raw = %s, Status = %d, N = %s; want those of the second response", x.Raw(), x.Status(), x.Header().Get("N"))
	}
}

func TestFaultKinds(t *testing.T) {
	hijack := func(response string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, response)
			_ = conn.Close()
		}
	}
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    Kind
	}{
		{"closed without a response", hijack(""), Cut},
		{"cut in the header", hijack("HTTP/1.1 200 OK\r\nContent-Le"), Cut},
		{"cut in a body of known length", hijack("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), Cut},
		{"cut in a chunk", hijack("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), Cut},
		{"silent before the header", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Silent},
		{"silent in the body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "abc")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, Silent},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://user:secret@elsewhere.invalid/path?key=secret", http.StatusTemporaryRedirect)
		}, Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			var limits Timeouts
			if test.want == Silent {
				limits.Idle = 50 * time.Millisecond
			}
			x := NewExchange(t.Context(), limits)
			defer x.Close()
			url := serve(t, test.handler)
			e := fault(t, x, get(x, url+"/?key=secret"))
			if e.Kind != test.want {
				t.Errorf("kind = %q (%v), want %q", e.Kind, e, test.want)
			}
			if strings.Contains(e.Error()+e.Hint, "secret") {
				t.Errorf("the error contains the secret: %v", e)
			}
		})
	}
}

func TestFaultTotalTimeout(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: still thinking\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	})
	x := NewExchange(t.Context(), Timeouts{Total: 50 * time.Millisecond})
	defer x.Close()
	if e := fault(t, x, get(x, url)); e.Kind != Silent || !strings.Contains(e.Message, "50ms") {
		t.Errorf("fault = %v, want kind %q with its limit", e, Silent)
	}
}

// A slow server that is never silent for the idle timeout does not time out.
func TestSlowResponse(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 120 {
			_, _ = io.WriteString(w, ".")
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	x := NewExchange(t.Context(), Timeouts{Idle: 5 * time.Second})
	defer x.Close()
	if err := get(x, url); err != nil {
		t.Errorf("a slow response failed: %v", x.Fault(err))
	}
}

func TestFaultUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	_ = l.Close()
	for _, url := range []string{url, "http://nobody.invalid"} {
		x := NewExchange(t.Context(), Timeouts{})
		defer x.Close()
		if e := fault(t, x, get(x, url+"/?key=secret")); e.Kind != Unreachable || strings.Contains(e.Error(), "secret") {
			t.Errorf("%s: fault = %v, want %q without the query", url, e, Unreachable)
		}
	}
}

// A proxy that wants another password is named, whether it gets the request or is asked for a tunnel.
func TestFaultOfAProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer proxy.Close()
	direct := http.DefaultTransport
	http.DefaultTransport = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }}
	defer func() { http.DefaultTransport = direct }()
	for _, url := range []string{"http://model.invalid", "https://model.invalid"} {
		x := NewExchange(t.Context(), Timeouts{})
		defer x.Close()
		err := get(x, url)
		if err == nil {
			err = errors.New("407")
		}
		if e := fault(t, x, err); e.Kind != Invalid || e.Status != 407 || !e.Rejected() || !strings.Contains(e.Hint, "HTTPS_PROXY") {
			t.Errorf("%s: fault = %+v", url, e)
		}
	}
}

// A body in an encoding that nobody asked for is not shown.
func TestFaultOfAnUnknownEncoding(t *testing.T) {
	for status, want := range map[int]Error{
		200: {Kind: Garbage, Message: "the response is compressed as deflate, which hone did not ask for"},
		401: {Kind: Auth, Message: "Unauthorized"},
		503: {Kind: Overloaded, Message: "Service Unavailable"},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "deflate")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "x\x9c\x01\x02")
		})
		x := NewExchange(t.Context(), Timeouts{})
		defer x.Close()
		err := get(x, url)
		if err == nil {
			err = errors.New("the status")
		}
		if e := fault(t, x, err); e.Kind != want.Kind || e.Status != status || e.Message != want.Message {
			t.Errorf("status %d: fault = %+v, want %+v", status, e, want)
		}
	}
}

func TestFaultBeforeDialing(t *testing.T) {
	x := NewExchange(t.Context(), Timeouts{})
	defer x.Close()
	if e := fault(t, x, get(x, "gopher://127.0.0.1/")); e.Kind != Invalid {
		t.Errorf("fault = %v, want kind %q", e, Invalid)
	}
}

func TestFaultTooLarge(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	x := NewExchange(t.Context(), Timeouts{})
	x.maxBody = 1 << 16
	defer x.Close()
	if e := fault(t, x, get(x, url)); e.Kind != Garbage || len(x.Body()) > 1<<18 {
		t.Errorf("fault = %v after %d bytes, want kind %q soon after %d", e, len(x.Body()), Garbage, x.maxBody)
	}
}

// The limits hold after decompression, and no more is read than they allow.
func TestLimitsOfABody(t *testing.T) {
	lines := strings.Repeat(strings.Repeat("a", 99)+"\n", 1<<14)
	line := strings.Repeat("a", 1<<20)
	for _, test := range []struct {
		name   string
		body   string
		status int
		limit  func(x *Exchange)
		read   int // of the body
		want   Kind
	}{
		{"body", lines, 200, func(x *Exchange) { x.maxBody = 1 << 16 }, 1<<16 + 1, Garbage},
		{"body at its limit", lines, 200, func(x *Exchange) { x.maxBody = len(lines) }, len(lines), ""},
		{"line", line, 200, func(x *Exchange) { x.maxLine = 1 << 16 }, 1 << 16, Garbage},
		{"later line", lines + line, 200, func(x *Exchange) { x.maxLine = 1 << 16 }, len(lines) + 1<<16, Garbage},
		{"line below its limit", line[1:] + "\n" + line[1:], 200, func(x *Exchange) { x.maxLine = len(line) }, 2*len(line) - 1, ""},
		{"error", line + line, 500, func(*Exchange) {}, MaxErrorBody, Overloaded},
		{"error of one long line", line, 500, func(x *Exchange) { x.maxLine = 10 }, len(line), Overloaded},
		{"neither success nor error", line + line, 303, func(*Exchange) {}, MaxErrorBody, Invalid},
	} {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(test.name+" "+encoding, func(t *testing.T) {
				url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					if encoding != "" {
						w.Header().Set("Content-Encoding", encoding)
					}
					w.WriteHeader(test.status)
					_, _ = w.Write(encoded(t, test.body, encoding))
				})
				x := NewExchange(t.Context(), Timeouts{})
				defer x.Close()
				test.limit(x)
				err := get(x, url)
				if err == nil && test.want != "" {
					err = errors.New("the SDK's error for a status")
				}
				if n := len(x.Body()); n != test.read {
					t.Errorf("read %d bytes, want %d", n, test.read)
				}
				if test.want == "" {
					if err != nil {
						t.Errorf("error = %v, want none", err)
					}
				} else if e := fault(t, x, err); e.Kind != test.want {
					t.Errorf("error = %v, want kind %q", e, test.want)
				}
			})
		}
	}
}

func encoded(t *testing.T, body, encoding string) []byte {
	t.Helper()
	if encoding == "" {
		return []byte(body)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFaultOfACompleteResponse(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{") })
	x := NewExchange(t.Context(), Timeouts{})
	defer x.Close()
	if err := get(x, url); err != nil {
		t.Fatal(err)
	}
	var v any
	if e := fault(t, x, json.Unmarshal(x.Body(), &v)); e.Kind != Garbage {
		t.Errorf("fault = %v, want kind %q", e, Garbage)
	}
	if e := fault(t, x, io.EOF); e.Kind != Cut {
		t.Errorf("fault = %v, want kind %q", e, Cut)
	}
}

func TestFaultPassesTheCallersContext(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	x := NewExchange(ctx, Timeouts{})
	defer x.Close()
	if got := x.Fault(get(x, url)); got != context.DeadlineExceeded {
		t.Errorf("Fault = %v, want the context's own error", got)
	}
	if got := x.Fault(nil); got != nil {
		t.Errorf("Fault(nil) = %v, want nil", got)
	}
}

func TestFaultReturnsAnInnerError(t *testing.T) {
	x := NewExchange(t.Context(), Timeouts{})
	defer x.Close()
	want := &Error{Kind: Cut, Message: "x"}
	if got := x.Fault(errors.Join(errors.New("outer"), want)); got != want {
		t.Errorf("Fault = %v, want the error inside", got)
	}
}
