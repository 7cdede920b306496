package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Endpoint is a model on a server that is asked with JSON over HTTP. Each provider's package
// gives its own defaults to what is empty. The environment is not read.
type Endpoint struct {
	// Name is the model's name on the server, such as "gemini-3-pro-preview". It must not be empty.
	Name string
	// Key is the user's key; if empty, none is sent, which suits local servers.
	Key string
	// BaseURL is the server's URL, such as http://localhost:11434/v1; empty means the
	// provider's own server.
	BaseURL string
	// Wire is the protocol of a provider that has several; empty means the one that suits the
	// server.
	Wire string
	// KeyVariable is the environment variable that hints tell the user to set; empty means
	// the provider's usual one.
	KeyVariable string
	// Timeouts limit each attempt; zero fields mean the defaults.
	Timeouts Timeouts
	// Header has what the provider's package sends with each request, such as the key. Empty
	// values are not sent.
	Header http.Header
}

// Reader reads one response of a wire.
type Reader interface {
	// Add reads the data of the next event, or a response that is not a stream. Settled means
	// that the reason and the usage have arrived: an error that follows changes nothing. The
	// error is [io.EOF] if no event follows.
	Add(data []byte) (settled bool, err error)
	// Reply returns the reply at the response's end, or an error if it is not complete. Done
	// means that the response is complete by itself, so that it needs no reason.
	Reply(done bool) (Reply, error)
	// Usage returns what the events until now report as used; nil if nothing that can be counts.
	Usage() *Usage
}

// Generate makes one attempt: it posts the body, as JSON, to a path below the base URL, and
// reads the response. See [Model].
func (e Endpoint) Generate(ctx context.Context, req Request, path string, body any, r Reader) (Reply, error) {
	x := NewExchange(ctx, e.Timeouts)
	defer x.Close()
	x.Received = req.Received
	reply, err := e.ask(x, path, body, r)
	if err != nil {
		return Reply{}, e.fault(x, err, r.Usage())
	}
	reply.Raw = x.Raw()
	return reply.Complete(req), nil
}

func (e Endpoint) ask(x *Exchange, path string, body any, r Reader) (Reply, error) {
	sent, err := EncodeJSON(body)
	if err != nil {
		return Reply{}, &Error{Kind: Invalid, Message: OneLine("encode the request: " + err.Error())}
	}
	res, err := e.send(x, http.MethodPost, path, sent)
	if err != nil {
		return Reply{}, err
	}
	defer res.Close()
	settled := false
	for data, err := range x.Events(res) {
		if err == nil {
			settled, err = r.Add(data)
		}
		if err == io.EOF || err != nil && settled {
			break
		}
		if err != nil {
			return Reply{}, err
		}
	}
	return r.Reply(x.Done())
}

// Probe checks the server and the key by requesting a resource that costs no tokens.
func (e Endpoint) Probe(ctx context.Context, path string) error {
	x := NewExchange(ctx, e.Timeouts)
	defer x.Close()
	body, err := e.send(x, http.MethodGet, path, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		err = errors.Join(err, body.Close())
	}
	if err == nil && x.Raw() == nil && len(x.Body()) > 0 { // such as the page of another server
		err = errors.New("the body is not JSON")
	}
	return e.fault(x, err, nil)
}

// The response is 2xx.
func (e Endpoint) send(x *Exchange, method, path string, body []byte) (io.ReadCloser, error) {
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &Error{
			Kind:    Invalid,
			Message: "the base URL is not an http or https URL",
			Hint:    "write the complete URL, such as http://localhost:11434/v1",
		}
	}
	if e.Name == "" {
		return nil, &Error{Kind: Invalid, Message: "the model name is empty"}
	}
	path, query, _ := strings.Cut(path, "?")
	if u = u.JoinPath(path); query != "" {
		u.RawQuery = query
	}
	header := http.Header{}
	for name, values := range e.Header {
		if values[0] != "" {
			header[name] = values
		}
	}
	return x.Send(method, u.String(), header, body)
}

func (e Endpoint) fault(x *Exchange, err error, used *Usage) error {
	err = x.Fault(err)
	var known *Error
	if !errors.As(err, &known) {
		return err
	}
	fault := *known
	if fault.Usage == nil {
		fault.Usage = used
	}
	switch u, err := url.Parse(e.BaseURL); {
	case fault.Kind == Auth:
		fault.Hint = "set " + e.KeyVariable + " to a key for this model"
	case fault.Kind == Unreachable && err == nil && fault.Hint == "":
		fault.Hint = "make sure that a server listens at " + u.Host
	}
	return &fault
}

// EncodeJSON returns a value as JSON without HTML escapes, so that a provider's own bytes are
// sent back unchanged.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
