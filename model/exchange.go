package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of the response body that an [Exchange] reads, in bytes after
// decompression and without what a [Framer] ignores. A longer body or line is an
// error of kind [Garbage].
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
// [Exchange.Context] and the [Exchange.Client], reads the response with
// [Exchange.Events], and passes every error through [Exchange.Fault]. If it uses an SDK, it gives both to the SDK and turns the
// SDK's own retries off. The file example_test.go contains a complete provider.
//
// An Exchange is for one request; if a client sends several, it records the
// last response. Its methods are safe for concurrent use.
type Exchange struct {
	// Received is called with the size of each part of the response body that is
	// read; see [Request.Received]. Nil does nothing. Set it before the request.
	Received func(bytes int)
	// Event is called with the data of each event of the response as it arrives, which is
	// valid during the call. The exchange then stores no events. Nil stores them. Set it
	// before the request; it must not call methods of the Exchange.
	Event func(data []byte)

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

type response struct {
	dialed    bool // the transport asked for a connection
	connected bool // and got one
	status    int
	header    http.Header
	frames    Framer
	events    []event
	size      int   // of the events, in bytes
	cut       bool  // it ended inside the last event
	done      bool  // it said [DONE], or is not a stream
	err       error // what cut the body; nil if it ended normally
}

type event struct {
	name string
	data []byte
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

// Body returns the part of the response body that was read so far, without its events.
func (x *Exchange) Body() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Concat(x.response.frames.body, x.response.frames.line)
}

// Raw returns the response body if it is JSON. For a stream, and for lines of JSON, it
// returns an array of the events' data in order, each as it is if it is JSON, otherwise
// as a string, without the closing "[DONE]". It is nil for any other body.
func (x *Exchange) Raw() json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.response
	if body := bytes.TrimSpace(r.frames.body); json.Valid(body) {
		return bytes.Clone(body)
	}
	out := []byte{'['}
	for _, e := range r.events {
		data := e.data
		if r.frames.plain && !json.Valid(data) {
			return nil
		}
		if !json.Valid(data) {
			// Marshal cannot fail for a string.
			data, _ = json.Marshal(string(data))
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, data...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

// Send sends a request and returns the body of a 2xx response. A body that is not nil is
// JSON.
func (x *Exchange) Send(method, url string, header http.Header, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(x.ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", "hone")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := x.Client().Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res.Body, nil
	}
	defer res.Body.Close()
	// Reading the body lets the exchange record it for its error message.
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return nil, err
	}
	return nil, errors.New(res.Status)
}

// Events reads the body of a response of this exchange, which may be wrapped, and yields
// the data of each event as a [Framer] finds it. It ends with an error if reading fails,
// or if an event is an error of the provider, no JSON or not UTF-8. It ends with "[DONE]", which it
// does not yield.
func (x *Exchange) Events(body io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		buffer := make([]byte, 32<<10)
		for next := 0; ; {
			_, err := body.Read(buffer)
			for {
				data, fault := x.event(next)
				if data == nil {
					break
				}
				if !yield(data, fault) || fault != nil {
					return
				}
				next++
			}
			switch {
			case err == io.EOF || x.Done():
				return
			case err != nil:
				yield(nil, err)
				return
			}
		}
	}
}

// It is nil if it has not arrived; the error is the fault that an event is.
func (x *Exchange) event(i int) (json.RawMessage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.response
	if i >= len(r.events) {
		return nil, nil
	}
	e := r.events[i]
	switch fault := r.eventFault(e); {
	case r.cut && i == len(r.events)-1:
		return e.data, &Error{Kind: Cut, Message: "the stream ended inside an event"}
	case fault != nil:
		return e.data, fault
	case r.frames.plain && !json.Valid(e.data):
		return e.data, r.textFault(e.data)
	case !utf8.Valid(e.data): // the decoder would silently replace its bytes
		return e.data, &Error{Kind: Garbage, Message: "an event is not UTF-8"}
	}
	return markHalves(e.data), nil
}

// Done reports whether the response is complete by itself: a stream said "[DONE]", or it is
// not a stream and has ended.
func (x *Exchange) Done() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.response.done
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
	if code := res.Header.Get("Content-Encoding"); code != "" && !strings.EqualFold(code, "identity") {
		_ = res.Body.Close()
		if res.StatusCode/100 == 2 {
			return nil, &Error{Kind: Garbage, Status: res.StatusCode, Message: OneLine("the response is compressed as " + code + ", which hone did not ask for")}
		}
		res.Body = http.NoBody // the status says what it is
	}
	res.Body = &recordedBody{x, res.Body}
	return res, nil
}

func (x *Exchange) recordRequest() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.response = response{}
	x.response.frames.Event = x.response.addEvent
	if x.Event != nil {
		x.response.frames.Event = func(_ string, data []byte) { x.Event(data) }
	}
	x.restartIdle()
}

// It may be called several times: a transport that finds a pooled connection dead asks for another one.
func (x *Exchange) recordDial(connected bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.response.dialed, x.response.connected = true, connected
}

func (x *Exchange) recordResponse(res *http.Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.response.status, x.response.header = res.StatusCode, res.Header
	x.response.frames.plain = x.response.failed()
	x.restartIdle()
}

// The caller holds the lock. A closed exchange's timer stays stopped, because a running timer would keep the exchange in
// memory.
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
		r.frames.Write(p[:n])
	}
	switch {
	case r.stored() > b.x.maxBody:
		err = errTooLarge
	case !r.failed() && r.frames.run >= b.x.maxLine:
		err = errLongLine
	case err == io.EOF && !r.failed():
		r.cut = r.frames.End()
		r.done = r.done || r.frames.plain
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// The bytes are enough to exceed the limits of a body and of a line; 0 means none.
func (x *Exchange) readable() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.response
	if r.failed() {
		return max(0, MaxErrorBody-r.stored())
	}
	return max(1, min(x.maxBody+1-r.stored(), x.maxLine-r.frames.run))
}

func (r *response) failed() bool { return r.status/100 != 2 }

func (r *response) stored() int {
	return r.size + len(r.frames.body) + len(r.frames.line) + len(r.frames.data)
}

func (r *response) addEvent(name string, data []byte) {
	switch {
	case r.done:
	case bytes.HasPrefix(data, []byte("[DONE]")):
		r.done = true
	default:
		r.events = append(r.events, event{name, bytes.Clone(data)})
		r.size += len(data)
	}
}
