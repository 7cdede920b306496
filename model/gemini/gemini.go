// Package gemini implements [model.Model] for the Gemini API's
// streamGenerateContent. [New] returns a model. Vertex AI is not supported.
//
// Thought signatures become opaque parts of the wire "gemini", directly
// before the part that they sign, and are sent back with that part. Thought
// summaries are dropped.
//
// The package encodes requests and decodes streams itself; only its tests
// compare it with the official SDK. That SDK takes a key, a base URL and a
// back end from the environment, logs to stderr, prints its configuration
// with the key into errors, panics on JSON of an unexpected shape, and
// decodes the arguments of calls as floats.
package gemini

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"hone/model"
)

// Wire names the opaque parts that this package returns and sends.
const Wire = "gemini"

const (
	defaultBase     = "https://generativelanguage.googleapis.com"
	defaultVariable = "GEMINI_API_KEY"
	version         = "/v1beta"
)

// Config selects a model and a server. The environment is not read.
type Config struct {
	// Name is the model's name, such as "gemini-3-pro-preview", or a full
	// resource name, such as "tunedModels/mine".
	Name string
	// Key is sent in the x-goog-api-key header; if empty, none is sent.
	Key string
	// BaseURL is the server's URL, with or without the API version; empty
	// means Google's server.
	BaseURL string
	// KeyVariable is the environment variable that hints tell the user to
	// set; empty means GEMINI_API_KEY.
	KeyVariable string
	// Timeouts limit each attempt; zero fields mean the defaults.
	Timeouts model.Timeouts
}

// Model is one Gemini model. It is safe for concurrent use.
type Model struct {
	config Config
	url    string // of the model resource
}

// New returns the model that c describes. It sends no request.
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
	x.Received = req.Received
	defer x.Close()
	r := &reader{onText: req.Stream}
	if err := m.stream(x, req, r); err != nil {
		return model.Reply{}, m.fault(x, err, tokens(r.usage, 0))
	}
	reply := r.reply()
	reply.Raw = x.Raw()
	return reply.Complete(req), nil
}

// Probe checks the server, the key and the model's name by requesting the
// model resource, which costs no tokens.
func (m *Model) Probe(ctx context.Context) error {
	x := model.NewExchange(ctx, m.config.Timeouts)
	defer x.Close()
	body, err := m.send(x, http.MethodGet, m.url, nil)
	if err == nil {
		defer body.Close()
		_, err = io.Copy(io.Discard, body)
	}
	if err == nil && x.Raw() == nil {
		err = errNotJSON
	}
	return m.fault(x, err, nil)
}

var errNotJSON = errors.New("the body is not JSON")

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
	for data, err := range x.Events(body) {
		if err == nil {
			err = r.addEvent(data)
		}
		switch {
		case err != nil && r.settled:
			return nil
		case err != nil:
			return err
		}
	}
	return r.checkComplete(x.Done())
}

func (m *Model) send(x *model.Exchange, method, url string, body []byte) (io.ReadCloser, error) {
	header := http.Header{}
	if m.config.Key != "" {
		header.Set("X-Goog-Api-Key", m.config.Key)
	}
	return x.Send(method, url, header, body)
}

func (m *Model) fault(x *model.Exchange, err error, used *model.Usage) error {
	err = x.Fault(err)
	var known *model.Error
	if !errors.As(err, &known) {
		return err
	}
	e := *known
	e.Usage = used
	if e.Kind == model.Auth {
		e.Hint = "set " + m.config.KeyVariable + " to a Gemini API key with access to this model"
	}
	return &e
}
