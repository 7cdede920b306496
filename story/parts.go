package story

import (
	"fmt"
	"strings"

	"hone/history"
	"hone/internal/render"
	"hone/model"
	"hone/tool"
)

// Part is a text that belongs to an event, with its name.
type Part struct{ Name, Text string }

type parts struct {
	all   []Part
	merge bool // successive texts of a name
}

func (p *parts) add(name, text string) {
	text = strings.TrimRight(text, "\n")
	switch last := len(p.all) - 1; {
	case strings.TrimSpace(text) == "":
	case p.merge && last >= 0 && p.all[last].Name == name:
		p.all[last].Text += "\n" + text
	default:
		p.all = append(p.all, Part{name, text})
	}
}

// Unless whole, it only names calls and results, which have events of their own.
func (p *parts) addMessage(m model.Message, whole bool) {
	for _, one := range m.Parts {
		p.add(string(m.Role), one.Text)
		switch {
		case one.Result != nil && whole:
			p.add("result of "+one.Result.Name, one.Result.Text)
		case one.Result != nil:
			p.add(string(m.Role), fmt.Sprintf("(the result of %s, %s)", one.Result.Name, render.Bytes(int64(len(one.Result.Text)))))
		case one.Call != nil && whole:
			p.add("call of "+one.Call.Name, one.Call.Args)
		case one.Call != nil:
			p.add(string(m.Role), fmt.Sprintf("(a call of %s, %s)", one.Call.Name, render.Bytes(int64(len(one.Call.Args)))))
		}
	}
}

// RequestParts returns what a request adds to the one before it. It names calls and results,
// and, unless they are wanted, tools.
func RequestParts(object string, tools bool, get history.Get) ([]Part, error) {
	r, err := history.ReadRequest(object, get)
	if err != nil {
		return nil, err
	}
	p := parts{merge: true}
	if r.After != "" {
		p.all = append(p.all, Part{Name: "the previous request, followed by:"})
	}
	p.add("system", r.System)
	var names []string
	for _, t := range r.Tools {
		if names = append(names, t.Name); tools {
			p.add("tool "+t.Name, t.Description)
		}
	}
	if !tools {
		p.add("tools", strings.Join(names, ", "))
	}
	if r.Repeated > 0 {
		r.Messages = append(r.Messages, model.Message{Role: model.User, Parts: r.Parts})
	}
	for _, m := range r.Messages {
		p.addMessage(m, false)
	}
	return p.all, nil
}

// WholeReply returns everything that a reply has.
func WholeReply(replied history.Replied, get history.Get) ([]Part, error) {
	reply, err := history.ReadReply(replied, get)
	var p parts
	p.addMessage(model.Message{Role: "reply", Parts: reply.Parts}, true)
	return p.all, err
}

// EventParts returns what a model wrote or was shown with an event: the text of a reply, what a check printed, or the
// arguments of a call with its result.
func EventParts(past *history.Past, e history.Event, get history.Get) ([]Part, error) {
	var p parts
	switch v := e.Payload.(type) {
	case history.Replied:
		reply, err := history.ReadReply(v, get)
		if err != nil {
			return nil, err
		}
		p.add("reply", reply.Text())
	case history.Checked:
		if v.Output != "" {
			text, err := get(v.Output)
			if err != nil {
				return nil, err
			}
			p.add("its output", string(text))
		}
	case history.ToolResult:
		if begun, ok := past.Begin(*e.Step); ok {
			if c, ok := begun.Payload.(history.ToolCall); ok {
				args, err := c.Arguments(get)
				if err != nil {
					return nil, err
				}
				p.add("call of "+c.Tool, args)
			}
		}
		result, err := history.ReadResult[tool.Result](e.Event, get)
		if err != nil {
			return nil, err
		}
		head, rest := result.Parts()
		if head == "" {
			head, rest = rest, ""
		}
		p.add("result", head)
		if rest != "" {
			p.add("its output", strings.TrimPrefix(rest, "\n"))
		}
	}
	return p.all, nil
}
