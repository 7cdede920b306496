package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// reply is one reply of the scripted model.
type reply struct {
	Text  string `json:"text"`
	Calls []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"calls"`
}

// The pace of the model: how long it thinks before a reply, and between two words.
const (
	thinking = 600 * time.Millisecond
	word     = 25 * time.Millisecond
)

// serveReplies returns a server that answers each request with the next reply, word by
// word, in the protocol of Gemini's API.
func serveReplies(replies []reply) http.Handler {
	next := make(chan reply, len(replies))
	for _, r := range replies {
		next <- r
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		request, err := io.ReadAll(req.Body)
		select {
		case r := <-next:
			if err == nil {
				r.stream(w, len(request)/4)
			}
		default:
			http.Error(w, "no replies are left", http.StatusBadRequest)
		}
	})
}

// stream writes a reply to a request of so many tokens.
func (r reply) stream(w http.ResponseWriter, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(part any, usage map[string]int, finish string) {
		event, _ := json.Marshal(map[string]any{ // strings and numbers always encode
			"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": finish}},
			"usageMetadata": usage,
		})
		fmt.Fprintf(w, "data: %s\r\n\r\n", event)
		_ = http.NewResponseController(w).Flush()
	}
	time.Sleep(thinking)
	for text := range strings.SplitAfterSeq(r.Text, " ") {
		send(map[string]any{"text": text}, nil, "")
		time.Sleep(word)
	}
	written := len(r.Text) / 4
	for _, c := range r.Calls {
		send(map[string]any{"functionCall": c}, nil, "")
		written += len(c.Args) / 4
	}
	send(map[string]any{"text": ""}, map[string]int{"promptTokenCount": tokens, "candidatesTokenCount": written, "totalTokenCount": tokens + written}, "STOP")
}
