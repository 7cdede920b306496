package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"hone/model"
)

// chat speaks OpenAI's chat completions, as compatible servers do too. The
// last element of its Events is the finish reason together with the usage and
// [DONE].
//
// Turn.Thinking is sent as reasoning_content, as by DeepSeek and vLLM, and its
// signature in reasoning_details, as by OpenRouter. A Filtered turn with the detail "refusal" is sent as a
// refusal with the finish reason "stop".
type chat struct{}

func (chat) Match(path string) bool { return strings.HasSuffix(path, "/chat/completions") }

func (chat) Stream(_ *http.Request, body []byte) bool { return requestsStream(body) }

// requestsStream reports whether a JSON body contains "stream": true.
func requestsStream(body []byte) bool {
	var request struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal(body, &request) == nil && request.Stream
}

func (c chat) Events(t Turn) [][]byte {
	var events [][]byte
	send := func(delta object) { events = append(events, c.event(delta, nil)) }
	send(object{"role": "assistant", "content": "", "refusal": nil})
	for _, text := range t.Pieces(t.Thinking) {
		send(object{"reasoning_content": text})
	}
	if t.Thinking != "" {
		send(object{"reasoning_details": reasoningDetails(t)})
	}
	for _, text := range t.Pieces(t.Text) {
		send(object{c.textField(t): text})
	}
	for i, call := range t.Calls {
		head := c.call(call, "")
		head["index"] = i
		send(object{"tool_calls": []any{head}})
		for _, args := range t.Pieces(call.Args) {
			more := object{"index": i, "function": object{"arguments": args}}
			send(object{"tool_calls": []any{more}})
		}
	}
	end := c.event(object{}, c.reason(t))
	if t.Usage != nil {
		end = fmt.Appendf(end, "data: %s\n\n", encode(c.envelope(".chunk", []any{}, c.usage(t))))
	}
	return append(events, append(end, "data: [DONE]\n\n"...))
}

func reasoningDetails(t Turn) []any {
	return []any{object{"type": "reasoning.encrypted", "index": 0, "data": t.Signature()}}
}

func (c chat) event(delta object, reason any) []byte {
	choice := object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason}
	return fmt.Appendf(nil, "data: %s\n\n", encode(c.envelope(".chunk", []any{choice}, nil)))
}

func (c chat) Body(t Turn) []byte {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if t.Text != "" || len(t.Calls) == 0 {
		message[c.textField(t)] = t.Text
	}
	if t.Thinking != "" {
		message["reasoning_content"], message["reasoning_details"] = t.Thinking, reasoningDetails(t)
	}
	var calls []any
	for _, call := range t.Calls {
		calls = append(calls, c.call(call, call.Args))
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	choice := object{"index": 0, "message": message, "logprobs": nil, "finish_reason": c.reason(t)}
	return encode(c.envelope("", []any{choice}, c.usage(t)))
}

func (chat) envelope(kind string, choices []any, usage any) object {
	e := object{
		"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion" + kind,
		"created": 1741569952, "model": "gpt-test", "choices": choices,
	}
	if usage != nil || kind != "" {
		e["usage"] = usage
	}
	return e
}

func (chat) call(call model.Call, args string) object {
	c := object{"type": "function", "function": object{"name": call.Name, "arguments": args}}
	if call.ID != "" {
		c["id"] = call.ID
	}
	return c
}

func (chat) textField(t Turn) string {
	if t.Detail == "refusal" {
		return "refusal"
	}
	return "content"
}

func (chat) reason(t Turn) string {
	switch {
	case t.Detail == "refusal":
		return "stop"
	case t.Detail != "":
		return t.Detail
	case t.Finish == model.Length:
		return "length"
	case t.Finish == model.Filtered:
		return "content_filter"
	case t.Finish == model.Other:
		return "error"
	case len(t.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (chat) usage(t Turn) any {
	u := t.Usage
	if u == nil {
		return nil
	}
	return t.ReportedUsage(object{
		"prompt_tokens":         u.Input + u.CacheRead,
		"completion_tokens":     u.Output,
		"total_tokens":          u.Total(),
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead, "audio_tokens": 0},
		"completion_tokens_details": object{
			"reasoning_tokens": u.Reasoning, "audio_tokens": 0,
			"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
		},
	}, map[string]string{
		"input": "prompt_tokens", "output": "completion_tokens", "cached": "prompt_tokens_details.cached_tokens",
		"reasoning": "completion_tokens_details.reasoning_tokens",
	})
}

func (chat) Error(t Turn) []byte { return openaiError(t) }

// openaiError returns an error's body, the same for both of OpenAI's wires.
func openaiError(t Turn) []byte {
	kind := "invalid_request_error"
	switch {
	case t.Code == "insufficient_quota":
		kind = t.Code
	case t.Status == http.StatusTooManyRequests:
		kind = "requests"
	case t.Status >= 500:
		kind = "server_error"
	}
	var code any
	if t.Code != "" {
		code = t.Code
	}
	return encode(object{"error": object{"message": t.Message, "type": kind, "param": nil, "code": code}})
}
