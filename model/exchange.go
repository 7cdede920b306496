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
	"sync"
	"time"
)

// MaxBody is the most bytes of an answer that an [Exchange] reads; a longer
// one is a fault of kind [Garbage].
const MaxBody = 256 << 20

// Timeouts bound one attempt. Zero fields mean the defaults, which are long
// because a reasoning model may be silent for many minutes.
type Timeouts struct {
	Idle  time.Duration // without a byte of answer; 0: 20 minutes
	Total time.Duration // from the request to the answer's end; 0: one hour
}

const (
	defaultIdle  = 20 * time.Minute
	defaultTotal = time.Hour
)

// Exchange is the HTTP side of one attempt, the same for every provider: it
// bounds the attempt in time and size, records what the server answered and
// words its faults. A provider makes one, gives its SDK the exchange's
// [Exchange.Context] and [Exchange.Client] with the SDK's own retries turned
// off, and passes every error through [Exchange.Fault].
//
// It is for one request; if a client sends several, the last one's answer
// counts. Its methods may be called from any goroutine.
type Exchange struct {
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	limit  int // of the body
	silent *time.Timer
	total  *time.Timer

	mu     sync.Mutex
	closed bool
	answer answer
}

// answer is what is known of the response, and how far it came.
type answer struct {
	dialed    bool // a connection was asked for
	connected bool // and had
	status    int
	header    http.Header
	body      bytes.Buffer
	err       error // what ended the body, if not its end
}

// NewExchange begins an attempt within ctx. The caller must Close it.
func NewExchange(ctx context.Context, t Timeouts) *Exchange {
	if t.Idle <= 0 {
		t.Idle = defaultIdle
	}
	if t.Total <= 0 {
		t.Total = defaultTotal
	}
	x := &Exchange{parent: ctx, idle: t.Idle, limit: MaxBody}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.silent = time.AfterFunc(t.Idle, func() {
		x.cancel(&Error{Kind: Silent, Message: fmt.Sprintf("the server sent nothing for %v", t.Idle)})
	})
	x.total = time.AfterFunc(t.Total, func() {
		x.cancel(&Error{Kind: Silent, Message: fmt.Sprintf("the answer was not complete after %v", t.Total)})
	})
	return x
}

// Close ends the attempt and whatever still runs of it. What was recorded
// stays readable.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.silent.Stop()
	x.total.Stop()
	x.cancel(nil)
}

// Context is the attempt's own: the caller's, ended by the time-outs too.
func (x *Exchange) Context() context.Context { return x.ctx }

// Client is an HTTP client that shares the process's connections and records
// its answer in x. It follows no redirect, since a provider's key header
// would be sent along to wherever that leads.
func (x *Exchange) Client() *http.Client {
	return &http.Client{Transport: recorder{x}, CheckRedirect: refuseRedirect}
}

func refuseRedirect(req *http.Request, _ []*http.Request) error {
	to := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}
	return &Error{
		Kind:    Invalid,
		Message: OneLine("the server redirects to " + to.String() + ", which is not followed"),
		Hint:    "set the base URL to the final address",
	}
}

// Status is the answer's HTTP status; 0 before there is one.
func (x *Exchange) Status() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answer.status
}

// Header is the answer's header; nil before there is one.
func (x *Exchange) Header() http.Header {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answer.header
}

// Body is what was read of the answer so far.
func (x *Exchange) Body() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return bytes.Clone(x.answer.body.Bytes())
}

// Raw is the answer's body if it is JSON, or an array of its server-sent
// events' data in order: each as it is where it is JSON, else as a string.
// The closing "[DONE]" is left out. It is nil where there is neither.
func (x *Exchange) Raw() json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	body := bytes.TrimSpace(x.answer.body.Bytes())
	if json.Valid(body) {
		return bytes.Clone(body)
	}
	return eventArray(body)
}

// recorder is the transport of an exchange.
type recorder struct{ x *Exchange }

func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x := r.x
	x.begin()
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { x.connection(false) },
		GotConn: func(httptrace.GotConnInfo) { x.connection(true) },
	})
	res, err := http.DefaultTransport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	x.respond(res)
	res.Body = &recordedBody{x, res.Body}
	return res, nil
}

func (x *Exchange) begin() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = answer{}
	x.wake()
}

// connection notes that a connection was asked for, or had. A transport that
// finds a kept one dead asks again.
func (x *Exchange) connection(had bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer.dialed, x.answer.connected = true, had
}

func (x *Exchange) respond(res *http.Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer.status, x.answer.header = res.StatusCode, res.Header
	x.wake()
}

// wake starts the idle time afresh; the caller holds the lock. A closed
// exchange sleeps on, or its timer would hold it in memory.
func (x *Exchange) wake() {
	if !x.closed {
		x.silent.Reset(x.idle)
	}
}

var errTooLarge = errors.New("the answer is too large")

type recordedBody struct {
	x *Exchange
	io.ReadCloser
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	a := &b.x.answer
	if n > 0 {
		b.x.wake()
		a.body.Write(p[:n])
	}
	if a.body.Len() > b.x.limit {
		err = errTooLarge
	}
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

// eventArray is the data of a stream's events as a JSON array; nil if body
// holds none. As everywhere in server-sent events an event's data lines are
// joined by line feeds.
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
	// Cutting the white space off the body took the last blank line with it.
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
		// A string of any bytes can be encoded.
		event, _ = json.Marshal(string(event))
	}
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(out, event...)
}
