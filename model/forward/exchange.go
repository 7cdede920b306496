package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
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
	connected   atomic.Bool
}

// run sends the body and relays the response. An error means that the agent has
// no response yet.
func (x *exchange) run(body []byte) error {
	out, err := x.request(body)
	if err != nil {
		return x.fault(err)
	}
	proxy := httputil.ReverseProxy{
		// Nothing of the agent's request is sent that request has not copied.
		Rewrite:        func(p *httputil.ProxyRequest) { p.Out = out },
		Transport:      x,
		ModifyResponse: x.modify,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, failed error) { err = failed },
		FlushInterval:  -1,
		ErrorLog:       x.f.server.ErrorLog,
	}
	proxy.ServeHTTP(x.w, x.r)
	if err != nil {
		x.settle(nil, err)
	}
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

// request returns the request to the provider.
func (x *exchange) request(body []byte) (*http.Request, error) {
	u := *x.f.base
	u.Path += x.target.path
	u.RawQuery = x.target.query
	var content io.Reader
	if x.r.Method == http.MethodPost {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(x.ctx, x.r.Method, u.String(), content)
	if err == nil {
		x.header(req)
	}
	return req, err
}

// RoundTrip sends the request and waits for the response's header. The proxy
// would pass on informational responses and trailers as they are, with a key in
// them: it learns of neither, because the context is not the one that it
// observes, and the copy has no trailers.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		// A transport that finds a pooled connection dead asks for another one.
		GetConn: func(string) { x.connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	})
	// A client's Do would follow redirects, with the key.
	res, err := x.f.transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, x.fault(err)
	}
	if err := x.restartIdle(); err != nil {
		res.Body.Close()
		return nil, x.fault(err)
	}
	bare := *res
	bare.Trailer = nil
	return &bare, nil
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

// modify prepares a response for the agent. An error means that it cannot be
// relayed.
func (x *exchange) modify(res *http.Response) error {
	if err := x.checkResponse(res); err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	// These belong to this response's encoding, or to the provider's site.
	for _, name := range []string{"Content-Length", "Content-Encoding", "Set-Cookie", "Location", "Refresh", "Alt-Svc",
		"Www-Authenticate", "Strict-Transport-Security", "Report-To", "Nel"} {
		res.Header.Del(name)
	}
	x.f.redactor.header(res.Header)
	res.Body = &relay{
		x: x, status: res.StatusCode, header: res.Header, from: res.Body, gate: gate{r: x.f.redactor},
		meter: meter{read: x.f.config.Meter(x.target.path), events: err == nil && kind == "text/event-stream",
			off: x.reservation == nil || res.StatusCode >= 400},
	}
	return nil
}
