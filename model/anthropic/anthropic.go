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
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

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

// defaultOutput is the limit of the output, in tokens, of a request without one.
const defaultOutput = 32000

// Thinking budgets in tokens; the API rejects one below budgetMin.
const (
	budgetLow    = 4096
	budgetMedium = 16000
	budgetHigh   = 32000
	budgetMin    = 1024
)

// Models since 3.7 and before 4.6 think for a budget of tokens; later ones decide themselves, with an effort (Anthropic's model
// overview).
func isBudgeted(name string) bool {
	return slices.ContainsFunc([]string{"claude-3-7", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2025", "claude-opus-4-5",
		"claude-sonnet-4-0", "claude-sonnet-4-2025", "claude-sonnet-4-5", "claude-haiku-4-",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// A budget leaves half of the output to the answer; one that is then too small is omitted.
func setThinking(p *sdk.MessageNewParams, level model.Reasoning, messages []model.Message) {
	switch name := p.Model; {
	case level == "":
	case isBudgeted(name):
		budget := map[model.Reasoning]int64{model.Low: budgetLow, model.Medium: budgetMedium, model.High: budgetHigh}[level]
		if budget = min(budget, p.MaxTokens/2); budget >= budgetMin && mayThink(messages) {
			p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		}
	case !strings.HasPrefix(name, "claude-3-"):
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(level)
	}
}

// A model with a budget that thought must keep thinking, and must not start after calls that another model made without
// thinking.
func mayThink(messages []model.Message) bool {
	for _, m := range slices.Backward(messages) {
		if reply := (model.Reply{Parts: m.Parts}); m.Role == model.Assistant && len(reply.Calls()) > 0 {
			first := m.Parts[0].Opaque
			return first != nil && first.Wire == Wire
		}
	}
	return true
}

func encode(name string, req model.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{
		Model:     name,
		MaxTokens: cmp.Or(req.MaxOutput, defaultOutput),
		Tools:     tools(req.Tools),
	}
	if req.System != "" {
		p.System = []sdk.TextBlockParam{{Text: req.System}}
	}
	var c cacheMarks
	for _, m := range req.Messages {
		// The API rejects a message without content.
		if blocks := c.blocks(m.Parts); len(blocks) > 0 {
			p.Messages = append(p.Messages, sdk.MessageParam{Role: role(m.Role), Content: blocks})
		}
	}
	c.set(&p)
	setThinking(&p, req.Reasoning, req.Messages)
	p.SetExtraFields(map[string]any{"stream": true})
	return p
}

func role(r model.Role) sdk.MessageParamRole {
	if r == model.Assistant {
		return sdk.MessageParamRoleAssistant
	}
	return sdk.MessageParamRoleUser
}

func tools(specs []model.Spec) []sdk.ToolUnionParam {
	var list []sdk.ToolUnionParam
	for _, s := range specs {
		schema := s.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		tool := &sdk.ToolParam{
			Name:        s.Name,
			InputSchema: param.Override[sdk.ToolInputSchemaParam](schema),
		}
		if s.Description != "" {
			tool.Description = sdk.String(s.Description)
		}
		list = append(list, sdk.ToolUnionParam{OfTool: tool})
	}
	return list
}

// cacheMarks collects the blocks that end a prefix which later requests
// repeat.
type cacheMarks struct {
	last  *sdk.CacheControlEphemeralParam // of the last block that can carry a mark
	marks []*sdk.CacheControlEphemeralParam
}

// The mark of a part that cannot carry one, such as thinking, moves to the block before it.
func (c *cacheMarks) blocks(parts []model.Part) []sdk.ContentBlockParamUnion {
	var list []sdk.ContentBlockParamUnion
	for _, p := range parts {
		if b, ok := block(p); ok {
			list = append(list, b)
			if control := b.GetCacheControl(); control != nil {
				c.last = control
			}
		}
		if n := len(c.marks); p.Cache && c.last != nil && (n == 0 || c.marks[n-1] != c.last) {
			c.marks = append(c.marks, c.last)
		}
	}
	return list
}

// maxMarks is the API's limit of marks in a request.
const maxMarks = 4

// A mark covers everything before it, in the order tools, system, messages. If fewer than maxMarks are used, another one ends
// the system text, or the tools if there is none, because other conversations of the same role repeat that prefix.
func (c *cacheMarks) set(p *sdk.MessageNewParams) {
	n := len(c.marks)
	for _, control := range c.marks[max(0, n-maxMarks):] {
		*control = sdk.NewCacheControlEphemeralParam()
	}
	if n == 0 || n >= maxMarks {
		return
	}
	switch {
	case len(p.System) > 0:
		p.System[0].CacheControl = sdk.NewCacheControlEphemeralParam()
	case len(p.Tools) > 0:
		p.Tools[len(p.Tools)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
}

// ok is false for another wire's opaque part and for text that is only white space, which the API rejects.
func block(p model.Part) (sdk.ContentBlockParamUnion, bool) {
	var b sdk.ContentBlockParamUnion
	switch {
	case p.Opaque != nil:
		if p.Opaque.Wire != Wire {
			return b, false
		}
		return param.Override[sdk.ContentBlockParamUnion](p.Opaque.Data), true
	case p.Call != nil:
		b.OfToolUse = &sdk.ToolUseBlockParam{ID: id(p.Call.ID), Name: p.Call.Name, Input: p.Call.Object()}
	case p.Result != nil:
		b.OfToolResult = result(p.Result)
	case strings.TrimSpace(p.Text) != "":
		b.OfText = &sdk.TextBlockParam{Text: p.Text}
	default:
		return b, false
	}
	return b, true
}

func result(r *model.Result) *sdk.ToolResultBlockParam {
	b := &sdk.ToolResultBlockParam{ToolUseID: id(r.ID)}
	if r.Failed {
		b.IsError = sdk.Bool(true)
	}
	if strings.TrimSpace(r.Text) != "" {
		b.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: r.Text}}}
	}
	return b
}

// The API accepts only these characters; the call may come from another provider's model.
func id(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}
