package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Limits of the response body that an [Exchange] reads, in bytes after
// decompression. A longer body or line is an error of kind [Garbage].
const (
	MaxBody = 256 << 20
	// MaxLine limits a line of a response: it must be shorter. A
	// response without a stream may be a single line.
	MaxLine = 32 << 20
	// MaxErrorBody limits the body of a response whose status is not 2xx. The
	// rest is not read.
	MaxErrorBody = 1 << 20
)

// Timeouts limit one attempt. A zero field means the default, which is long
// because a reasoning model may be silent for many minutes.
type Timeouts struct {
	Idle  time.Duration // without receiving a byte; 0 means 20 minutes
	Total time.Duration // from the request to the response's end; 0 means one hour
}

const (
	defaultIdle  = 20 * time.Minute
	defaultTotal = time.Hour
)

// Exchange is the HTTP side of one attempt, the same for every provider. It
// limits the attempt in time and size, records the response and describes
// failures. A provider creates one, sends its request with the
// [Exchange.Context] and the [Exchange.Client], and passes every error through
// [Exchange.Fault]. If it uses an SDK, it gives both to the SDK and turns the
// SDK's own retries off. The file example_test.go contains a complete provider.
//
// An Exchange is for one request; if a client sends several, it records the
// last response. Its methods are safe for concurrent use.
type Exchange struct {
	// Received is called with the size of each part of the response body that is
	// read; see [Request.Received]. Nil does nothing. Set it before the request.
	Received func(bytes int)

	parent     context.Context
	ctx        context.Context
	cancel     context.CancelCauseFunc
	idle       time.Duration
	maxBody    int
	maxLine    int
	idleTimer  *time.Timer
	totalTimer *time.Timer

	mu       sync.Mutex
	closed   bool
	response response
}

// response is what the server has sent so far.
type response struct {
	dialed    bool // the transport asked for a connection
	connected bool // and got one
	status    int
	header    http.Header
	body      bytes.Buffer
	line      int   // bytes since the last line feed
	err       error // what cut the body; nil if it ended normally
}

// NewExchange starts an attempt within ctx. The caller must Close it.
func NewExchange(ctx context.Context, t Timeouts) *Exchange {
	if t.Idle <= 0 {
		t.Idle = defaultIdle
	}
	if t.Total <= 0 {
		t.Total = defaultTotal
	}
	x := &Exchange{parent: ctx, idle: t.Idle, maxBody: MaxBody, maxLine: MaxLine}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.idleTimer = time.AfterFunc(t.Idle, func() {
		x.cancel(&Error{Kind: Silent, Message: fmt.Sprintf("the response made no progress for %v", t.Idle)})
	})
	x.totalTimer = time.AfterFunc(t.Total, func() {
		x.cancel(&Error{Kind: Silent, Message: fmt.Sprintf("the response was not complete after %v", t.Total)})
	})
	return x
}

// Close cancels the attempt if it still runs. The recorded response stays
// readable.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.idleTimer.Stop()
	x.totalTimer.Stop()
	x.cancel(nil)
}

// Context returns the attempt's context: the caller's, which the timeouts
// cancel too.
func (x *Exchange) Context() context.Context { return x.ctx }

// Client returns an HTTP client that shares the process's connections and
// records its response in x. It follows no redirect, because that would send
// the provider's key to another address.
func (x *Exchange) Client() *http.Client {
	return &http.Client{Transport: recorder{x}, CheckRedirect: refuseRedirect}
}

func refuseRedirect(req *http.Request, _ []*http.Request) error {
	to := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}
	return &Error{
		Kind:    Invalid,
		Message: OneLine("the server redirects to " + to.String() + "; hone does not follow redirects"),
		Hint:    "set the base URL to the final address",
	}
}

// Status returns the response's HTTP status; 0 before a response arrives.
func (x *Exchange) Status() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.response.status
}

// Header returns the response's header; nil before a response arrives.
func (x *Exchange) Header() http.Header {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.response.header
}

// Body returns the part of the response body that was read so far.
func (x *Exchange) Body() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return bytes.Clone(x.response.body.Bytes())
}

// Raw returns the response body if it is JSON. For a stream it returns an
// array of the events' data in order, each as it is if it is JSON, otherwise
// as a string, without the closing "[DONE]". For lines of JSON it returns an
// array of them. It is nil for any other body.
func (x *Exchange) Raw() json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	body := bytes.TrimSpace(x.response.body.Bytes())
	if json.Valid(body) {
		return bytes.Clone(body)
	}
	if lines := lineArray(body); lines != nil {
		return lines
	}
	return eventArray(body)
}

// recorder is the transport that records a request's response in x.
type recorder struct{ x *Exchange }

func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x := r.x
	x.recordRequest()
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { x.recordDial(false) },
		GotConn: func(httptrace.GotConnInfo) { x.recordDial(true) },
	})
	res, err := http.DefaultTransport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	x.recordResponse(res)
	res.Body = &recordedBody{x, res.Body}
	return res, nil
}

func (x *Exchange) recordRequest() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.response = response{}
	x.restartIdle()
}

// recordDial may be called several times: a transport that finds a pooled
// connection dead asks for another one.
func (x *Exchange) recordDial(connected bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.response.dialed, x.response.connected = true, connected
}

func (x *Exchange) recordResponse(res *http.Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.response.status, x.response.header = res.StatusCode, res.Header
	x.restartIdle()
}

// restartIdle restarts the idle timer; the caller holds the lock. It leaves a
// closed exchange's timer stopped, because a running timer would keep the
// exchange in memory.
func (x *Exchange) restartIdle() {
	if !x.closed {
		x.idleTimer.Reset(x.idle)
	}
}

var (
	errTooLarge = errors.New("the response is too large")
	errLongLine = errors.New("a line of the response is too long")
)

type recordedBody struct {
	x *Exchange
	io.ReadCloser
}

// Read reads no more than the limits allow, because a small response may be a
// large one after decompression. To the reader, an error's body ends at its
// limit: its beginning says what is wrong.
func (b *recordedBody) Read(p []byte) (int, error) {
	most := b.x.readable()
	if most == 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), most)])
	if n > 0 && b.x.Received != nil {
		b.x.Received(n)
	}
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	r := &b.x.response
	if n > 0 {
		b.x.restartIdle()
		r.add(p[:n])
	}
	switch {
	case r.body.Len() > b.x.maxBody:
		err = errTooLarge
	case !r.failed() && r.line >= b.x.maxLine:
		err = errLongLine
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// readable returns how many bytes of the body may be read next; 0 means none.
// They are enough to exceed the limits of a body and of a line.
func (x *Exchange) readable() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.response
	if r.failed() {
		return max(0, MaxErrorBody-r.body.Len())
	}
	return max(1, min(x.maxBody+1-r.body.Len(), x.maxLine-r.line))
}

// failed reports whether the status is not 2xx.
func (r *response) failed() bool { return r.status/100 != 2 }

// add records the next part of the body.
func (r *response) add(p []byte) {
	r.body.Write(p)
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		r.line, p = 0, p[i+1:]
	}
	r.line += len(p)
}

// lineArray returns the lines of a body as a JSON array; nil if one of them is not
// JSON, or if there are none.
func lineArray(body []byte) json.RawMessage {
	lines := bytes.FieldsFunc(body, func(r rune) bool { return r == '\n' })
	if len(lines) == 0 || slices.ContainsFunc(lines, func(line []byte) bool { return !json.Valid(line) }) {
		return nil
	}
	return slices.Concat([]byte{'['}, bytes.Join(lines, []byte{','}), []byte{']'})
}

// eventArray returns the data of a stream's events as a JSON array; nil if
// body contains no events. Line feeds join the data lines of one event, as
// the server-sent events standard says.
func eventArray(body []byte) json.RawMessage {
	out := []byte{'['}
	var data [][]byte
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		switch value, isData := bytes.CutPrefix(line, []byte("data:")); {
		case isData:
			data = append(data, bytes.TrimPrefix(value, []byte(" ")))
		case len(line) == 0:
			out, data = appendEvent(out, data), nil
		}
	}
	// Raw trims the body, and so removes the last event's blank line.
	out = appendEvent(out, data)
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

func appendEvent(out []byte, data [][]byte) []byte {
	event := bytes.Join(data, []byte("\n"))
	if len(event) == 0 || bytes.Equal(event, []byte("[DONE]")) {
		return out
	}
	if !json.Valid(event) {
		// Marshal cannot fail for a string.
		event, _ = json.Marshal(string(event))
	}
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(out, event...)
}
