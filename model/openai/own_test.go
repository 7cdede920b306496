package openai

import (
	"testing"

	"hone/model"
)

// OpenAI's own address decides the wire and the name of the output limit; it
// cannot be called from a test.
func TestOwnAddress(t *testing.T) {
	for _, test := range []struct {
		base      string
		own       bool
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
			t.Errorf("%q: the Responses wire is chosen: %t", test.base, ok)
		}
		c.Wire = Chat
		chat, ok := New(c).(chatModel)
		if !ok {
			t.Fatalf("%q: the chat wire that was asked for is not chosen", test.base)
		}
		r := chat.request(model.Request{MaxOutput: 5})
		if (r.MaxCompletion == 5) != test.own || (r.MaxTokens == 5) == test.own {
			t.Errorf("%q: max_completion_tokens %d, max_tokens %d", test.base, r.MaxCompletion, r.MaxTokens)
		}
	}
}
