// Package texttools adds tool calls to a model that has no native ones.
//
// [Wrap] returns a model that sends requests with tools to another model as
// text only: it describes the tools at the end of the system text, writes
// earlier calls and results into the messages, and parses the inner model's
// text for calls, which become the reply's Call parts.
//
// # Requested syntax
//
// A call is a JSON object between tags at the beginning of a line:
//
//	<tool_call>
//	{"name": "read", "arguments": {"path": "main.go"}}
//	</tool_call>
//
// Many open models were trained on exactly this syntax (Hermes, Qwen, SmolLM
// and others). The JSON itself determines where a call ends, so an argument may
// contain code, fences and even the tags.
//
// # Accepted syntax
//
// Models write what they were trained on. These forms are calls too, any number
// of them in order, with text around them:
//
//   - the tags of all dialects, see dialects
//   - a reply that consists only of calls in JSON (Llama 3), or that begins
//     with an envelope, an object with "text" and "tool_calls" (CodeScribe's
//     form for Argo); what follows an envelope is text
//   - a fenced block of calls in JSON or in tags
//
// The member with the name may be name, tool, tool_name or function, the one
// with the arguments may be arguments, parameters, args or input, with an
// object or a string; without one, the other members are the arguments. A JSON string
// may contain unescaped line feeds and tabs, and a comma may precede a bracket.
//
// A call that cannot be parsed is still a Call, with the model's text as its
// arguments, so that the caller can report the error to the model. If its end
// is unclear, it extends to the last closing tag: the text in between may be
// its contents and must not run as calls.
//
// # What is not a call
//
// A tag does not count inside a fenced block, after a backtick in its line, in
// a line indented like code, or in a Markdown quotation. In the middle of a
// line it counts only if it is closed and does not directly follow a quotation
// mark. A reply in JSON that is not itself a call has none in its strings. A
// fenced block counts only if it contains nothing but calls of offered tools,
// only such blocks follow it, and the reply has no other calls; so an example
// with text after it remains text. Reasoning up to the last </think> outside of
// a call does not count, nor does anything after a tool result that the model
// invented. A block that is not closed quotes the rest of the reply.
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
	"fmt"
	"strings"

	"hone/model"
)

// Wrap returns a model that offers tools to m as text. Usage, Raw, Detail and
// errors are m's. Requests without tools pass through unchanged.
//
// Each call in a reply gets an ID with its number in the conversation, starting
// with call_1; this replaces the ID of a call that m made natively. If the text
// contains calls, the Finish Stop becomes Calls; any other Finish is unchanged
// (ruling G3). Stream receives the visible text line by line, but everything
// after the first possible call only when the reply is complete.
func Wrap(m model.Model) model.Model { return wrapped{m} }

type wrapped struct{ inner model.Model }

func (w wrapped) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if len(req.Tools) == 0 {
		return w.inner.Generate(ctx, req)
	}
	asked := asText(req)
	var s *stream
	if req.Stream != nil {
		s = &stream{onText: req.Stream}
		asked.Stream = s.add
	}
	reply, err := w.inner.Generate(ctx, asked)
	if err != nil {
		return reply, err
	}
	reply = withCalls(reply, req)
	if s != nil {
		s.end(reply.Text())
	}
	return reply, nil
}

// withCalls replaces the calls in a reply's text by Call parts, and numbers all calls.
func withCalls(reply model.Reply, req model.Request) model.Reply {
	reply.Parts = split(reply.Parts, find(reply.Text(), req.Tools))
	number := countCalls(req)
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
// one part. Calls have no ID. The tools are those that were offered; if nil,
// only forms with a tag are calls.
func Parse(text string, tools []model.Spec) []model.Part {
	return split([]model.Part{{Text: text}}, find(text, tools))
}

// split replaces the spans in the parts' texts by their calls. Positions of
// spans refer to the joined texts. White space before a call is removed.
func split(parts []model.Part, spans []span) (out []model.Part) {
	at := 0
	for _, p := range parts {
		if p.Text == "" || len(spans) == 0 {
			out = append(out, p)
			continue
		}
		text := p.Text
		for text != "" && len(spans) > 0 && spans[0].from < at+len(text) {
			s := &spans[0]
			out = appendText(out, strings.TrimRight(text[:max(0, s.from-at)], space))
			out, s.parts = append(out, s.parts...), nil // once, if the span continues in another part
			used := min(len(text), s.to-at)
			text, at = text[used:], at+used
			if at == s.to {
				spans = spans[1:]
			}
		}
		if strings.Trim(text, space) != "" {
			out = append(out, model.Part{Text: text})
		}
		at += len(text)
	}
	return out
}

func appendText(parts []model.Part, text string) []model.Part {
	if text == "" {
		return parts
	}
	return append(parts, model.Part{Text: text})
}

func countCalls(req model.Request) int {
	n := 0
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Call != nil {
				n++
			}
		}
	}
	return n
}
