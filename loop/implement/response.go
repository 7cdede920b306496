package implement

import (
	"bytes"
	"encoding/json"
	"maps"
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
		parts = append(parts, list...)
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
