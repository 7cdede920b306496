package modeltest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hone/model"
)

// anthropic speaks the Messages API.
//
// Turn.Thinking is sent as a thinking block with a signature, or as a
// redacted_thinking block if it begins with "redacted:".
type anthropic struct{}

func (anthropic) Match(path string) bool {
	return strings.HasPrefix(path, "/v1/messages") || strings.HasPrefix(path, "/v1/models")
}

func (anthropic) Stream(_ *http.Request, body []byte) bool { return requestsStream(body) }

func (a anthropic) Events(t Turn) [][]byte {
	s := &messageStream{}
	s.send("message_start", object{"message": a.message(t, []any{}, nil)})
	s.send("ping", object{})
	if t.Thinking != "" {
		s.thinking(t)
	}
	if t.Text != "" {
		s.block(object{"type": "text", "text": ""}, deltas("text_delta", "text", t.Pieces(t.Text)))
	}
	for _, call := range t.Calls {
		start := object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}}
		pieces := append([]string{""}, t.Pieces(call.Args)...)
		s.block(start, deltas("input_json_delta", "partial_json", pieces))
	}
	delta := object{"delta": a.stop(t)}
	if t.Usage != nil {
		delta["usage"] = a.usage(t, t.Usage.Output)
	}
	s.send("message_delta", delta)
	s.send("message_stop", object{})
	// Without the reason in it, nobody would miss the last event.
	n := len(s.events) - 2
	return append(s.events[:n], slices.Concat(s.events[n:]...))
}

func (a anthropic) Body(t Turn) []byte {
	content := []any{}
	if t.Thinking != "" {
		content = append(content, thinkingBlock(t))
	}
	if t.Text != "" {
		content = append(content, object{"type": "text", "text": t.Text})
	}
	for _, call := range t.Calls {
		content = append(content, object{
			"type": "tool_use", "id": call.ID, "name": call.Name, "input": arguments(call.Args),
		})
	}
	return encode(a.message(t, content, a.stop(t)))
}

// message returns a Message; a nil stop means that it is not complete.
func (a anthropic) message(t Turn, content []any, stop object) object {
	m := object{
		"id": "msg_013Zva2CMHLNnjNjJKqJ2EF", "type": "message", "role": "assistant",
		"model": "claude-test", "content": content, "stop_reason": nil, "stop_sequence": nil,
	}
	output := int64(1)
	if stop != nil {
		for key, value := range stop {
			m[key] = value
		}
		if t.Usage != nil {
			output = t.Usage.Output
		}
	}
	if t.Usage != nil {
		m["usage"] = a.usage(t, output)
	}
	return m
}

func (anthropic) usage(t Turn, output int64) any {
	u := object{
		"input_tokens":                t.Usage.Input,
		"cache_creation_input_tokens": t.Usage.CacheWrite,
		"cache_read_input_tokens":     t.Usage.CacheRead,
		"output_tokens":               output,
		"service_tier":                "standard",
	}
	if t.Usage.Reasoning > 0 && output == t.Usage.Output {
		u["output_tokens_details"] = object{"thinking_tokens": t.Usage.Reasoning}
	}
	return t.ReportedUsage(u, map[string]string{
		"input": "input_tokens", "output": "output_tokens", "cached": "cache_read_input_tokens",
		"reasoning": "output_tokens_details.thinking_tokens",
	})
}

func (anthropic) stop(t Turn) object {
	reason := map[model.Finish]string{
		model.Calls:    "tool_use",
		model.Length:   "max_tokens",
		model.Filtered: "refusal",
		model.Other:    "pause_turn",
	}[t.Finish]
	if reason == "" && len(t.Calls) > 0 {
		reason = "tool_use"
	}
	stop := object{"stop_reason": cmp.Or(t.Detail, reason, "end_turn"), "stop_sequence": nil}
	if stop["stop_reason"] == "refusal" {
		stop["stop_details"] = object{"type": "refusal", "category": nil, "explanation": nil}
	}
	return stop
}

// Error translates one code: the API reports a prompt that is too long as an
// invalid_request_error.
func (anthropic) Error(t Turn) []byte {
	kind, message := cmp.Or(t.Code, anthropicType(t.Status)), t.Message
	if t.Code == "context_length_exceeded" {
		kind, message = "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"
	}
	return encode(object{
		"type":       "error",
		"error":      object{"type": kind, "message": message},
		"request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
	})
}

func anthropicType(status int) string {
	switch status {
	case 400:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 504:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	return "api_error"
}

// messageStream collects the events of a streamed Message.
type messageStream struct {
	events [][]byte
	blocks int
}

func (s *messageStream) send(kind string, data object) {
	data["type"] = kind
	s.events = append(s.events, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(data)))
}

func (s *messageStream) block(start object, deltas []object) {
	index := s.blocks
	s.blocks++
	s.send("content_block_start", object{"index": index, "content_block": start})
	for _, delta := range deltas {
		s.send("content_block_delta", object{"index": index, "delta": delta})
	}
	s.send("content_block_stop", object{"index": index})
}

func (s *messageStream) thinking(t Turn) {
	block := thinkingBlock(t)
	if block["type"] == "redacted_thinking" {
		s.block(block, nil)
		return
	}
	pieces := deltas("thinking_delta", "thinking", t.Pieces(t.Thinking))
	pieces = append(pieces, object{"type": "signature_delta", "signature": block["signature"]})
	s.block(object{"type": "thinking", "thinking": "", "signature": ""}, pieces)
}

func thinkingBlock(t Turn) object {
	if data, ok := strings.CutPrefix(t.Thinking, "redacted:"); ok {
		return object{"type": "redacted_thinking", "data": data}
	}
	return object{"type": "thinking", "thinking": t.Thinking, "signature": t.Signature()}
}

func deltas(kind, field string, pieces []string) []object {
	var list []object
	for _, piece := range pieces {
		list = append(list, object{"type": kind, field: piece})
	}
	return list
}
