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
	"fmt"
	"slices"
	"strings"

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
