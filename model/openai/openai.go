// Package openai speaks OpenAI's two wires: the Responses API, and chat
// completions as OpenAI and the many servers that follow it (Ollama, vLLM,
// llama.cpp, OpenRouter) offer them.
//
// It always asks for a stream and also reads the plain answer of a server
// that has none to give. On the Responses wire nothing is stored with the
// provider: reasoning items come back encrypted, as opaque parts, and are
// sent again in their place. Neither wire has a mark for a failed tool
// result; its text has to say so.
//
// The environment is not read: a key, an organization or a base URL that
// stands there is used only where the caller passes it on.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"hone/model"
)

// Wire is one of OpenAI's protocols.
type Wire string

// The two protocols.
const (
	Responses Wire = "responses"
	Chat      Wire = "chat"
)

// Config says which model is called, and where. Only Name is needed.
type Config struct {
	// Name is the model's, as the server knows it.
	Name string
	// Key is sent as a bearer token; empty sends none, as local servers want.
	Key string
	// BaseURL is what the wire's path is added to, such as
	// http://localhost:11434/v1; empty is OpenAI's own.
	BaseURL string
	// Wire is the protocol; empty means Responses at OpenAI's own address and
	// Chat anywhere else.
	Wire Wire
	// KeyVariable is what a hint tells a person to set; empty: OPENAI_API_KEY.
	KeyVariable string
	// Timeouts bound each attempt.
	Timeouts model.Timeouts
}

// New makes a model of the configuration. What is wrong with it shows as an
// error of kind [model.Invalid] when the model is asked.
func New(c Config) model.Model {
	c.BaseURL = cmp.Or(c.BaseURL, "https://api.openai.com/v1")
	c.KeyVariable = cmp.Or(c.KeyVariable, "OPENAI_API_KEY")
	if c.Wire == Responses || c.Wire == "" && c.own() {
		return responsesModel{c}
	}
	return chatModel{c}
}

// own reports whether the address is OpenAI's own.
func (c Config) own() bool {
	u, err := url.Parse(c.BaseURL)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
}

func (c Config) check() error {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &model.Error{
			Kind:    model.Invalid,
			Message: "the base URL is not an address of the web",
			Hint:    "write it whole, such as http://localhost:11434/v1",
		}
	}
	if c.Name == "" {
		return &model.Error{Kind: model.Invalid, Message: "no model is named"}
	}
	return nil
}

// attempt sends a request's body over an exchange, which reads the reply.
func (c Config) attempt(ctx context.Context, request any, read func(*model.Exchange, []byte) (model.Reply, error)) (model.Reply, error) {
	if err := cmp.Or(ctx.Err(), c.check()); err != nil {
		return model.Reply{}, err
	}
	body, err := encode(request)
	if err != nil {
		return model.Reply{}, err
	}
	x := model.NewExchange(ctx, c.Timeouts)
	defer x.Close()
	reply, err := read(x, body)
	if err != nil {
		return model.Reply{}, c.fault(x, err)
	}
	reply.Raw = x.Raw()
	return reply, nil
}

// options are the SDK's for one request. Its services are made with these
// alone, since its client would add what stands in the environment.
func (c Config) options(x *model.Exchange, body []byte) []option.RequestOption {
	options := []option.RequestOption{
		option.WithBaseURL(c.BaseURL),
		option.WithHTTPClient(x.Client()),
		option.WithMaxRetries(0),
		option.WithRequestBody("application/json", body),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	}
	return options
}

// fault words an error of the exchange and adds what a person can do.
func (c Config) fault(x *model.Exchange, err error) error {
	if e := (*ssestream.StreamError)(nil); errors.As(err, &e) {
		message, code := model.ErrorBody(e.Event.Data)
		err = model.StatusError(0, nil, message, code)
	}
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
			return "see that a server listens at " + u.Host
		}
	}
	return ""
}

// encode is v as JSON without the escapes that only web pages need, so that
// a provider's own bytes go back as they came.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: model.OneLine("encode the request: " + err.Error())}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// schema is a tool's parameters; a tool without any still needs an object.
func schema(s model.Spec) json.RawMessage {
	if len(s.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return s.Schema
}

// joinText is the text of a message's parts.
func joinText(parts []model.Part) string { return model.Reply{Parts: parts}.Text() }
