// Package texttools lets a model without native tool calls use tools.
//
// [Wrap] puts a model around another one. A request that offers tools goes to
// the inner model as text alone: the tools are described at the end of the
// system text, and the calls and results of earlier turns are written out in
// the messages. What the inner model answers is read for calls, which become
// the reply's Call parts.
//
// # The form that is asked for
//
// A call is a JSON object between tags, which begin a line:
//
//	<tool_call>
//	{"name": "read", "arguments": {"path": "main.go"}}
//	</tool_call>
//
// Many open models were trained to write exactly this (Hermes, Qwen, SmolLM
// and others), and those that were not know both halves of it. Its ends do not
// depend on its contents: the JSON says itself where it ends, so an argument
// may hold code, fences and even the tags. A fenced block alone would be the
// form of every example in an answer; parameters in tags of their own would
// leave open what is a number and where a file's text ends.
//
// # The forms that are read
//
// Models write what they were trained on whatever they are told, so these are
// calls too, several of them in order, with text before and after:
//
//   - <tool_call> and <function_call> around an object, several, a list, or a
//     <function=…> with its parameters in tags (Qwen3-Coder); the closing tag
//     may be missing after an object that is whole
//   - <function=name>{…}</function> (Llama 3.1), and <|python_tag|>{…}
//   - [TOOL_CALLS] with a list of objects, or with name[ARGS]{…} (Mistral)
//   - a reply that is nothing but such objects (Llama 3), or one object with
//     "text" and "tool_calls" (CodeScribe's form for Argo); what follows that
//     object is text
//   - a fenced block of such objects or tagged calls
//
// The name may stand in name, tool, tool_name or function, the arguments in
// arguments, parameters, args or input, as an object or as a string. Line
// feeds and tabs that stand bare in a JSON string are taken for what they are.
//
// # What is not a call
//
// Quoted text. A tag counts only outside fenced blocks and where its line
// has no backtick before it, is not indented like code (four columns) and is
// no Markdown quotation. In the middle of a line it must be closed as well,
// and not stand right behind a quotation mark. A reply that is JSON from end
// to end and not a call by itself holds none in its strings. A fenced block is never read for calls, with one exception: its whole contents
// are calls of tools that were offered, only such blocks follow it in the
// reply, and the reply has no call in a form of its own. So an example with
// words after it stays text. What stands between <think> and </think> at the
// beginning is not read either, nor what follows a tool's result that the
// model made up itself. A block that is never closed quotes all that follows.
//
// A call that cannot be read is a Call all the same, with all that the model
// wrote as its arguments, so that whoever runs the tools tells the model. If
// it cannot be said where it ends, it ends with the last closing tag: what
// stands between could be its contents, and must not run by itself.
//
// # Escapes
//
// Texts and results of the conversation may hold the syntax, in a file that
// was read for instance. There each tag is written with a backslash in it,
// <\tool_call>, which is no tag, and one more backslash where there were some
// already. The model is told, and quoting such a text forges nothing.
//
// # What it does not guard
//
// A model that takes text for a tag, leaves out the backslash and writes the
// tags bare has made a call. And a file's text shown as a fenced example at
// the very end of a reply is a call if it is exactly that. Tools stand behind
// their own walls for this reason.
package texttools

import (
	"context"
	"fmt"
	"strings"

	"hone/model"
)

// Wrap returns a model that offers tools by text to m, which sees none. Usage,
// Raw, Detail and errors are m's own. Requests without tools go through
// unchanged.
//
// Every call of a reply gets an ID from its position in the conversation,
// call_1 being the first; a call that m made natively is kept with another ID.
// Finish becomes Calls where it was Stop and the text held calls; any other
// end stays (ruling G3). Stream is given the visible text line by line, and
// what follows the first thing that looks like a call when the reply is whole.
func Wrap(m model.Model) model.Model { return wrapped{m} }

type wrapped struct{ inner model.Model }

func (w wrapped) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if len(req.Tools) == 0 {
		return w.inner.Generate(ctx, req)
	}
	asked := inWords(req)
	var s *stream
	if req.Stream != nil {
		s = newStream(req.Stream)
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

// withCalls reads a reply's text for calls.
func withCalls(reply model.Reply, req model.Request) model.Reply {
	spans := find(reply.Text(), req.Tools)
	reply.Parts = number(split(reply.Parts, spans), countCalls(req))
	if reply.Finish == model.Stop && len(reply.Calls()) > 0 {
		reply.Finish = model.Calls
	}
	return reply
}

// Parse splits a text into its words and its calls, in order. A text without
// calls is one part. Calls have no ID. tools are those that were offered; nil
// leaves only the forms that have a tag of their own.
func Parse(text string, tools []model.Spec) []model.Part {
	return split([]model.Part{{Text: text}}, find(text, tools))
}

// split takes the spans out of the parts' texts, which they count through from
// the first to the last, and puts calls in their places. White space before a
// call goes with it.
func split(parts []model.Part, spans []span) []model.Part {
	var out []model.Part
	at := 0
	for _, p := range parts {
		if p.Text == "" || len(spans) == 0 {
			out, at = append(out, p), at+len(p.Text)
			continue
		}
		begin, end := at, at+len(p.Text)
		for at < end && len(spans) > 0 && spans[0].from < end {
			s := &spans[0]
			if at < s.from {
				out = appendText(out, strings.TrimRight(p.Text[at-begin:s.from-begin], space))
			}
			// The rest of a call that began in an earlier part finds nothing here.
			out = append(out, s.take()...)
			at = min(end, s.to)
			if at == s.to {
				spans = spans[1:]
			}
		}
		if rest := p.Text[at-begin:]; strings.Trim(rest, space) != "" {
			out = append(out, model.Part{Text: rest})
		}
		at = end
	}
	return out
}

func appendText(parts []model.Part, text string) []model.Part {
	if text == "" {
		return parts
	}
	return append(parts, model.Part{Text: text})
}

// number gives every call its ID, after the calls that came before.
func number(parts []model.Part, before int) []model.Part {
	out := make([]model.Part, len(parts))
	for i, p := range parts {
		if p.Call != nil {
			before++
			call := *p.Call
			call.ID = fmt.Sprintf("call_%d", before)
			p.Call = &call
		}
		out[i] = p
	}
	return out
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
