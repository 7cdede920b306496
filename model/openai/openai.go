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
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"hone/model"
)

// Wire is one of OpenAI's protocols.
type Wire string

// The two protocols.
const (
	Responses Wire = "responses"
	Chat      Wire = "chat"
)

// Config selects a model and a server. Only Name is required.
type Config struct {
	// Name is the model's name on the server.
	Name string
	// Key is sent as a bearer token; if empty, none is sent, which suits local
	// servers.
	Key string
	// BaseURL is the URL to which the wire's path is appended, such as
	// http://localhost:11434/v1; empty means OpenAI's server.
	BaseURL string
	// Wire is the protocol; empty means Responses for OpenAI's server and
	// Chat for any other.
	Wire Wire
	// KeyVariable is the environment variable that hints tell the user to
	// set; empty means OPENAI_API_KEY.
	KeyVariable string
	// Timeouts limit each attempt; zero fields mean the defaults.
	Timeouts model.Timeouts
}

// New returns the model that c describes. An invalid c causes an error of kind
// [model.Invalid] in each call of Generate.
func New(c Config) model.Model {
	c.BaseURL = cmp.Or(c.BaseURL, "https://api.openai.com/v1")
	c.KeyVariable = cmp.Or(c.KeyVariable, "OPENAI_API_KEY")
	if c.Wire == Responses || c.Wire == "" && c.isOpenAI() {
		return responsesModel{c}
	}
	chat := chatModel{c, new(atomic.Bool)}
	chat.completion.Store(c.isOpenAI())
	return chat
}

func (c Config) isOpenAI() bool {
	u, err := url.Parse(c.BaseURL)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
}

// Only OpenAI's own server gets a key: some others reject a field that they do not know.
func (c Config) cacheKey(req model.Request) string {
	if !c.isOpenAI() {
		return ""
	}
	return req.CacheKey
}

func (c Config) check() error {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &model.Error{
			Kind:    model.Invalid,
			Message: "the base URL is not an http or https URL",
			Hint:    "write the complete URL, such as http://localhost:11434/v1",
		}
	}
	if c.Name == "" {
		return &model.Error{Kind: model.Invalid, Message: "the model name is empty"}
	}
	return nil
}

// It calls add with the data of each event, until an error after the reason and the usage have arrived, which changes nothing.
// done reports whether the response is complete by itself.
func (c Config) attempt(ctx context.Context, req model.Request, path string, request any, add func([]byte) (settled bool, err error), end func(done bool) (model.Reply, error)) (model.Reply, error) {
	if err := cmp.Or(ctx.Err(), c.check()); err != nil {
		return model.Reply{}, err
	}
	sent, err := encode(request)
	if err != nil {
		return model.Reply{}, err
	}
	x := model.NewExchange(ctx, c.Timeouts)
	defer x.Close()
	x.Received = req.Received
	body, err := c.send(x, http.MethodPost, path, sent)
	if err != nil {
		return model.Reply{}, c.fault(x, err)
	}
	defer body.Close()
	settled := false
	for data, err := range x.Events(body) {
		if err == nil {
			settled, err = add(data)
		}
		if err != nil && !settled {
			return model.Reply{}, c.fault(x, err)
		}
		if err != nil {
			break
		}
	}
	reply, err := end(x.Done())
	if err != nil {
		return model.Reply{}, c.fault(x, err)
	}
	reply.Raw = x.Raw()
	return reply.Complete(req), nil
}

// The response is 2xx.
func (c Config) send(x *model.Exchange, method, path string, body []byte) (io.ReadCloser, error) {
	address, err := url.JoinPath(c.BaseURL, path)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if c.Key != "" {
		header.Set("Authorization", "Bearer "+c.Key)
	}
	return x.Send(method, address, header, body)
}

func (c Config) fault(x *model.Exchange, err error) error {
	err = x.Fault(err)
	if e := (*model.Error)(nil); errors.As(err, &e) && e.Hint == "" {
		e.Hint = c.hint(e.Kind)
	}
	return err
}

func (c Config) hint(kind model.Kind) string {
	switch kind {
	case model.Auth:
		return "set " + c.KeyVariable + " to a key for this model"
	case model.Unreachable:
		if u, err := url.Parse(c.BaseURL); err == nil {
			return "make sure that a server listens at " + u.Host
		}
	}
	return ""
}

// Without HTML escapes a provider's own bytes are sent back unchanged.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: model.OneLine("encode the request: " + err.Error())}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// The API requires an object even if there are no parameters.
func schema(s model.Spec) json.RawMessage {
	if len(s.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return s.Schema
}

func toReply(parts []model.Part) model.Reply { return model.Reply{Parts: parts} }

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
