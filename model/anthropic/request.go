package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"hone/model"
)

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
