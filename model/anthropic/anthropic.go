// Package anthropic implements [model.Model] for Anthropic's Messages API,
// with streaming. [New] returns a model.
//
// Thinking blocks, including redacted ones, become opaque parts of the wire
// "anthropic" and are sent back unchanged in the same position.
//
// The official SDK has the types of the requests. This package decodes the stream's
// events itself, because the SDK decodes JSON of an unexpected shape to zero values
// and ignores data without an event name.
package anthropic

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"hone/model"
)

// Wire names the opaque parts that this package returns and sends.
const Wire = "anthropic"

// Config selects a model and a server. BaseURL may lack the API's version.
type Config = model.Endpoint

// Model is one of Anthropic's models. It is safe for concurrent use.
type Model struct{ endpoint model.Endpoint }

// New returns the model that c describes. It sends no request.
func New(c Config) *Model {
	c.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, "https://api.anthropic.com"), "/"), "/v1")
	c.KeyVariable = cmp.Or(c.KeyVariable, "ANTHROPIC_API_KEY")
	c.Header = http.Header{"X-Api-Key": {c.Key}, "Anthropic-Version": {"2023-06-01"}}
	return &Model{c}
}

// Generate makes one attempt. See [model.Model].
//
// The API requires an output limit. If the request has none, Generate sends 32,000 tokens.
func (m *Model) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	return m.endpoint.Generate(ctx, req, "v1/messages", encode(m.endpoint.Name, req), &reader{onText: req.Stream})
}

// Probe checks the server, the key and the model's name by requesting the
// model resource, which costs no tokens.
func (m *Model) Probe(ctx context.Context) error {
	return m.endpoint.Probe(ctx, "v1/models/"+url.PathEscape(m.endpoint.Name))
}

// NewReader returns the reader of one response, whatever the path of its request.
func NewReader(string) model.Reader { return new(reader) }
