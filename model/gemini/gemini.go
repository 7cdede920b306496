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
	"net/http"
	"net/url"
	"strings"

	"hone/model"
)

// Wire names the opaque parts that this package returns and sends.
const Wire = "gemini"

const version = "v1beta"

// Config selects a model and a server. Name may be a full resource name, such as
// "tunedModels/mine"; BaseURL may lack the API's version.
type Config = model.Endpoint

// Model is one Gemini model. It is safe for concurrent use.
type Model struct {
	endpoint model.Endpoint
	path     string // of the model resource
}

// New returns the model that c describes. It sends no request.
func New(c Config) *Model {
	c.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, "https://generativelanguage.googleapis.com"), "/"), "/"+version)
	c.KeyVariable = cmp.Or(c.KeyVariable, "GEMINI_API_KEY")
	c.Header = http.Header{"X-Goog-Api-Key": {c.Key}}
	name := c.Name
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	return &Model{c, version + "/" + (&url.URL{Path: name}).EscapedPath()}
}

// Generate makes one attempt. See [model.Model].
func (m *Model) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	return m.endpoint.Generate(ctx, req, m.path+":streamGenerateContent?alt=sse", encode(m.endpoint.Name, req), &reader{onText: req.Stream})
}

// Probe checks the server, the key and the model's name by requesting the
// model resource, which costs no tokens.
func (m *Model) Probe(ctx context.Context) error { return m.endpoint.Probe(ctx, m.path) }

// NewReader returns the reader of one response, whatever the path of its request.
func NewReader(string) model.Reader { return new(reader) }
