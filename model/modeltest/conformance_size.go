package modeltest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"hone/model"
)

// inflated is the size of a hostile server's response after decompression.
const inflated = 200 << 20

// largeResponse is a response that is short until it is decompressed.
type largeResponse struct {
	begin string // of the response, which is followed by one long line
	kind  string // the content type
	code  int
	most  int64 // bytes that may be read after decompression
	want  model.Kind
}

func sizeTests() []conformanceTest {
	return []conformanceTest{
		{"rejected", largeResponse{`{"error":{"message":"`, "application/json", http.StatusBadRequest, model.MaxErrorBody, model.Invalid}.test},
		{"failed", largeResponse{"data: ", "text/event-stream", http.StatusInternalServerError, model.MaxErrorBody, model.Overloaded}.test},
		{"failed with spaces", largeResponse{" ", "text/plain", http.StatusBadGateway, model.MaxErrorBody, model.Overloaded}.test},
		{"stream", largeResponse{"data: ", "text/event-stream", http.StatusOK, model.MaxLine, model.Garbage}.test},
		{"second line of a stream", largeResponse{": begin\n\ndata: ", "text/event-stream", http.StatusOK, 9 + model.MaxLine, model.Garbage}.test},
		{"plain", largeResponse{`{"id":"`, "application/json", http.StatusOK, model.MaxLine, model.Garbage}.test},
	}
}

// test asks for the response once.
func (l largeResponse) test(t *testing.T, p Provider) {
	if testing.Short() && l.most > model.MaxErrorBody {
		t.Skip("SKIPPED: megabytes in one goroutine")
	}
	url := serveInflating(t, l.code, l.kind, l.begin)
	read := countReads(t)
	reply, err := p.New(url, key, model.Timeouts{}).Generate(t.Context(), question())
	e := wantFault(t, reply, err, l.want)
	if n := read.Load(); n == 0 || n > l.most {
		t.Errorf("%d bytes were read, want at most %d; the error is %v", n, l.most, e)
	}
}

// serveInflating starts a server whose responses are short until they are
// decompressed.
func serveInflating(t *testing.T, code int, kind, begin string) (url string) {
	t.Helper()
	line := []byte(strings.Repeat("a", 1<<20))
	if begin == " " {
		line = bytes.Repeat([]byte(" "), 1<<20)
	}
	// The parts of a gzip file are decompressed one after another.
	body := append(compressed(t, []byte(begin)), bytes.Repeat(compressed(t, line), inflated/len(line))...)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func compressed(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// countReads counts the bytes of response bodies that the test's process reads
// from now on, after decompression.
func countReads(t *testing.T) *atomic.Int64 {
	t.Helper()
	c := &countingTransport{next: http.DefaultTransport}
	http.DefaultTransport = c
	t.Cleanup(func() { http.DefaultTransport = c.next })
	return &c.n
}

type countingTransport struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (c *countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(req)
	if err == nil {
		res.Body = countedBody{res.Body, &c.n}
	}
	return res, err
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
