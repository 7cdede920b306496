package texttools

import (
	_ "embed"
	"encoding/json"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

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
