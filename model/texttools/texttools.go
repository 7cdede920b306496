// Package texttools adds tool calls to a model that has no native ones.
//
// [Wrap] returns a model that sends requests with tools to another model as
// text only: it describes the tools at the end of the system text, writes
// earlier calls and results into the messages, and parses the inner model's
// text for calls, which become the reply's Call parts.
//
// A call is requested as a JSON object between tags at the beginning of a line, as
// many open models were trained on (Hermes, Qwen, SmolLM and others):
//
//	<tool_call>
//	{"name": "read", "arguments": {"path": "main.go"}}
//	</tool_call>
//
// # What is a call
//
// Models write what they were trained on. These forms are calls too, any number
// of them in order, with text around them:
//
//   - the tags of other dialects, see head in read.go
//   - a reply that consists only of calls in JSON (Llama 3)
//   - a fenced block of calls in JSON or in tags, if only such blocks follow it and
//     the reply has no other calls; so an example with text after it remains text
//
// The JSON determines where a call ends, so an argument may contain code, fences and
// the tags. A call that cannot be parsed is still a Call, with the model's text as
// its arguments, so that the caller can report the error to the model. If its end is
// unclear, it extends to the last closing tag: the text in between may be its
// contents and must not run as calls.
//
// A tag counts only with a name or arguments after it, or if it is the requested one, ends
// its line and is closed; and not in a fenced block, after a quotation mark or a backtick in
// its line, in a line indented like code, or in a Markdown quotation. Reasoning up to the
// last </think> outside of a call does not count, nor does anything after a tool result that
// the model invented.
//
// # Escapes
//
// Texts and results of the conversation may contain the syntax, for example in
// a file. There each tag gets a backslash, <\tool_call>, or one more if it
// already has some, so that a quoted text cannot forge a call. If a model quotes
// such a text without the backslash, or as a fenced example at the very end of
// a reply, it makes a call. Therefore tools need walls of their own.
package texttools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// Wrap returns a model that offers tools to m as text. Usage, Raw, Detail and
// errors are m's. Requests without tools pass through unchanged.
//
// Each call in a reply gets an ID with its number in the conversation, starting
// with call_1; this replaces the ID of a call that m made natively. If the text
// contains calls, the Finish Stop becomes Calls; any other Finish is unchanged
// (ruling G3). If the text contains calls, it follows m's other parts. Stream receives
// the visible text when the reply is complete, because any line may begin a call.
// The result has a method Probe if m has one.
func Wrap(m model.Model) model.Model {
	if p, ok := m.(prober); ok {
		return struct {
			wrapped
			prober
		}{wrapped{m}, p}
	}
	return wrapped{m}
}

type prober interface{ Probe(context.Context) error }

type wrapped struct{ inner model.Model }

func (w wrapped) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if len(req.Tools) == 0 {
		return w.inner.Generate(ctx, req)
	}
	reply, err := w.inner.Generate(ctx, asText(req))
	if err != nil {
		return reply, err
	}
	reply = withCalls(reply, req)
	if req.Stream != nil {
		req.Stream(reply.Text())
	}
	return reply, nil
}

func withCalls(reply model.Reply, req model.Request) model.Reply {
	text := reply.Text()
	reply.Parts = slices.Clone(reply.Parts) // the model may keep its own
	if spans := find(text, req.Tools); len(spans) > 0 {
		isText := func(p model.Part) bool { return p.Text != "" }
		reply.Parts = append(slices.DeleteFunc(reply.Parts, isText), split(text, spans)...)
	}
	number := 0
	for _, m := range req.Messages {
		number += len(model.Reply{Parts: m.Parts}.Calls())
	}
	for i, p := range reply.Parts {
		if p.Call != nil {
			number++
			reply.Parts[i].Call = &model.Call{ID: fmt.Sprintf("call_%d", number), Name: p.Call.Name, Args: p.Call.Args}
		}
	}
	if reply.Finish == model.Stop && len(reply.Calls()) > 0 {
		reply.Finish = model.Calls
	}
	return reply
}

// Parse splits a text into text and calls, in order. A text without calls is
// one part. Calls have no ID. White space before a call is removed. The tools are
// those that were offered; if nil, only forms with a tag are calls.
func Parse(text string, tools []model.Spec) []model.Part { return split(text, find(text, tools)) }

func split(text string, spans []found) (parts []model.Part) {
	at := 0
	for _, s := range spans {
		if before := strings.TrimRight(text[at:s.from], space); before != "" {
			parts = append(parts, model.Part{Text: before})
		}
		for _, c := range s.calls {
			parts = append(parts, model.Part{Call: &c})
		}
		at = s.end(text)
	}
	if rest := text[at:]; at == 0 || strings.Trim(rest, space) != "" {
		parts = append(parts, model.Part{Text: rest})
	}
	return parts
}

// instructions follow the caller's system text and precede the tools.
//
//go:embed instructions.md
var instructions string

// Each message is converted independently, so that the prefix of a conversation never changes.
func asText(req model.Request) model.Request {
	req.System = describe(req.System, req.Tools)
	req.Tools, req.Stream = nil, nil
	messages := make([]model.Message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = model.Message{Role: m.Role, Parts: plainParts(m.Parts)}
	}
	req.Messages = messages
	return req
}

// The same tools give the same bytes (ruling G13).
func describe(system string, tools []model.Spec) string {
	var b strings.Builder
	if system != "" {
		b.WriteString(system + "\n\n")
	}
	b.WriteString(instructions)
	b.WriteString("<tools>\n")
	for _, t := range tools {
		b.WriteString(encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Schema      json.RawMessage `json:"arguments"`
		}{t.Name, t.Description, schema(t)}) + "\n")
	}
	b.WriteString("</tools>")
	return b.String()
}

func schema(t model.Spec) json.RawMessage {
	if !json.Valid(t.Schema) || string(t.Schema) == "null" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.Schema
}

// All text is joined, because many servers expect one text in a message, except after an opaque part and at the end of a cached
// prefix.
func plainParts(parts []model.Part) []model.Part {
	var out []model.Part
	for _, p := range parts {
		last := len(out) - 1
		switch {
		case p.Opaque != nil:
			out = append(out, p)
		case last >= 0 && out[last].Opaque == nil && !out[last].Cache:
			out[last] = model.Part{Text: strings.TrimRight(out[last].Text, "\n") + "\n\n" + partText(p), Cache: p.Cache}
		default:
			out = append(out, model.Part{Text: partText(p), Cache: p.Cache})
		}
	}
	return out
}

func partText(p model.Part) string {
	switch {
	case p.Call != nil:
		return Format(*p.Call)
	case p.Result != nil:
		return formatResult(*p.Result)
	}
	return escapeOthers(p.Text)
}

// escapeOthers escapes all tags but those of the example: a correction shows it, and who
// quotes it reads a README.
func escapeOthers(text string) string {
	parts := strings.Split(text, reply.CallExample)
	for i, part := range parts {
		parts[i] = escape(part)
	}
	return strings.Join(parts, reply.CallExample)
}

// Format returns a call in the requested syntax, without its ID. [Parse] reads
// back the same name and arguments: an object with the same value, because tags
// in it are escaped, and any other text unchanged.
func Format(c model.Call) string {
	args := c.Args
	if !isObject(args) {
		args = encode(args)
	}
	object := `{"name": ` + encode(c.Name) + `, "arguments": ` + args + `}`
	return "<tool_call>\n" + escapeJSON(object) + "\n</tool_call>\n"
}

// There is no space around the object.
func isObject(text string) bool {
	return strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") && json.Valid([]byte(text))
}

func formatResult(r model.Result) string {
	status := ""
	if r.Failed {
		status = ` status="failed"`
	}
	return "<tool_result name=" + escapeJSON(encode(r.Name)) + status + ">\n" +
		strings.TrimSuffix(escapeOthers(r.Text), "\n") + "\n</tool_result>\n"
}

// It is only called for values that can be encoded.
func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// syntax matches the beginnings of all tags, escaped ones too.
var syntax = lazyregexp.New(
	`(?i)[<\[]\\*(?:/?(?:tool_call|tool_result|tool_response|function_call|tools>|function[=>]|invoke[ >]|parameter[=> ]|arg_(?:key|value)>|think>)|\|(?:python_tag|eom_id)|｜tool▁|TOOL_CALLS\])`)

// Each tag gets a backslash. This can be undone, so that two texts never become equal.
func escape(text string) string {
	return syntax.ReplaceAllStringFunc(text, func(tag string) string { return tag[:1] + `\` + tag[1:] })
}

// Tags only occur in strings of JSON, where escapes do not change the value.
func escapeJSON(object string) string {
	return syntax.ReplaceAllStringFunc(object, func(tag string) string {
		if tag[0] == '<' {
			return `\u003c` + tag[1:]
		}
		return `\u005b` + tag[1:]
	})
}
