package secret

import (
	"strings"
	"testing"
)

// A value that is split between pieces of a stream is not shown.
func TestGate(t *testing.T) {
	guard := &Guard{Known: []string{"sk-plain-key-longer", "sk-plain-key"}, Secrets: []string{"hunter22-of-env"}}
	for _, text := range []string{"a sk-plain-key-longer b", "a hunter22-of-env b", "a sk-plain-key b", "nothing sk-plain-ke"} {
		for size := 1; size <= len(text); size++ {
			var shown strings.Builder
			g := NewGate(guard, func(s string) { shown.WriteString(s) })
			for at := 0; at < len(text); at += size {
				g.Pass(text[at:min(len(text), at+size)])
			}
			g.Flush()
			if got, want := shown.String(), guard.RedactKnown(text); got != want {
				t.Errorf("%q in pieces of %d bytes is shown as %q, want %q", text, size, got, want)
			}
		}
	}
	shown := ""
	NewGate(&Guard{}, func(s string) { shown += s }).Pass("anything")
	if shown != "anything" {
		t.Errorf("a guard without values shows %q", shown)
	}
}
