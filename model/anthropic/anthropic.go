// Package anthropic speaks Anthropic's Messages API, streamed.
//
// The official SDK builds and sends the requests; nothing is taken from the
// environment, and it neither retries nor traces. The stream's events are
// read here, because the SDK takes JSON of an unexpected shape for zero
// values and passes over data without an event's name.
//
// Thinking blocks, redacted ones too, become opaque parts of the wire
// "anthropic" and go back unchanged and in their place.
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
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"hone/model"
)

// Wire is the name of the opaque parts that this package makes and takes.
const Wire = "anthropic"

const (
	defaultBase     = "https://api.anthropic.com"
	defaultVariable = "ANTHROPIC_API_KEY"
)

// Config says which model is asked, where and with which key. Nothing is
// taken from the environment.
type Config struct {
	// Name is the model's, such as "claude-opus-4-8".
	Name string
	// Key goes in the x-api-key header; empty sends none.
	Key string
	// BaseURL is the server's, with or without the API's version; empty is
	// Anthropic's own.
	BaseURL string
	// KeyVariable is the environment variable that hints name; empty is
	// ANTHROPIC_API_KEY.
	KeyVariable string
	// Timeouts bound an attempt; zero fields mean their defaults.
	Timeouts model.Timeouts
}

// Model is one of Anthropic's models. It is safe for concurrent use.
type Model struct {
	config Config
	base   string
}

// New returns the model that c describes; it asks no server.
func New(c Config) *Model {
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, defaultBase), "/"), "/v1")
	c.KeyVariable = cmp.Or(c.KeyVariable, defaultVariable)
	return &Model{config: c, base: base}
}

// Generate makes one attempt. See [model.Model].
//
// The API wants an output limit: where the request has none, the model's own
// maximum is sent, or 64,000 tokens for a Claude that this package does not
// know and 32,000 for any other model.
func (m *Model) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	x := model.NewExchange(ctx, m.config.Timeouts)
	defer x.Close()
	r := &reader{show: req.Stream}
	if err := m.stream(x, req, r); err != nil {
		return model.Reply{}, m.fault(x, err, r.usage.normal())
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
	var body []byte
	client := m.client(x)
	err := client.Get(x.Context(), "v1/models/"+url.PathEscape(m.config.Name), nil, &body)
	if err == nil && x.Raw() == nil {
		err = errors.New("it is not JSON")
	}
	return m.fault(x, err, nil)
}

func (m *Model) client(x *model.Exchange) sdk.Client {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
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
	return read(res, r)
}

func read(res *http.Response, r *reader) error {
	events := ssestream.NewDecoder(res)
	for !r.done && events.Next() {
		if err := r.event(events.Event().Data); err != nil {
			return err
		}
	}
	if err := events.Err(); err != nil {
		return err
	}
	return r.complete()
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
	if e.Kind == model.Auth {
		e.Hint = "set " + m.config.KeyVariable + " to a key of the Anthropic API that may use this model"
	}
	return &e
}
