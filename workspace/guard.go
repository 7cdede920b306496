package workspace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Guard finds secrets: files that no model may see by their name, contents
// that look like keys and passwords, and values that are known to be secret
// (ruling G8). It knows about forty shapes of tokens, and prefers to miss an odd one
// over withholding ordinary code: what has no shape of its own, such as a
// password in an assignment, is not found. It does not look inside archives
// or encodings such as base64.
//
// A nil Guard withholds and redacts nothing; the zero Guard has no exceptions.
// A Guard is safe for use by several goroutines once its fields are set.
type Guard struct {
	// Known are exact values that appear nowhere, such as the provider keys
	// that hone holds (ruling G6). Values of less than 8 bytes are ignored.
	// Set it before the first use.
	Known []string

	send    patterns
	once    sync.Once
	scanner *scanner
	values  []string // of Known, the longest first
}

// OwnKey is the reason for which a file is withheld that holds a Known value.
const OwnKey = "it holds a key of hone's own"

// NewGuard returns a guard that withholds no file that one of the send
// patterns means (ruling G8), unless it holds a Known value. A pattern that
// cannot be read means nothing.
func NewGuard(send []string) *Guard {
	g := &Guard{}
	for _, p := range send {
		if one, err := newPatterns([]string{p}, false); err == nil {
			g.send.globs = append(g.send.globs, one.globs...)
		}
	}
	return g
}

// WithheldName reports whether a file is withheld whatever it holds, and why.
// The path is cleaned, relative to the root. ".env.example" and its like are
// not.
func (g *Guard) WithheldName(path string) (reason string, ok bool) {
	if g == nil || g.send.match(path) {
		return "", false
	}
	reason = secretName(path)
	return reason, reason != ""
}

// Withheld reports whether a file is withheld for its name or its contents,
// and why. The reason names no secret.
func (g *Guard) Withheld(path string, content []byte) (reason string, ok bool) {
	if g == nil {
		return "", false
	}
	g.prepare()
	if g.knows(content) {
		return OwnKey, true
	}
	if g.send.match(path) {
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

// redacted stands where a secret stood.
const redacted = "[withheld]"

// Redact replaces all secrets that it finds in a text, each by "[withheld]".
// A text is looked at as a whole: a secret cut at its end may stay.
func (g *Guard) Redact(text string) string {
	if g == nil {
		return text
	}
	g.prepare()
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

// minKnown is the least length of a known value, in bytes: shorter ones stand
// in any text by chance.
const minKnown = 8

// knows reports whether the contents hold a known value.
func (g *Guard) knows(content []byte) bool {
	return slices.ContainsFunc(g.values, func(value string) bool { return bytes.Contains(content, []byte(value)) })
}

// prepare makes what is needed to scan, on first use: a run that looks at
// nothing pays nothing.
func (g *Guard) prepare() {
	g.once.Do(func() {
		g.scanner = newScanner(shapes())
		for _, value := range g.Known {
			if len(value) >= minKnown {
				g.values = append(g.values, value)
			}
		}
		// One may be part of another, whose rest would stay.
		slices.SortFunc(g.values, func(a, b string) int { return len(b) - len(a) })
	})
}
