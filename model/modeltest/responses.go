package modeltest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"hone/model"
)

// responses speaks OpenAI's Responses API. One of response.completed,
// response.incomplete and response.failed completes a stream.
//
// Turn.Thinking is sent as a reasoning item with encrypted content. A
// Filtered turn with the detail "refusal" is a message with a refusal; a turn
// with the Finish Other is a failed response.
type responses struct{}

func (responses) Match(path string) bool { return strings.HasSuffix(path, "/responses") }

func (responses) Stream(_ *http.Request, body []byte) bool { return requestsStream(body) }

func (r responses) Events(t Turn) [][]byte {
	s := &responseStream{}
	s.send("response.created", object{"response": r.response(t, "in_progress", nil)})
	s.send("response.in_progress", object{"response": r.response(t, "in_progress", nil)})
	var output []any
	for _, item := range r.items(t) {
		s.item(t, len(output), item)
		output = append(output, item)
	}
	status := r.status(t)
	s.send("response."+status, object{"response": r.response(t, status, output)})
	return s.events
}

func (r responses) Body(t Turn) []byte {
	var output []any
	for _, item := range r.items(t) {
		output = append(output, item)
	}
	return encode(r.response(t, r.status(t), output))
}

func (responses) Error(t Turn) []byte { return openaiError(t) }

func (responses) status(t Turn) string {
	switch {
	case t.Finish == model.Length, t.Finish == model.Filtered && t.Detail != "refusal":
		return "incomplete"
	case t.Finish == model.Other:
		return "failed"
	}
	return "completed"
}

func (r responses) response(t Turn, status string, output []any) object {
	if output == nil {
		output = []any{}
	}
	response := object{
		"id": "resp_67ccd2bed1ec8190b14f964abc054267", "object": "response", "created_at": 1741476542,
		"model": "gpt-test", "status": status, "error": nil, "incomplete_details": nil,
		"output": output, "store": false,
	}
	switch status {
	case "incomplete":
		reason := cmp.Or(t.Detail, map[model.Finish]string{
			model.Length:   "max_output_tokens",
			model.Filtered: "content_filter",
		}[t.Finish])
		response["incomplete_details"] = object{"reason": reason}
	case "failed":
		response["error"] = object{"code": cmp.Or(t.Detail, "server_error"), "message": "The model failed to respond."}
	}
	if u := t.Usage; u != nil && status != "in_progress" {
		response["usage"] = t.ReportedUsage(object{
			"input_tokens":          u.Input + u.CacheRead,
			"input_tokens_details":  object{"cached_tokens": u.CacheRead},
			"output_tokens":         u.Output,
			"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
			"total_tokens":          u.Total(),
		}, map[string]string{
			"input": "input_tokens", "output": "output_tokens", "cached": "input_tokens_details.cached_tokens",
			"reasoning": "output_tokens_details.reasoning_tokens",
		})
	}
	return response
}

// items returns the output of a turn: reasoning, message, calls.
func (r responses) items(t Turn) []object {
	var items []object
	if t.Thinking != "" {
		items = append(items, object{
			"type": "reasoning", "id": "rs_67ccd3acc8d48190", "summary": []any{},
			"encrypted_content": t.Signature(),
		})
	}
	if t.Text != "" {
		items = append(items, object{
			"type": "message", "id": "msg_67ccd3acc8d48191", "status": "completed",
			"role": "assistant", "content": []any{r.content(t, t.Text)},
		})
	}
	for i, call := range t.Calls {
		items = append(items, object{
			"type": "function_call", "id": fmt.Sprintf("fc_67ccd3acc8d4%04d", i), "status": "completed",
			"call_id": call.ID, "name": call.Name, "arguments": call.Args,
		})
	}
	return items
}

func (responses) content(t Turn, text string) object {
	if t.Detail == "refusal" {
		return object{"type": "refusal", "refusal": text}
	}
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// responseStream collects the events of a streamed response.
type responseStream struct{ events [][]byte }

func (s *responseStream) send(kind string, data object) {
	data["type"], data["sequence_number"] = kind, len(s.events)
	s.events = append(s.events, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(data)))
}

func (s *responseStream) item(t Turn, index int, item object) {
	added := maps.Clone(item)
	added["status"] = "in_progress"
	where := object{"output_index": index, "item_id": item["id"]}
	switch item["type"] {
	case "message":
		added["content"] = []any{}
		s.send("response.output_item.added", object{"output_index": index, "item": added})
		s.text(t, where)
	case "function_call":
		added["arguments"] = ""
		s.send("response.output_item.added", object{"output_index": index, "item": added})
		args := item["arguments"].(string)
		for _, piece := range t.Pieces(args) {
			s.send("response.function_call_arguments.delta", with(where, object{"delta": piece}))
		}
		s.send("response.function_call_arguments.done", with(where, object{"arguments": args}))
	default:
		delete(added, "status")
		s.send("response.output_item.added", object{"output_index": index, "item": added})
	}
	s.send("response.output_item.done", object{"output_index": index, "item": item})
}

func (s *responseStream) text(t Turn, where object) {
	where = with(where, object{"content_index": 0})
	kind, field := "response.output_text", "text"
	if t.Detail == "refusal" {
		kind, field = "response.refusal", "refusal"
	}
	s.send("response.content_part.added", with(where, object{"part": responses{}.content(t, "")}))
	for _, piece := range t.Pieces(t.Text) {
		s.send(kind+".delta", with(where, object{"delta": piece}))
	}
	s.send(kind+".done", with(where, object{field: t.Text}))
	s.send("response.content_part.done", with(where, object{"part": responses{}.content(t, t.Text)}))
}

// with returns a copy of o with the fields of more.
func with(o, more object) object {
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}
