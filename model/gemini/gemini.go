// Package gemini speaks the Gemini API's streamGenerateContent.
//
// It sends and reads the wire itself. The official SDK serves its tests as
// the second opinion (the same requests, the same readings), not its code:
// that SDK takes a key, a base URL and a back end from the environment, logs
// to stderr, prints its configuration with the key in it into errors, panics
// on JSON of an unexpected shape, and reads arguments of calls as floats.
//
// Thought signatures become opaque parts of the wire "gemini", directly
// before the part that they sign, and go back onto it. Thought summaries are
// not visible text. Vertex AI is not spoken.
package gemini

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hone/model"
)

// Wire is the name of the opaque parts that this package makes and takes.
const Wire = "gemini"

const (
	defaultBase     = "https://generativelanguage.googleapis.com"
	defaultVariable = "GEMINI_API_KEY"
	version         = "/v1beta"
)

// Config says which model is asked, where and with which key. Nothing is
// taken from the environment.
type Config struct {
	// Name is the model's, such as "gemini-3-pro-preview", or a resource's
	// full name, such as "tunedModels/mine".
	Name string
	// Key goes in the x-goog-api-key header; empty sends none.
	Key string
	// BaseURL is the server's, with or without the API's version; empty is
	// Google's own.
	BaseURL string
	// KeyVariable is the environment variable that hints name; empty is
	// GEMINI_API_KEY.
	KeyVariable string
	// Timeouts bound an attempt; zero fields mean their defaults.
	Timeouts model.Timeouts
}

// Model is one Gemini model. It is safe for concurrent use.
type Model struct {
	config Config
	url    string // of the model's own entry
}

// New returns the model that c describes; it asks no server.
func New(c Config) *Model {
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, defaultBase), "/"), version)
	name := c.Name
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	c.KeyVariable = cmp.Or(c.KeyVariable, defaultVariable)
	return &Model{config: c, url: base + version + "/" + (&url.URL{Path: name}).EscapedPath()}
}

// Generate makes one attempt. See [model.Model].
func (m *Model) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	x := model.NewExchange(ctx, m.config.Timeouts)
	defer x.Close()
	r := newReader(req)
	if err := m.stream(x, req, r); err != nil {
		return model.Reply{}, m.fault(x, err, r.usage)
	}
	reply := r.reply()
	reply.Raw = x.Raw()
	return reply, nil
}

// Probe asks for the model's own entry, which costs no tokens, and so finds
// out whether the server, the key and the model's name are right.
func (m *Model) Probe(ctx context.Context) error {
	x := model.NewExchange(ctx, m.config.Timeouts)
	defer x.Close()
	body, err := m.send(x, http.MethodGet, m.url, nil)
	if err == nil {
		defer body.Close()
		_, err = io.Copy(io.Discard, body)
	}
	if err == nil && x.Raw() == nil {
		err = errors.New("it is not JSON")
	}
	return m.fault(x, err, nil)
}

func (m *Model) stream(x *model.Exchange, req model.Request, r *reader) error {
	sent, err := encode(m.config.Name, req)
	if err != nil {
		return err
	}
	body, err := m.send(x, http.MethodPost, m.url+":streamGenerateContent?alt=sse", sent)
	if err != nil {
		return err
	}
	defer body.Close()
	return read(body, r)
}

func read(body io.Reader, r *reader) error {
	if err := events(body, r.event); err != nil {
		return err
	}
	return r.complete()
}

// send returns the body of an answer with a good status.
func (m *Model) send(x *model.Exchange, method, url string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(x.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "hone")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if m.config.Key != "" {
		req.Header.Set("X-Goog-Api-Key", m.config.Key)
	}
	res, err := x.Client().Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res.Body, nil
	}
	defer res.Body.Close()
	// The exchange words the fault from the status and the body it records.
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return nil, err
	}
	return nil, errors.New(res.Status)
}

// fault adds what only this wire knows to the exchange's wording.
func (m *Model) fault(x *model.Exchange, err error, used *model.Usage) error {
	err = x.Fault(err)
	var known *model.Error
	if !errors.As(err, &known) {
		return err
	}
	e := *known
	e.Usage = used
	if x.Status() >= 300 {
		if said := errorBody(x.Body()); said != nil {
			said.refine(&e)
		}
	}
	if e.Kind == model.Auth {
		e.Hint = "set " + m.config.KeyVariable + " to a key of the Gemini API that may use this model"
	}
	return &e
}

// apiError is a google.rpc.Status, which comes as an error's body or within
// a stream.
type apiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Type       string `json:"@type"`
		Reason     string `json:"reason"`     // of an ErrorInfo
		RetryDelay string `json:"retryDelay"` // of a RetryInfo, such as "13s"
	} `json:"details"`
}

// fault is the error as one that came within a stream.
func (a *apiError) fault() *model.Error {
	e := model.StatusError(a.Code, nil, a.Message, a.Status)
	a.refine(e)
	return e
}

// refine reads the details, which say more than status and message.
func (a *apiError) refine(e *model.Error) {
	for _, detail := range a.Details {
		if strings.HasPrefix(detail.Reason, "API_KEY_") {
			e.Kind = model.Auth
		}
		if !strings.HasSuffix(detail.Type, "google.rpc.RetryInfo") {
			continue
		}
		if after, err := time.ParseDuration(detail.RetryDelay); err == nil && after > e.After {
			e.After = after
		}
	}
}
