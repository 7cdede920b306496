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
	"encoding/json"
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

// request is a GenerateContentRequest. The fields that change from call to
// call come last, so that a growing conversation keeps its prefix.
type request struct {
	System   *content    `json:"systemInstruction,omitempty"`
	Tools    []tool      `json:"tools,omitempty"`
	Contents []content   `json:"contents"`
	Config   *generation `json:"generationConfig,omitempty"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []any  `json:"parts"` // [part], or the bytes of one
}

type tool struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type generation struct {
	MaxOutput int64     `json:"maxOutputTokens,omitempty"`
	Thinking  *thinking `json:"thinkingConfig,omitempty"`
}

type thinking struct {
	Level  string `json:"thinkingLevel,omitempty"`
	Budget int    `json:"thinkingBudget,omitempty"`
}

// part is a Part, with the fields that this package reads and writes.
type part struct {
	Text      *string         `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Call      *functionCall   `json:"functionCall,omitempty"`
	Response  *functionResult `json:"functionResponse,omitempty"`
	Signature json.RawMessage `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type functionResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

func encode(name string, req model.Request) request {
	r := request{Contents: []content{}, Config: generationFor(name, req)}
	if req.System != "" {
		r.System = &content{Role: "user", Parts: []any{part{Text: &req.System}}}
	}
	// Models older than Gemini 3 do not need signatures.
	early := hasPrefix(strings.TrimPrefix(name, "models/"), "gemini-1", "gemini-2", "gemma")
	for _, message := range req.Messages {
		if !early {
			message = signForeignCalls(message)
		}
		// The API rejects a content without parts.
		if c := encodeMessage(message); len(c.Parts) > 0 {
			r.Contents = append(r.Contents, c)
		}
	}
	if len(req.Tools) > 0 {
		r.Tools = []tool{{}}
		for _, s := range req.Tools {
			r.Tools[0].Functions = append(r.Tools[0].Functions, function(s))
		}
	}
	return r
}

// Thinking budgets that every 2.5 model accepts, as Google maps these levels.
const (
	budgetLow    = 1024
	budgetMedium = 8192
	budgetHigh   = 24576
)

// It is nil if the request needs no configuration. Models before 2.5 do not think, 2.5 models take a budget and later models a
// level; gemini-3-pro has no MEDIUM level.
func generationFor(name string, req model.Request) *generation {
	name = strings.TrimPrefix(name, "models/")
	thoughtless := hasPrefix(name, "gemini-1", "gemini-2.0", "gemma")
	g := generation{MaxOutput: req.MaxOutput}
	switch {
	case req.Reasoning == "", thoughtless:
	case strings.HasPrefix(name, "gemini-2.5"):
		budgets := map[model.Reasoning]int{
			model.Low: budgetLow, model.Medium: budgetMedium, model.High: budgetHigh,
		}
		g.Thinking = &thinking{Budget: budgets[req.Reasoning]}
	case req.Reasoning == model.Medium && strings.HasPrefix(name, "gemini-3-pro"):
		g.Thinking = &thinking{Level: "HIGH"}
	default:
		g.Thinking = &thinking{Level: strings.ToUpper(string(req.Reasoning))}
	}
	if g == (generation{}) {
		return nil
	}
	return &g
}

func hasPrefix(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// unsigned is the signature that the API accepts for calls which another model made.
const unsigned = `"skip_thought_signature_validator"`

// If no call has a signature, all get one. Models since Gemini 3 sign at least the first call of a reply, and reject a
// conversation with calls that nobody signed, such as those of another model.
func signForeignCalls(m model.Message) model.Message {
	for _, p := range m.Parts {
		if p.Opaque != nil && p.Opaque.Wire == Wire {
			return m
		}
	}
	var parts []model.Part
	for _, p := range m.Parts {
		if p.Call != nil {
			parts = append(parts, model.Part{Opaque: &model.Opaque{Wire: Wire, Data: json.RawMessage(unsigned)}})
		}
		parts = append(parts, p)
	}
	m.Parts = parts
	return m
}

func encodeMessage(m model.Message) content {
	c := content{Role: "user"}
	if m.Role == model.Assistant {
		c.Role = "model"
	}
	var signature json.RawMessage
	for _, p := range m.Parts {
		out := part{Signature: signature}
		switch {
		case p.Opaque != nil && p.Opaque.Wire != Wire:
			continue
		case p.Opaque != nil && isString(p.Opaque.Data):
			signature = p.Opaque.Data
			continue
		case p.Opaque != nil:
			c.Parts, signature = append(c.Parts, p.Opaque.Data), nil
			continue
		case p.Call != nil:
			out.Call = &functionCall{sentID(p.Call.ID), p.Call.Name, p.Call.Object()}
		case p.Result != nil:
			key := "output"
			if p.Result.Failed {
				key = "error"
			}
			out.Response = &functionResult{sentID(p.Result.ID), p.Result.Name, map[string]string{key: p.Result.Text}}
		case p.Text != "":
			out.Text = &p.Text
		default: // the API rejects an empty part
			continue
		}
		c.Parts, signature = append(c.Parts, out), nil
	}
	return c
}

// Without ids, as it gave none itself, the API matches results to calls by name and order.
func sentID(id string) string {
	if model.HasMadeID(id) {
		return ""
	}
	return id
}

func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }
