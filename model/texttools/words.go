package texttools

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"

	"hone/model"
)

// instructions stand between the caller's system text and the tools.
//
//go:embed instructions.md
var instructions string

// inWords is the request as a model without tools can be asked it. Each
// message depends on itself alone, so that a prefix stays the same bytes.
func inWords(req model.Request) model.Request {
	req.System = describe(req.System, req.Tools)
	req.Tools = nil
	messages := make([]model.Message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = model.Message{Role: m.Role, Parts: plainParts(m.Parts)}
	}
	req.Messages = messages
	return req
}

// describe is the system text with the tools after it, the same bytes for the
// same tools (ruling G13).
func describe(system string, tools []model.Spec) string {
	var b strings.Builder
	if system != "" {
		b.WriteString(system + "\n\n")
	}
	b.WriteString(instructions)
	b.WriteString("<tools>\n")
	for _, t := range tools {
		b.Write(encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Schema      json.RawMessage `json:"arguments"`
		}{t.Name, t.Description, schema(t)}))
	}
	b.WriteString("</tools>")
	return b.String()
}

// schema is a tool's, or that of any object where it has none.
func schema(t model.Spec) json.RawMessage {
	if !json.Valid(t.Schema) || string(t.Schema) == "null" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.Schema
}

// plainParts writes calls and results as text. Blocks of them are joined with
// the text around them, because many servers want one text a message; a part
// ends where an opaque one stands or a cached prefix ends.
func plainParts(parts []model.Part) []model.Part {
	var out []model.Part
	var open *model.Part // the last of out, as long as it may grow
	block := false       // and it ends with a call or a result
	for _, p := range parts {
		if p.Opaque != nil {
			out, open = append(out, p), nil
			continue
		}
		text, isBlock := plain(p)
		if open == nil || !isBlock && !block {
			if isBlock && len(out) > 0 {
				text = "\n" + text
			}
			out = append(out, model.Part{Text: text})
			open = &out[len(out)-1]
		} else {
			open.Text = strings.TrimRight(open.Text, "\n") + "\n\n" + text
		}
		open.Cache, block = p.Cache, isBlock
		if p.Cache {
			open = nil
		}
	}
	return out
}

// plain is a part as text, and whether it is a call or a result.
func plain(p model.Part) (text string, block bool) {
	switch {
	case p.Call != nil:
		return Format(*p.Call), true
	case p.Result != nil:
		return formatResult(*p.Result), true
	}
	return escape(p.Text), false
}

// Format writes a call in the form that models are asked for, without its ID.
// [Parse] reads the same name from it, and the same arguments: an object as
// the same value, in which tags are escaped, and other text byte for byte.
func Format(c model.Call) string {
	args := json.RawMessage(c.Args)
	if !isObject(c.Args) {
		args = bytes.TrimSpace(encode(c.Args))
	}
	object := `{"name": ` + strings.TrimSpace(string(encode(c.Name))) + `, "arguments": ` + string(args) + `}`
	return "<tool_call>\n" + escapeJSON(object) + "\n</tool_call>\n"
}

// isObject reports whether text is a JSON object with nothing around it.
func isObject(text string) bool {
	return strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") && json.Valid([]byte(text))
}

func formatResult(r model.Result) string {
	status := ""
	if r.Failed {
		status = ` status="failed"`
	}
	name := strings.TrimSpace(string(encode(r.Name)))
	return "<tool_result name=" + escapeJSON(name) + status + ">\n" +
		strings.TrimSuffix(escape(r.Text), "\n") + "\n</tool_result>\n"
}

// encode is v as JSON and a line feed, as a person would write it. What it is
// given can be encoded.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return b.Bytes()
}

// syntax are the beginnings of all tags, with the backslashes that escape them.
var syntax = regexp.MustCompile(
	`(?i)[<\[]\\*(?:/?(?:tool_call|tool_result|tool_response|function_call|tools>|function[=>]|parameter[=>]|think>)|\|python_tag|TOOL_CALLS\])`)

// escape puts a backslash into every tag of a text, so that it is none.
// Different texts stay different.
func escape(text string) string {
	return syntax.ReplaceAllStringFunc(text, func(tag string) string { return tag[:1] + `\` + tag[1:] })
}

// escapeJSON does so within JSON, where a tag can only stand in a string and
// has an escape that reads back as itself.
func escapeJSON(object string) string {
	return syntax.ReplaceAllStringFunc(object, func(tag string) string {
		if tag[0] == '<' {
			return `\u003c` + tag[1:]
		}
		return `\u005b` + tag[1:]
	})
}
