package page

import (
	"strconv"
	"strings"
	"sync"

	"hone/history"
)

// Reply is the text of a model's reply while it arrives. The zero value is empty. Its methods
// may be called from several goroutines, and on nil, which stays empty.
type Reply struct {
	mu   sync.Mutex
	text string
	n    int // how often it has changed
}

// mostReply is how many bytes of the end of a reply are kept.
const mostReply = 16 << 10

// Add adds a piece of the text. Secrets must have been removed from it.
func (r *Reply) Add(text string) {
	r.set(func(was string) string {
		all := was + text
		if cut := len(all) - mostReply; cut > 0 {
			_, all, _ = strings.Cut(all[cut:], "\n") // whole lines
		}
		return all
	})
}

// Show empties the text before each attempt at a call, and when the reply is recorded.
func (r *Reply) Show(e history.Event) {
	switch e.Payload.(type) {
	case history.Reserve, history.Replied:
		r.set(func(string) string { return "" })
	}
}

func (r *Reply) set(change func(string) string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := change(r.text); text != r.text {
		r.text, r.n = text, r.n+1
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

// State returns a text that differs whenever Text does.
func (r *Reply) State() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return strconv.Itoa(r.n)
}
