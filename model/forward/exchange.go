package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"

	"hone/model"
)

// run sends the body and relays the response. An error means that the agent has
// no response yet.
func (c *call) run(body []byte) error {
	out, err := c.request(body)
	if err != nil {
		return c.fault(err)
	}
	proxy := httputil.ReverseProxy{
		// Only what call.request has copied from the agent's request is sent.
		Rewrite:        func(p *httputil.ProxyRequest) { p.Out = out },
		Transport:      c,
		ModifyResponse: c.modify,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, failed error) { err = failed },
		FlushInterval:  -1,
		ErrorLog:       c.f.server.ErrorLog,
	}
	proxy.ServeHTTP(c.w, c.r)
	if err != nil {
		c.commitUsage(nil, err)
	}
	return err
}

// commitUsage commits the usage; only its first call has an effect. If the commit
// fails, no more calls are forwarded.
func (c *call) commitUsage(used *model.Usage, fault error) {
	if c.reserved == nil || c.settled {
		return
	}
	c.settled = true
	var known *model.Error
	switch isKnown := errors.As(fault, &known); {
	case isKnown && used != nil:
		known.Usage = used
	case isKnown && known.Rejected():
		used = &model.Usage{}
	}
	if used != nil && used.Output > c.allowed {
		over := &Overrun{Model: model.OneLine(c.model), Wrote: used.Output, Allowed: c.allowed}
		c.f.stop(over)
		fault = over
	}
	c.f.recordUsage(used)
	if c.reserved.Commit == nil {
		return
	}
	if err := c.reserved.Commit(used, fault); err != nil {
		c.f.stop(err)
	}
}

// request returns the request to the provider.
func (c *call) request(body []byte) (*http.Request, error) {
	u := *c.f.base
	u.Path += c.target.path
	u.RawQuery = c.target.query
	var content io.Reader
	if c.r.Method == http.MethodPost {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.ctx, c.r.Method, u.String(), content)
	if err == nil {
		c.header(req)
	}
	return req, err
}

// RoundTrip sends the request and waits for the response's header. The proxy
// would pass on informational responses and trailers as they are, with a key in
// them: it learns of neither, because the context is not the one that it
// observes, and the copy has no trailers.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(c.ctx, &httptrace.ClientTrace{
		// A transport that finds a pooled connection dead asks for another one.
		GetConn: func(string) { c.connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { c.connected.Store(true) },
	})
	// A client's Do would follow redirects, with the key.
	res, err := c.f.transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, c.fault(err)
	}
	if err := c.restartIdle(); err != nil {
		res.Body.Close()
		return nil, c.fault(err)
	}
	bare := *res
	bare.Trailer = nil
	return &bare, nil
}

// header copies the allowed headers of the agent and adds the key. An
// Idempotency-Key is not allowed: it would let the transport repeat a request
// without the ledger.
func (c *call) header(req *http.Request) {
	for _, name := range []string{"Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta",
		"X-App", "X-Goog-Api-Client", "Originator", "Session_id", "Http-Referer", "X-Title"} {
		if v := c.r.Header.Values(name); len(v) > 0 {
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
	if login := c.f.login; login != nil {
		password, _ := login.Password()
		req.SetBasicAuth(login.Username(), password)
	}
	c.authorize(req)
}

func (c *call) authorize(req *http.Request) {
	key := c.f.config.Key
	switch c.f.config.Wire {
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
func (c *call) fault(err error) error {
	var known *model.Error
	switch cause := context.Cause(c.ctx); {
	case errors.As(cause, &known) && c.connected.Load():
		return &model.Error{Kind: known.Kind, Message: known.Message}
	case !c.connected.Load():
		return &model.Error{Kind: model.Unreachable, Message: c.errorText(err)}
	case cause != nil:
		return &model.Error{Kind: model.Cut, Message: "the agent disconnected, or hone stopped"}
	}
	return &model.Error{Kind: model.Cut, Message: "the response ended early: " + c.errorText(err)}
}

// errorText returns an error's text without an address or a key.
func (c *call) errorText(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return model.OneLine(c.f.redactor.text(err.Error()))
}

// checkResponse returns an error for a response that cannot be relayed.
func (c *call) checkResponse(res *http.Response) error {
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
func (c *call) modify(res *http.Response) error {
	if err := c.checkResponse(res); err != nil {
		return err
	}
	// These belong to this response's encoding, or to the provider's site.
	for _, name := range []string{"Content-Length", "Content-Encoding", "Set-Cookie", "Location", "Refresh", "Alt-Svc",
		"Www-Authenticate", "Strict-Transport-Security", "Report-To", "Nel"} {
		res.Header.Del(name)
	}
	c.f.redactor.header(res.Header)
	res.Body = &relay{
		c: c, status: res.StatusCode, header: res.Header, from: res.Body, gate: gate{r: c.f.redactor},
		meter: newMeter(c.f.config.Meter(c.target.path), c.reserved == nil || res.StatusCode >= 400),
	}
	return nil
}
