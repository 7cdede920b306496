package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"hone/model"
)

// exchange is a call's time with the provider.
type exchange struct {
	*call
	target   target
	reserved *reserved // nil where it is free

	connected atomic.Bool
	meter     *meter // nil where nothing is generated
	failure   []byte // the begin of an error's body, without keys
}

// mostFailure is the most of an error's body that is looked at.
const mostFailure = 64 << 10

// run sends the body and passes the answer on. The error is why there is
// none, or why it is not whole.
func (x *exchange) run(body []byte) error {
	res, err := x.send(body)
	if err != nil {
		x.settle(nil, err)
		return err
	}
	defer res.Body.Close()
	if err := x.acceptable(res); err != nil {
		x.settle(nil, err)
		return err
	}
	if x.reserved != nil && res.StatusCode < 300 {
		kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
		x.meter = newMeter(x.target.kind, err == nil && kind == "text/event-stream")
	}
	err = x.relay(res)
	x.settle(x.used(res, err))
	return err
}

func (x *exchange) settle(used *model.Usage, fault error) {
	if x.reserved == nil {
		return
	}
	var known *model.Error
	if used == nil && errors.As(fault, &known) && known.Rejected() {
		used = &model.Usage{}
	} else if used != nil && known != nil {
		known.Usage = used
	}
	x.reserved.settle(used, fault)
}

// used is what an answer took, and what was wrong with it.
func (x *exchange) used(res *http.Response, relayed error) (*model.Usage, error) {
	switch {
	case res.StatusCode >= 400 && x.reserved != nil:
		message, code := model.ErrorBody(x.failure)
		return nil, model.StatusError(res.StatusCode, res.Header, message, code)
	case x.meter == nil:
		return nil, relayed
	}
	used := x.meter.final(relayed == nil)
	fault := relayed
	if said := x.meter.known.fault; fault == nil && said != "" {
		fault = &model.Error{Kind: model.Overloaded, Message: x.f.key.text(said), Usage: used}
	} else if fault == nil && used == nil {
		fault = &model.Error{Kind: model.Cut, Message: "the answer ended without saying what was used"}
	}
	return used, fault
}

// send makes the request and waits for the answer's header.
func (x *exchange) send(body []byte) (*http.Response, error) {
	u := *x.f.base
	u.Path += x.target.path
	u.RawQuery = x.target.query
	ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		// A transport that finds a kept connection dead asks again.
		GetConn: func(string) { x.connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	})
	var content io.Reader
	if x.r.Method == http.MethodPost {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, x.r.Method, u.String(), content)
	if err != nil {
		return nil, x.fault(err)
	}
	x.header(req)
	// Not a client's Do: it would follow redirects, with the key.
	res, err := x.f.transport.RoundTrip(req)
	if err != nil {
		return nil, x.fault(err)
	}
	if err := x.alive(); err != nil {
		res.Body.Close()
		return nil, x.fault(err)
	}
	return res, nil
}

// header takes over what passes of the agent's header and adds the key. There
// is no Idempotency-Key: with it the transport would send a request again,
// past the ledger.
func (x *exchange) header(req *http.Request) {
	for _, name := range []string{"Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta",
		"X-App", "X-Goog-Api-Client", "Originator", "Session_id", "Http-Referer", "X-Title"} {
		if v := x.r.Header.Values(name); len(v) > 0 {
			req.Header[name] = v
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "hone")
	}
	if req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	// In an encoded answer neither keys nor usage could be found.
	req.Header.Set("Accept-Encoding", "identity")
	if login := x.f.login; login != nil {
		password, _ := login.Password()
		req.SetBasicAuth(login.Username(), password)
	}
	x.authorize(req)
}

func (x *exchange) authorize(req *http.Request) {
	key := x.f.config.Key
	switch x.f.config.Wire {
	case Anthropic:
		if req.Header.Get("Anthropic-Version") == "" {
			req.Header.Set("Anthropic-Version", "2023-06-01")
		}
		if key != "" {
			req.Header.Set("X-Api-Key", key)
		}
	case Gemini:
		if key != "" {
			req.Header.Set("X-Goog-Api-Key", key)
		}
	default:
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
	}
}

// fault words why there is no answer, or no more of it.
func (x *exchange) fault(err error) error {
	var known *model.Error
	switch cause := context.Cause(x.ctx); {
	case errors.As(cause, &known) && x.connected.Load():
		return &model.Error{Kind: known.Kind, Message: known.Message}
	case !x.connected.Load():
		return &model.Error{Kind: model.Unreachable, Message: x.words(err)}
	case cause != nil:
		return &model.Error{Kind: model.Cut, Message: "the agent went away, or hone ended"}
	}
	return &model.Error{Kind: model.Cut, Message: "the answer ended early: " + x.words(err)}
}

// words is an error's text without an address or a key.
func (x *exchange) words(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return model.OneLine(x.f.key.text(err.Error()))
}

// acceptable refuses answers that cannot be passed on.
func (x *exchange) acceptable(res *http.Response) error {
	e := res.Header.Get("Content-Encoding")
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &model.Error{Kind: model.Invalid, Status: res.StatusCode,
			Message: "the provider redirects, which is not followed: set the base URL to the final address"}
	case res.StatusCode < 200:
		return &model.Error{Kind: model.Garbage, Message: "the provider changes the protocol"}
	case e != "" && !strings.EqualFold(e, "identity"):
		return &model.Error{Kind: model.Garbage, Message: "the provider encodes its answer, which it was not asked for"}
	case res.Uncompressed:
		return &model.Error{Kind: model.Garbage, Message: "the transport decodes answers by itself"}
	}
	return nil
}

// relay passes the answer on as it comes.
func (x *exchange) relay(res *http.Response) error {
	answered(x.w.Header(), res.Header)
	x.f.key.header(x.w.Header())
	g := &gate{r: x.f.key}
	buffer := make([]byte, 32<<10)
	x.begun = true
	x.w.WriteHeader(res.StatusCode)
	for sum := 0; ; {
		n, err := res.Body.Read(buffer)
		if sum += n; sum > model.MaxBody {
			return &model.Error{Kind: model.Garbage, Message: "the answer is too large to be one"}
		}
		if stop := x.alive(); stop != nil {
			return x.fault(stop)
		}
		x.observe(buffer[:n])
		out := g.pass(buffer[:n])
		if err == io.EOF {
			out = append(out, g.rest()...)
			x.finish()
		}
		if err := x.write(out, res.StatusCode); err != nil {
			return x.fault(err)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return x.fault(err)
		}
	}
}

// observe reads what is used. As soon as that is final it is settled, before
// the agent can make another call for which it would still be reserved.
func (x *exchange) observe(p []byte) {
	if x.meter == nil {
		return
	}
	x.meter.feed(p)
	if used := x.meter.final(false); used != nil {
		x.settle(x.ended(used))
	}
}

// finish takes the end of the answer.
func (x *exchange) finish() {
	if x.meter == nil {
		return
	}
	x.meter.end()
	if used := x.meter.final(true); used != nil {
		x.settle(x.ended(used))
	}
}

// ended is a complete answer's usage, and its fault if it tells of one.
func (x *exchange) ended(used *model.Usage) (*model.Usage, error) {
	if said := x.meter.known.fault; said != "" {
		return used, &model.Error{Kind: model.Overloaded, Message: x.f.key.text(said), Usage: used}
	}
	return used, nil
}

// write gives the agent what came, at once.
func (x *exchange) write(p []byte, status int) error {
	if status >= 400 {
		x.failure = append(x.failure, p[:min(len(p), mostFailure-len(x.failure))]...)
	}
	if len(p) == 0 {
		return nil
	}
	if _, err := x.w.Write(p); err != nil {
		return err
	}
	return x.rc.Flush()
}

// answered takes over an answer's header, but for what belongs to its
// connection or to the provider's site.
func answered(to, from http.Header) {
	drop := map[string]bool{
		"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Connection": true, "Te": true,
		"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Content-Length": true, "Content-Encoding": true,
		"Set-Cookie": true, "Location": true, "Refresh": true, "Alt-Svc": true, "Www-Authenticate": true,
		"Strict-Transport-Security": true, "Report-To": true, "Nel": true,
	}
	for _, list := range from.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			drop[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	for name, values := range from {
		if !drop[name] {
			to[name] = values
		}
	}
}
