package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"time"

	"hone/model"
)

// call is one forwarded request, with or without cost. Only its goroutine uses it.
type call struct {
	f      *Forward
	w      http.ResponseWriter
	r      *http.Request
	rc     *http.ResponseController
	x      *model.Exchange // with the provider; its idle time includes the agent's
	target target

	// Of a call that generates.
	commit  func(used *model.Usage, fault error) error // nil for a free request, and after it was called
	model   string
	allowed int64        // output tokens, for all answers together
	meter   *model.Meter // of the response
}

func (f *Forward) serve(w http.ResponseWriter, r *http.Request) {
	f.serving.RLock()
	defer f.serving.RUnlock()
	if f.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	c := &call{f: f, w: w, r: r, rc: http.NewResponseController(w), x: model.NewExchange(r.Context(), f.config.Timeouts)}
	defer c.x.Close()
	_ = c.rc.SetWriteDeadline(time.Now().Add(f.config.Timeouts.Idle))
	err := c.forward()
	switch {
	case err == nil:
		return
	case r.Context().Err() != nil: // the agent has left, or the forwarder is closed
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, errBudget) {
		f.mu.Lock()
		f.refused = err
		f.mu.Unlock()
	}
	_ = c.rc.SetWriteDeadline(time.Now().Add(headerTime))
	if c.x.Context().Err() == nil {
		_ = c.rc.SetReadDeadline(time.Now().Add(drainTime))
	}
	refusalFor(err).write(w, f.wire)
}

// An error means that the agent has no response yet.
func (c *call) forward() error {
	if !c.hasSecret() {
		return errNoSecret
	}
	var err error
	if c.target, err = c.f.wire.target(c.r); err != nil {
		return err
	}
	// Waiting before reading the body limits the number of bodies in memory.
	select {
	case c.f.slots <- struct{}{}:
		defer func() { <-c.f.slots }()
	case <-c.x.Context().Done():
	}
	// Close ends the contexts of calls one after the other: one that has ended already makes room.
	if err := cmp.Or(c.f.ctx.Err(), context.Cause(c.x.Context())); err != nil {
		return err
	}
	var body []byte
	if c.r.Method == http.MethodPost {
		if body, err = c.body(); err != nil {
			return err
		}
	}
	q := asked{body: body}
	switch {
	case c.target.kind != free:
		q, err = c.f.parseRequest(c.target, body)
	case c.r.Method == http.MethodPost:
		_, err = c.f.parseBody(body)
	}
	if err != nil {
		return err
	}
	if err := c.f.halted(); err != nil {
		return errors.Join(errBudget, err)
	}
	if c.target.kind == free {
		return c.relay(body)
	}
	granted, commit, err := c.f.config.Reserve(q.model, int64(len(body)), q.limit*q.answers)
	if err != nil {
		return errors.Join(errBudget, err)
	}
	limit := granted / q.answers
	if q.limit > 0 {
		limit = min(limit, q.limit)
	}
	c.commit, c.model, c.allowed = commit, q.model, limit*q.answers
	// This settles the reservation if the code below panics.
	defer func() { c.settle(nil, errors.New("the call was aborted")) }()
	if limit < 1 || limit <= q.minimum {
		why := fmt.Errorf("only %d output tokens are left, too few for the call", max(0, limit))
		c.settle(&model.Usage{}, why)
		return errors.Join(errBudget, why)
	}
	return c.relay(q.withLimit(limit))
}

func (c *call) hasSecret() bool {
	h := c.r.Header
	for _, key := range []string{h.Get("x-goog-api-key"), h.Get("x-api-key"), strings.TrimPrefix(h.Get("Authorization"), "Bearer "), c.r.URL.Query().Get("key")} {
		if subtle.ConstantTimeCompare([]byte(key), []byte(c.f.config.Secret)) == 1 {
			return true
		}
	}
	return c.f.config.Secret == ""
}

func (c *call) body() ([]byte, error) {
	if e := c.r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, errEncoded
	}
	most := c.f.config.maxBody
	if c.r.ContentLength > most {
		return nil, errBody
	}
	_ = c.rc.SetReadDeadline(time.Now().Add(c.f.config.Timeouts.Idle))
	body, err := io.ReadAll(io.LimitReader(c.r.Body, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		panic(http.ErrAbortHandler)
	case err != nil:
		return nil, malformedError("its body is incomplete")
	case int64(len(body)) > most:
		return nil, errBody
	}
	// If it expired later, the server would conclude that the agent has left.
	_ = c.rc.SetReadDeadline(time.Time{})
	return body, nil
}

// used is nil if it is unknown; only the first call has an effect. If the commit fails, no more calls are forwarded.
func (c *call) settle(used *model.Usage, fault error) {
	commit := c.commit
	if commit == nil {
		return
	}
	c.commit = nil
	if known := (*model.Error)(nil); used == nil && errors.As(fault, &known) && known.Rejected() {
		used = &model.Usage{}
	}
	if used != nil && used.Output > c.allowed {
		fault = &Overrun{Model: model.OneLine(c.model), Wrote: used.Output, Allowed: c.allowed}
		c.f.stop(fault)
	}
	if err := commit(used, fault); err != nil {
		c.f.stop(err)
	}
}

// An error means that the agent has no response yet.
func (c *call) relay(body []byte) error {
	if c.commit != nil {
		c.meter = model.NewMeter(c.f.config.Reader(c.target.path))
		c.x.Event = c.meter.Add
	}
	to := *c.f.base
	to.Path, to.RawQuery = to.Path+c.target.path, c.target.query
	out, err := http.NewRequestWithContext(c.x.Context(), c.r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	out.Header = c.header(body)
	proxy := httputil.ReverseProxy{
		// Only what header has copied from the agent's request is sent.
		Rewrite:       func(p *httputil.ProxyRequest) { p.Out = out },
		Transport:     c,
		ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, failed error) { err = failed },
		FlushInterval: -1,
		ErrorLog:      c.f.server.ErrorLog,
	}
	proxy.ServeHTTP(c.w, c.r)
	if err != nil {
		err = c.fault(err)
		c.settle(nil, err)
	}
	return err
}

// Only allowed headers of the agent are copied. An Idempotency-Key is not allowed: it would let the transport repeat a request
// without the ledger.
func (c *call) header(body []byte) http.Header {
	h := http.Header{"User-Agent": {"hone"}}
	if c.f.wire.name == Anthropic {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	for _, name := range []string{"Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta",
		"X-App", "X-Goog-Api-Client", "Originator", "Session_id", "Http-Referer", "X-Title"} {
		if v := c.r.Header.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	// An encoded response would hide keys and usage.
	h.Set("Accept-Encoding", "identity")
	if login := c.f.login; login != nil {
		password, _ := login.Password()
		r := http.Request{Header: h}
		r.SetBasicAuth(login.Username(), password)
	}
	if key := c.f.config.Key; key != "" {
		h.Set(c.f.wire.key, c.f.wire.scheme+key)
	}
	return h
}

// RoundTrip sends the request and waits for the response's header. The proxy
// would pass on informational responses and trailers as they are, with a key in
// them: it learns of neither, because the context is not the one that it
// observes, and the copy has no trailers.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	// A client's Do would follow redirects, with the key.
	got, err := c.x.Client().Transport.RoundTrip(req.WithContext(c.x.Context()))
	if err != nil {
		return nil, err
	}
	res := *got
	res.Trailer = nil
	encoding := res.Header.Get("Content-Encoding")
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		err = &model.Error{Kind: model.Invalid, Status: res.StatusCode,
			Message: "the provider redirects, but hone does not follow redirects: set the base URL to the final address"}
	case res.StatusCode < 200:
		err = &model.Error{Kind: model.Garbage, Message: "the provider switches protocols"}
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		err = &model.Error{Kind: model.Garbage, Message: "the provider encodes its response without being asked to"}
	}
	if err != nil {
		res.Body.Close()
		return nil, err
	}
	// These belong to this response's encoding, or to the provider's site.
	for _, name := range []string{"Content-Length", "Content-Encoding", "Set-Cookie", "Location", "Refresh", "Alt-Svc",
		"Www-Authenticate", "Strict-Transport-Security", "Report-To", "Nel"} {
		res.Header.Del(name)
	}
	for _, values := range res.Header {
		for i, v := range values {
			values[i] = c.f.redactor.text(v)
		}
	}
	res.Body = &answer{c: c, from: res.Body, gate: gate{r: c.f.redactor}}
	return &res, nil
}

// It has no key.
func (c *call) fault(err error) error {
	err = c.x.Fault(err)
	var known *model.Error
	if !errors.As(err, &known) {
		return &model.Error{Kind: model.Cut, Message: "the agent disconnected, or hone stopped"}
	}
	clean := *known
	clean.Message = c.f.redactor.text(clean.Message)
	return &clean
}

// answer is the body of a response on its way to the agent, without keys. It
// settles the call when the usage is final or the response ends, before the agent
// has the last piece, so that the agent's next call does not find the usage still
// reserved.
type answer struct {
	c    *call
	from io.ReadCloser // which the exchange limits and reads as well
	gate gate
	out  []byte // can be read
	err  error  // after out; nil until the response ends
}

// Read implements io.Reader.
func (b *answer) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.err == nil {
		n, err := b.from.Read(p)
		_ = b.c.rc.SetWriteDeadline(time.Now().Add(b.c.f.config.Timeouts.Idle))
		b.out = b.gate.filter(p[:n], err == io.EOF)
		switch {
		case err == io.EOF:
			b.err = err
			b.c.settleAt(nil)
		case err != nil:
			b.err = b.c.fault(err)
			b.c.settleAt(b.err)
		case b.c.commit != nil && b.c.meter.Final():
			if used, _ := b.c.meter.Usage(true); used != nil {
				b.c.settleAt(nil)
			}
		}
	}
	n := copy(p, b.out)
	if b.out = b.out[n:]; len(b.out) > 0 {
		return n, nil
	}
	return n, b.err
}

// Close implements io.Closer. If the response has not ended, the agent has left
// or does not read it.
func (b *answer) Close() error {
	if b.err == nil {
		b.c.settleAt(b.c.fault(errors.New("the agent does not read it")))
	}
	return b.from.Close()
}

// The fault is why the response ended early; nil if it did not.
func (c *call) settleAt(fault error) {
	if c.commit == nil {
		return
	}
	used, said := c.meter.Usage(c.x.Done())
	switch status := c.x.Status(); {
	case status >= 400:
		message, code := model.ErrorBody([]byte(c.f.redactor.text(string(c.x.Body()))))
		used, fault = nil, model.StatusError(status, c.x.Header(), message, code)
	case fault != nil && !c.meter.Final():
		used = nil
	case fault != nil:
	case said != nil:
		fault = c.fault(said)
	case used == nil:
		fault = &model.Error{Kind: model.Cut, Message: "the response ended without a usage that can be believed"}
	}
	c.settle(used, fault)
}
