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

// exchange is the provider's side of a call.
type exchange struct {
	*call
	target      target
	reservation *openReservation // nil for a free request

	connected atomic.Bool
	meter     *meter // nil if nothing is generated
	failure   []byte // the beginning of an error's body, without keys
}

// maxFailure limits the part of an error's body that is stored, in bytes.
const maxFailure = 64 << 10

// run sends the body and relays the response. An error means that the response
// is missing or incomplete.
func (x *exchange) run(body []byte) error {
	res, err := x.send(body)
	if err != nil {
		x.settle(nil, err)
		return err
	}
	defer res.Body.Close()
	if err := x.checkResponse(res); err != nil {
		x.settle(nil, err)
		return err
	}
	if x.reservation != nil && res.StatusCode < 300 {
		kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
		x.meter = &meter{read: x.f.config.Meter(x.target.path), events: err == nil && kind == "text/event-stream"}
	}
	err = x.relay(res)
	x.settle(x.outcome(res, err))
	return err
}

func (x *exchange) settle(used *model.Usage, fault error) {
	if x.reservation == nil {
		return
	}
	var known *model.Error
	if used == nil && errors.As(fault, &known) && known.Rejected() {
		used = &model.Usage{}
	} else if used != nil && known != nil {
		known.Usage = used
	}
	x.reservation.settle(used, fault)
}

// outcome returns the usage and the failure of a response.
func (x *exchange) outcome(res *http.Response, relayed error) (*model.Usage, error) {
	switch {
	case res.StatusCode >= 400 && x.reservation != nil:
		message, code := model.ErrorBody(x.failure)
		return nil, model.StatusError(res.StatusCode, res.Header, message, code)
	case x.meter == nil:
		return nil, relayed
	}
	used := x.meter.result(relayed == nil)
	fault := relayed
	if message := x.meter.known.Fault; fault == nil && message != "" {
		fault = &model.Error{Kind: model.Overloaded, Message: x.f.redactor.text(message), Usage: used}
	} else if fault == nil && used == nil {
		fault = &model.Error{Kind: model.Cut, Message: x.meter.lack()}
	}
	return used, fault
}

// send sends the request and waits for the response's header.
func (x *exchange) send(body []byte) (*http.Response, error) {
	u := *x.f.base
	u.Path += x.target.path
	u.RawQuery = x.target.query
	ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		// A transport that finds a pooled connection dead asks for another one.
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
	// A client's Do would follow redirects, with the key.
	res, err := x.f.transport.RoundTrip(req)
	if err != nil {
		return nil, x.fault(err)
	}
	if err := x.restartIdle(); err != nil {
		res.Body.Close()
		return nil, x.fault(err)
	}
	return res, nil
}

// header copies the allowed headers of the agent and adds the key. An
// Idempotency-Key is not allowed: it would let the transport repeat a request
// without the ledger.
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
	// An encoded response would hide keys and usage.
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

// fault returns the error for a missing or incomplete response.
func (x *exchange) fault(err error) error {
	var known *model.Error
	switch cause := context.Cause(x.ctx); {
	case errors.As(cause, &known) && x.connected.Load():
		return &model.Error{Kind: known.Kind, Message: known.Message}
	case !x.connected.Load():
		return &model.Error{Kind: model.Unreachable, Message: x.errorText(err)}
	case cause != nil:
		return &model.Error{Kind: model.Cut, Message: "the agent disconnected, or hone stopped"}
	}
	return &model.Error{Kind: model.Cut, Message: "the response ended early: " + x.errorText(err)}
}

// errorText returns an error's text without an address or a key.
func (x *exchange) errorText(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return model.OneLine(x.f.redactor.text(err.Error()))
}

// checkResponse returns an error for a response that cannot be relayed.
func (x *exchange) checkResponse(res *http.Response) error {
	e := res.Header.Get("Content-Encoding")
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &model.Error{Kind: model.Invalid, Status: res.StatusCode,
			Message: "the provider redirects, but hone does not follow redirects: set the base URL to the final address"}
	case res.StatusCode < 200:
		return &model.Error{Kind: model.Garbage, Message: "the provider switches protocols"}
	case e != "" && !strings.EqualFold(e, "identity"):
		return &model.Error{Kind: model.Garbage, Message: "the provider encodes its response without being asked to"}
	case res.Uncompressed:
		return &model.Error{Kind: model.Garbage, Message: "the transport decodes responses"}
	}
	return nil
}

// relay sends the response to the agent as it arrives; of an error, only the
// beginning.
func (x *exchange) relay(res *http.Response) error {
	copyHeader(x.w.Header(), res.Header)
	x.f.redactor.header(x.w.Header())
	g := &gate{r: x.f.redactor}
	buffer := make([]byte, 32<<10)
	content := io.Reader(res.Body)
	if res.StatusCode >= 400 {
		content = io.LimitReader(content, model.MaxErrorBody)
	}
	x.started = true
	x.w.WriteHeader(res.StatusCode)
	for sum := 0; ; {
		n, err := content.Read(buffer)
		if sum += n; sum > model.MaxBody {
			return &model.Error{Kind: model.Garbage, Message: "the response is too large"}
		}
		if stop := x.restartIdle(); stop != nil {
			return x.fault(stop)
		}
		x.observe(buffer[:n])
		out := g.filter(buffer[:n])
		if err == io.EOF {
			out = append(out, g.flush()...)
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

// observe reads the usage and settles it as soon as it is final, so that the
// agent's next call does not find it still reserved.
func (x *exchange) observe(p []byte) {
	if x.meter == nil {
		return
	}
	x.meter.feed(p)
	if used := x.meter.result(false); used != nil {
		x.settle(x.finalUsage(used))
	}
}

// finish settles the usage at the end of the response if it is known.
func (x *exchange) finish() {
	if x.meter == nil {
		return
	}
	x.meter.end()
	if used := x.meter.result(true); used != nil {
		x.settle(x.finalUsage(used))
	}
}

// finalUsage returns a complete response's usage, and the error inside it if
// there is one.
func (x *exchange) finalUsage(used *model.Usage) (*model.Usage, error) {
	if message := x.meter.known.Fault; message != "" {
		return used, &model.Error{Kind: model.Overloaded, Message: x.f.redactor.text(message), Usage: used}
	}
	return used, nil
}

// write sends p to the agent without buffering.
func (x *exchange) write(p []byte, status int) error {
	if status >= 400 {
		x.failure = append(x.failure, p[:min(len(p), maxFailure-len(x.failure))]...)
	}
	if len(p) == 0 {
		return nil
	}
	if _, err := x.w.Write(p); err != nil {
		return err
	}
	return x.rc.Flush()
}

// copyHeader copies a response's header, except what belongs to its connection
// or to the provider's site.
func copyHeader(to, from http.Header) {
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
