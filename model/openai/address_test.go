package openai

import (
	"testing"

	"hone/model"
)

// The base URL decides the wire and the name of the output limit. The test
// inspects the request because it cannot call OpenAI's server.
func TestOpenAIsAddress(t *testing.T) {
	for _, test := range []struct {
		base      string
		openAI    bool
		responses bool
	}{
		{"", true, true},
		{"https://api.openai.com/v1", true, true},
		{"https://eu.api.openai.com/v1/", true, true},
		{"http://localhost:11434/v1", false, false},
		{"https://api.openai.com.example.org/v1", false, false},
	} {
		c := Config{Name: "m", BaseURL: test.base}
		if _, ok := New(c).(responsesModel); ok != test.responses {
			t.Errorf("%q: uses the Responses wire: %t, want %t", test.base, ok, test.responses)
		}
		c.Wire = Chat
		chat, ok := New(c).(chatModel)
		if !ok {
			t.Fatalf("%q: does not use the configured chat wire", test.base)
		}
		r := chat.request(model.Request{MaxOutput: 5, CacheKey: "key"})
		if responses := (responsesModel{New(c).(chatModel).server}).request(model.Request{CacheKey: "key"}); (r.CacheKey == "key") != test.openAI || responses.CacheKey != r.CacheKey {
			t.Errorf("%q: prompt_cache_key %q and %q", test.base, r.CacheKey, responses.CacheKey)
		}
		if (r.MaxCompletion == 5) != test.openAI || (r.MaxTokens == 5) == test.openAI {
			t.Errorf("%q: max_completion_tokens %d, max_tokens %d", test.base, r.MaxCompletion, r.MaxTokens)
		}
	}
}
