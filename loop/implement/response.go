package implement

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
)

// response returns the raw response of a provider as one JSON object, which is what
// code-commit logs. It joins the chunks of a stream of Gemini to the response that a
// request without a stream gets, and returns everything else unchanged.
func response(raw json.RawMessage) json.RawMessage {
	var chunks []map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&chunks) != nil {
		return raw
	}
	whole, first, content, parts := map[string]any{}, map[string]any{}, map[string]any{}, []any{}
	found := false
	for _, chunk := range chunks {
		maps.Copy(whole, chunk)
		candidates, _ := chunk["candidates"].([]any)
		if len(candidates) == 0 {
			continue
		}
		found = true
		candidate, _ := candidates[0].(map[string]any)
		maps.Copy(first, candidate)
		more, _ := candidate["content"].(map[string]any)
		maps.Copy(content, more)
		list, _ := more["parts"].([]any)
		for _, p := range list {
			parts = appendPart(parts, p)
		}
	}
	if !found {
		return raw
	}
	content["parts"], first["content"], whole["candidates"] = parts, content, []any{first}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(whole) != nil {
		return raw
	}
	return bytes.TrimSpace(b.Bytes())
}

// Texts that differ in nothing else are joined.
func appendPart(parts []any, part any) []any {
	next, _ := part.(map[string]any)
	text, isText := next["text"].(string)
	if n := len(parts); n > 0 && isText {
		last, _ := parts[n-1].(map[string]any)
		start, isText := last["text"].(string)
		same := maps.Clone(next)
		same["text"] = start
		if isText && reflect.DeepEqual(last, same) {
			same["text"] = start + text
			parts[n-1] = same
			return parts
		}
	}
	return append(parts, part)
}
