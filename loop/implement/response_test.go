package implement

import (
	"encoding/json"
	"testing"
)

// TestResponse: ruling C9. The log has one object, as code-commit wrote it.
func TestResponse(t *testing.T) {
	for raw, want := range map[string]string{
		`{"candidates":[],"x":1}`: `{"candidates":[],"x":1}`,
		`null`:                    `null`,
		`[{"choices":[1]}]`:       `[{"choices":[1]}]`,
		`[{"candidates":[{"content":{"role":"model","parts":[{"text":"a<"}]}}],"usageMetadata":{"n":1}},
		  {"candidates":[{"content":{"role":"model","parts":[{"text":"b"},{"text":"c","thought":true}]}}]},
		  {"candidates":[{"content":{"parts":[{"text":"d","thought":true},{"text":"e"}]},"finishReason":"STOP"}],"usageMetadata":{"n":12345678901234567890}},{"responseId":"r"}]`: `{"candidates":[{"content":{"parts":[{"text":"a<b"},{"text":"cd","thought":true},{"text":"e"}],"role":"model"},"finishReason":"STOP"}],` +
			`"responseId":"r","usageMetadata":{"n":12345678901234567890}}`,
	} {
		if got := string(response(json.RawMessage(raw))); got != want {
			t.Errorf("response(%s)\n got %s\nwant %s", raw, got, want)
		}
	}
}
