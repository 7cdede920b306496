package page

import (
	"strings"
	"sync"

	"hone/history"
)

// Reply is the text of a model's reply while it arrives. The zero value is empty. Its methods
// may be called from several goroutines, and on nil, which stays empty.
type Reply struct {
	mu   sync.Mutex
	text string
}

// mostReply is how many bytes of the end of a reply are kept.
const mostReply = 16 << 10

// Add adds a piece of the text. Secrets must have been removed from it.
func (r *Reply) Add(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text += text
	if cut := len(r.text) - mostReply; cut > 0 {
		_, r.text, _ = strings.Cut(r.text[cut:], "\n") // whole lines
	}
}

// Show empties the text before each attempt at a call, and when the reply is recorded.
func (r *Reply) Show(e history.Event) {
	switch e.Payload.(type) {
	case history.Reserve, history.Replied:
		if r != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.text = ""
		}
	}
}

// Text returns the text that has arrived.
func (r *Reply) Text() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}
