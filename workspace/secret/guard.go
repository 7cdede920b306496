// Package secret finds secrets, which no model may see.
//
// A [Guard] reports files that are secret because of their name or contents
// ([Guard.Withheld]) and replaces secrets in texts ([Guard.Redact]).
package secret

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"hone/workspace/treepath"
)

// Guard finds secrets: files that no model may see because of their name,
// contents that look like keys and passwords, and values known to be secret
// (ruling G8). It knows about forty token formats. It would rather miss an
// unusual secret than withhold ordinary code: it does not find values without a
// recognizable format, such as a password in an assignment. It does not look
// inside archives or encodings such as base64.
//
// A nil Guard withholds and redacts nothing. The zero Guard has no exceptions.
// Several goroutines may use a Guard at once, after its fields are set.
type Guard struct {
	// Known are exact values to withhold everywhere, such as the provider keys
	// that hone uses (ruling G6). Values shorter than 8 bytes are ignored. Set
	// Known before the first use.
	Known []string

	send    treepath.Patterns
	once    sync.Once
	scanner *scanner
	values  []string // of Known, longest first
}

// OwnKeyReason is the reason for withholding a file that contains a Known
// value.
const OwnKeyReason = "it contains one of hone's own keys"

// NewGuard returns a guard that does not withhold files that match one of the
// send patterns (ruling G8), unless they contain a Known value. A malformed
// pattern matches nothing.
func NewGuard(send []string) *Guard {
	return &Guard{send: treepath.CompileValid(send, false)}
}

// WithheldName reports whether a file is withheld because of its name alone,
// and why. The path is cleaned and relative to the root. Files such as
// ".env.example" are not withheld.
func (g *Guard) WithheldName(path string) (reason string, ok bool) {
	if g == nil || g.send.Match(path) {
		return "", false
	}
	reason = secretName(path)
	return reason, reason != ""
}

// Withheld reports whether a file is withheld because of its name or contents,
// and why. The reason does not reveal the secret.
func (g *Guard) Withheld(path string, content []byte) (reason string, ok bool) {
	if g == nil {
		return "", false
	}
	g.init()
	if g.holdsKnown(content) {
		return OwnKeyReason, true
	}
	if g.send.Match(path) {
		return "", false
	}
	if reason := secretName(path); reason != "" {
		return reason, true
	}
	if reason := secretConfig(path, content); reason != "" {
		return reason, true
	}
	if found, ok := g.scanner.first(string(content)); ok {
		line := 1 + bytes.Count(content[:found.start], []byte("\n"))
		return fmt.Sprintf("line %d looks like %s", line, found.what), true
	}
	return "", false
}

// redacted replaces each secret.
const redacted = "[withheld]"

// Redact replaces every secret that it finds in a text with "[withheld]". It
// needs the complete text: a secret that is cut off at the end may remain.
func (g *Guard) Redact(text string) string {
	if g == nil {
		return text
	}
	g.init()
	for _, value := range g.values {
		text = strings.ReplaceAll(text, value, redacted)
	}
	found := g.scanner.all(text)
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(text[at:f.start])
		b.WriteString(redacted)
		at = f.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// minKnown is the minimum length of a known value in bytes. Shorter values
// occur in any text by chance.
const minKnown = 8

// holdsKnown reports whether the contents include a known value.
func (g *Guard) holdsKnown(content []byte) bool {
	return slices.ContainsFunc(g.values, func(value string) bool { return bytes.Contains(content, []byte(value)) })
}

// init prepares the scanner on first use, so that a run that scans nothing does
// not pay for it.
func (g *Guard) init() {
	g.once.Do(func() {
		g.scanner = newScanner(shapes())
		for _, value := range g.Known {
			if len(value) >= minKnown {
				g.values = append(g.values, value)
			}
		}
		// Longest first: replacing a value that is part of another would leave
		// the rest of the other.
		slices.SortFunc(g.values, func(a, b string) int { return len(b) - len(a) })
	})
}
