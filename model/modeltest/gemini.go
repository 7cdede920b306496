package modeltest

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"hone/model"
)

// gemini speaks generateContent and streamGenerateContent of the Gemini API. A
// stream has no final event; the event with a finishReason, or with a prompt's
// blockReason, completes it.
//
// Turn.Thinking is sent as a thoughtSignature, as the models do it: on the
// first call, or on an empty text part at the end if there are no calls. Calls
// without an ID are sent without one. A Filtered turn without text is a
// blocked prompt.
type gemini struct{}

func (gemini) Match(path string) bool { return strings.HasPrefix(path, "/v1beta/models") }

func (gemini) Stream(r *http.Request, _ []byte) bool {
	return strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") == "sse"
}

func (g gemini) Events(t Turn) [][]byte {
	var events [][]byte
	send := func(chunk map[string]any) {
		events = append(events, fmt.Appendf(nil, "data: %s\r\n\r\n", encode(chunk)))
	}
	for _, text := range t.Pieces(t.Text) {
		send(g.chunk(t, nil, object{"text": text}))
	}
	for i, call := range t.Calls {
		send(g.chunk(t, nil, g.call(t, i, call)))
	}
	send(g.last(t))
	return events
}

func (g gemini) Body(t Turn) []byte {
	var parts []any
	if t.Text != "" {
		parts = append(parts, object{"text": t.Text})
	}
	for i, call := range t.Calls {
		parts = append(parts, g.call(t, i, call))
	}
	if t.Thinking != "" && len(t.Calls) == 0 {
		parts = append(parts, g.signed(t))
	}
	if g.blocked(t) {
		return encode(g.last(t))
	}
	return encode(g.chunk(t, g.finish(t), parts...))
}

// last returns the chunk that completes the stream.
func (g gemini) last(t Turn) object {
	if g.blocked(t) {
		chunk := object{"promptFeedback": object{"blockReason": cmp.Or(t.Detail, "SAFETY")}}
		return g.trailer(t, chunk)
	}
	if t.Thinking != "" && len(t.Calls) == 0 {
		return g.chunk(t, g.finish(t), g.signed(t))
	}
	return g.chunk(t, g.finish(t), object{"text": ""})
}

func (gemini) blocked(t Turn) bool {
	return t.Finish == model.Filtered && t.Text == "" && len(t.Calls) == 0
}

func (gemini) signed(t Turn) object {
	return object{"text": "", "thoughtSignature": t.Signature()}
}

func (gemini) call(t Turn, i int, call model.Call) object {
	function := object{"name": call.Name, "args": arguments(call.Args)}
	if call.ID != "" {
		function["id"] = call.ID
	}
	part := object{"functionCall": function}
	if i == 0 && t.Thinking != "" {
		part["thoughtSignature"] = t.Signature()
	}
	return part
}

func (g gemini) chunk(t Turn, finish object, parts ...any) object {
	candidate := object{"content": object{"parts": parts, "role": "model"}, "index": 0}
	for key, value := range finish {
		candidate[key] = value
	}
	return g.trailer(t, object{"candidates": []any{candidate}})
}

func (gemini) finish(t Turn) object {
	reason := map[model.Finish]string{
		model.Length:   "MAX_TOKENS",
		model.Filtered: "SAFETY",
		model.Other:    "OTHER",
	}[t.Finish]
	finish := object{"finishReason": cmp.Or(t.Detail, reason, "STOP")}
	if t.Detail == "MALFORMED_FUNCTION_CALL" {
		finish["finishMessage"] = "Malformed function call: " + t.Text
	}
	return finish
}

// trailer adds the fields of every chunk in a stream.
func (gemini) trailer(t Turn, chunk object) object {
	chunk["modelVersion"] = "gemini-test"
	chunk["responseId"] = "mAItaLmkHPPlz7IPvtfUqQ4"
	if u := t.Usage; u != nil {
		chunk["usageMetadata"] = t.ReportedUsage(object{
			"promptTokenCount":        u.Input + u.CacheRead,
			"cachedContentTokenCount": u.CacheRead,
			"candidatesTokenCount":    u.Output - u.Reasoning,
			"thoughtsTokenCount":      u.Reasoning,
			"totalTokenCount":         u.Input + u.CacheRead + u.Output,
			"promptTokensDetails":     []any{object{"modality": "TEXT", "tokenCount": u.Input + u.CacheRead}},
		}, map[string]string{
			"input": "promptTokenCount", "output": "candidatesTokenCount", "cached": "cachedContentTokenCount",
			"reasoning": "thoughtsTokenCount",
		})
	}
	return chunk
}

// Error translates two codes: the API reports both a context that is too long
// and an invalid key as INVALID_ARGUMENT.
func (gemini) Error(t Turn) []byte {
	status, message, details := cmp.Or(t.Code, geminiStatus(t.Status)), t.Message, []any{}
	switch t.Code {
	case "context_length_exceeded":
		status = "INVALID_ARGUMENT"
		message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
	case "API_KEY_INVALID":
		status = "INVALID_ARGUMENT"
		details = append(details, object{
			"@type":  "type.googleapis.com/google.rpc.ErrorInfo",
			"reason": "API_KEY_INVALID", "domain": "googleapis.com",
		})
	}
	if t.RetryAfter != "" {
		details = append(details, object{
			"@type":      "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": t.RetryAfter + "s",
		})
	}
	problem := object{"code": t.Status, "message": message, "status": status}
	if len(details) > 0 {
		problem["details"] = details
	}
	return encode(object{"error": problem})
}

func geminiStatus(status int) string {
	switch status {
	case 400:
		return "INVALID_ARGUMENT"
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	return "INTERNAL"
}
