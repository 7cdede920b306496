// Package openai implements [model.Model] for OpenAI's two wires: the
// Responses API, and chat completions as offered by OpenAI and by many
// compatible servers (Ollama, vLLM, llama.cpp, OpenRouter). [New] returns a
// model.
//
// It always requests a stream, and also reads the plain response of a server
// that does not stream. On the Responses wire the provider stores nothing:
// reasoning items arrive encrypted, become opaque parts and are sent back in
// the same position. Neither wire can mark a tool result as failed; the
// result's text must say so.
//
// The environment is not read. A key, an organization or a base URL set there
// is used only if the caller passes it in.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"hone/model"
)

// The two protocols, which [Config] calls wires. Responses is that of OpenAI's server, and Chat
// that of any other, unless Config has one.
const (
	Responses = "responses"
	Chat      = "chat"
)

// Config selects a model and a server. Only Name is required.
type Config = model.Endpoint

// New returns the model that c describes. An invalid c causes an error of kind
// [model.Invalid] in each call of Generate.
func New(c Config) model.Model {
	c.BaseURL = cmp.Or(c.BaseURL, "https://api.openai.com/v1")
	c.KeyVariable = cmp.Or(c.KeyVariable, "OPENAI_API_KEY")
	c.Header = http.Header{}
	if c.Key != "" {
		c.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if c.Wire == Responses || c.Wire == "" && isOpenAI(c) {
		return responsesModel{server{c}}
	}
	chat := chatModel{server{c}, new(atomic.Bool)}
	chat.completion.Store(isOpenAI(c))
	return chat
}

func isOpenAI(c Config) bool {
	u, err := url.Parse(c.BaseURL)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
}

// Only OpenAI's own server gets a key: some others reject a field that they do not know.
func cacheKey(c Config, req model.Request) string {
	if !isOpenAI(c) {
		return ""
	}
	return req.CacheKey
}

// server is what both protocols have.
type server struct{ Config }

// Probe checks the server and the key by requesting the list of models, which
// costs no tokens. It does not check the model's name, because not every
// compatible server offers single models. A server without a list passes too.
func (s server) Probe(ctx context.Context) error {
	err := s.Config.Probe(ctx, "models")
	if e := (*model.Error)(nil); errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return nil
	}
	return err
}

// NewReader returns the reader of one response to a request with this path, which tells the wire.
func NewReader(path string) model.Reader {
	if strings.HasSuffix(path, "/responses") {
		return new(responseAnswer)
	}
	return new(chatAnswer)
}

// The API requires an object even if there are no parameters.
func schema(s model.Spec) json.RawMessage {
	if len(s.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return s.Schema
}

// Gateways such as OpenRouter and LiteLLM report it. Where the user pays the provider behind the gateway, it is only the
// gateway's fee.
func cost(c model.Counts) *float64 {
	fee := c.Cost("cost")
	upstream := c.Cost("cost_details", "upstream_inference_cost")
	if fee == nil || upstream == nil || !c.Is("is_byok") {
		return fee
	}
	return new(*fee + *upstream)
}

// in and out are the names of the two totals. It is nil if there is no usage. size is that of the reply. The SDK would decode a
// value of an unexpected type to another number.
func toUsage(raw json.RawMessage, in, out string, size int64) *model.Usage {
	c := model.ReadCounts(raw)
	cached, written := c.Optional(in+"_details", "cached_tokens"), c.Optional(in+"_details", "cache_write_tokens")
	return c.Usage(model.Usage{
		Cost:       cost(c),
		Input:      max(0, c.Required(in)-cached-written),
		Output:     c.Required(out),
		Reasoning:  c.Optional(out+"_details", "reasoning_tokens"),
		CacheRead:  cached,
		CacheWrite: written,
	}, size)
}
