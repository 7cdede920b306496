// Package anthropic implements [model.Model] for Anthropic's Messages API,
// with streaming. [New] returns a model.
//
// Thinking blocks, including redacted ones, become opaque parts of the wire
// "anthropic" and are sent back unchanged in the same position.
//
// The official SDK builds and sends the requests; it reads nothing from the
// environment, never retries and never traces. This package decodes the
// stream's events itself, because the SDK decodes JSON of an unexpected shape
// to zero values and ignores data without an event name.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"hone/model"
)

// Wire names the opaque parts that this package returns and sends.
const Wire = "anthropic"

const (
	defaultBase     = "https://api.anthropic.com"
	defaultVariable = "ANTHROPIC_API_KEY"
)

// Config selects a model and a server. The environment is not read.
type Config struct {
	// Name is the model's name, such as "claude-opus-4-8".
	Name string
	// Key is sent in the x-api-key header; if empty, none is sent.
	Key string
	// BaseURL is the server's URL, with or without the API version; empty
	// means Anthropic's server.
	BaseURL string
	// KeyVariable is the environment variable that hints tell the user to
	// set; empty means ANTHROPIC_API_KEY.
	KeyVariable string
	// Timeouts limit each attempt; zero fields mean the defaults.
	Timeouts model.Timeouts
}

// Model is one of Anthropic's models. It is safe for concurrent use.
type Model struct {
	config Config
	base   string
}

// New returns the model that c describes. It sends no request.
func New(c Config) *Model {
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, defaultBase), "/"), "/v1")
	c.KeyVariable = cmp.Or(c.KeyVariable, defaultVariable)
	return &Model{config: c, base: base}
}

// Generate makes one attempt. See [model.Model].
//
// The API requires an output limit. If the request has none, Generate sends
// the model's maximum; for an unknown model it sends 64,000 tokens if its name
// begins with "claude", otherwise 32,000.
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
	var body []byte
	client := m.client(x)
	err := client.Get(x.Context(), "v1/models/"+url.PathEscape(m.config.Name), nil, &body)
	if err == nil && x.Raw() == nil {
		err = errors.New("the body is not JSON")
	}
	return m.fault(x, err, nil)
}

func (m *Model) client(x *model.Exchange) sdk.Client {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithMaxRetries(0),
		option.WithHTTPClient(x.Client()),
		option.WithBaseURL(m.base),
	}
	if m.config.Key != "" {
		options = append(options, option.WithAPIKey(m.config.Key))
	}
	return sdk.NewClient(options...)
}

func (m *Model) stream(x *model.Exchange, req model.Request, r *reader) error {
	client := m.client(x)
	var res *http.Response
	err := client.Post(x.Context(), "v1/messages", encode(m.config.Name, req), &res, option.WithJSONSet("stream", true))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for data, err := range x.Events(res.Body) {
		if err == nil {
			err = r.addEvent(data)
		}
		switch {
		case r.done, err != nil && r.settled:
			return r.checkComplete(false)
		case err != nil:
			return err
		}
	}
	return r.checkComplete(x.Done())
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
		e.Hint = "set " + m.config.KeyVariable + " to an Anthropic API key with access to this model"
	}
	return &e
}
