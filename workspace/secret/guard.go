// Package secret finds secrets, which no model may see.
//
// A [Guard] reports files that are secret because of their name or contents
// ([Guard.Withheld]) and replaces secrets in texts ([Guard.Redact]).
package secret

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hone/workspace/treepath"
)

// Guard finds secrets: files that no model may see because of their name,
// contents that look like keys and passwords, and values known to be secret
// (ruling G8). It knows about a hundred token formats. It would rather miss an
// unusual secret than withhold ordinary code: it does not find values without a
// recognizable format, such as a password in an assignment, unless it knows
// them. It does not look inside archives. It finds secrets between the control
// sequences of a terminal, and known values also in base64 and hex.
//
// A guard of [NewGuard] remembers files without secrets ([Guard.MarkClean]), and can
// hand them on to the next process ([Guard.CleanList]).
//
// A nil Guard withholds and redacts nothing. The zero Guard has no exceptions.
// Several goroutines may use a Guard at once, after its fields are set. Set them
// before the first use.
type Guard struct {
	// Known are exact values to withhold everywhere, such as the provider keys
	// that hone uses (ruling G6). Values shorter than 8 bytes are ignored.
	Known []string
	// Secrets are the values of withheld files, of git's configuration and of variables;
	// see [Guard.Values], [Credentials] and [Variable]. A file that contains one is withheld too,
	// unless a send pattern matches it.
	Secrets []string

	send     treepath.Patterns
	hidden   *treepath.Patterns    // see Hide; nil hides none
	patterns []string              // of send
	clean    *cleanFiles           // nil remembers nothing
	late     *late                 // see Expect
	known    atomic.Pointer[index] // of Known, Secrets and what was learned; nil before the first use
}

type index struct {
	exact   *scanner
	starts  []string // all spellings, sorted
	longest int      // of starts, in bytes
	learned int      // how many values of late it has
}

// late are values that became known while the guard was in use.
type late struct {
	mu     sync.Mutex
	values []string
}

// The reasons for withholding a file that contains a known value. If only
// ValueReason applies, commands may read the file: their output is redacted.
const (
	OwnKeyReason = "it contains one of hone's own keys"
	ValueReason  = "it contains a value of a secret file, of git's configuration or of a variable"

	nameReason = "its name contains a secret"
)

// NewGuard returns a guard that does not withhold files that match one of the
// send patterns (ruling G8), unless they contain a Known value. A malformed
// pattern matches nothing.
func NewGuard(send []string) *Guard {
	return &Guard{send: treepath.CompileValid(send, false), patterns: send, clean: &cleanFiles{list: map[cleanDigest]bool{}}}
}

// WithSecrets returns a guard with other Secrets, and otherwise the same.
func (g *Guard) WithSecrets(values []string) *Guard {
	return &Guard{Known: g.Known, Secrets: values, send: g.send, patterns: g.patterns, clean: g.clean, hidden: g.hidden, late: g.late}
}

// Expect says that Learn will be called. Call it before the guard is used.
func (g *Guard) Expect() { g.late = &late{} }

// Learn adds a value to those of Known, also for guards that WithSecrets derived. Any
// goroutine may call it while the guard is in use, after Expect.
func (g *Guard) Learn(value string) {
	g.late.mu.Lock()
	defer g.late.mu.Unlock()
	if slices.Contains(g.late.values, value) {
		return
	}
	g.late.values = append(g.late.values, value)
	if g.clean != nil {
		g.clean.mu.Lock()
		defer g.clean.mu.Unlock()
		clear(g.clean.list) // they were judged without it
	}
}

// Sends reports whether one of the send patterns matches a path.
func (g *Guard) Sends(path string) bool { return g != nil && g.send.Match(path) }

// Hide also withholds the files whose paths match one of the patterns. Call it before the
// guard is used.
func (g *Guard) Hide(patterns []string) {
	hidden := treepath.CompileValid(patterns, true)
	g.hidden = &hidden
}

// WithheldName reports whether a file is withheld because of its name alone,
// and why: it is a usual name of secret files, or contains a secret itself. The
// path is cleaned and relative to the root. Files such as ".env.example" are not
// withheld.
func (g *Guard) WithheldName(path string) (reason string, ok bool) {
	if g == nil || g.send.Match(path) {
		return "", false
	}
	if g.hidden != nil && g.hidden.Match(path) {
		return "only the user's own commands use it", true
	}
	if reason = secretName(path); reason == "" && g.Redact(path) != path {
		reason = nameReason
	}
	return reason, reason != ""
}

// Withheld reports whether a file is withheld because of its name or contents,
// and why. The reason does not reveal the secret.
func (g *Guard) Withheld(path string, content []byte) (reason string, ok bool) {
	if g == nil {
		return "", false
	}
	text := string(content)
	known := findAll(g.index().exact, text)
	if slices.ContainsFunc(known, func(s span) bool { return s.what == OwnKeyReason }) {
		return OwnKeyReason, true
	}
	if g.send.Match(path) {
		return "", false
	}
	if reason, ok := g.WithheldName(path); ok {
		return reason, true
	}
	if reason := secretConfig(path, content); reason != "" {
		return reason, true
	}
	if found := findAll(formats(), text); len(found) > 0 {
		line := 1 + strings.Count(text[:found[0].start], "\n")
		return fmt.Sprintf("line %d looks like %s", line, found[0].what), true
	}
	if len(known) > 0 {
		return ValueReason, true
	}
	return "", false
}

// KnowsKeys reports whether there are Known values, which HoldsKey looks for.
func (g *Guard) KnowsKeys() bool { return g != nil && (len(g.Known) > 0 || g.late != nil) }

// HoldsKey reports whether contents include one of the Known values.
func (g *Guard) HoldsKey(content []byte) bool {
	if g == nil {
		return false
	}
	return slices.ContainsFunc(findAll(g.index().exact, string(content)), func(s span) bool { return s.what == OwnKeyReason })
}

// What replaces a secret that was recognized, and a known value.
const (
	redacted = "[withheld]"
	key      = "[key]"
)

// Redact replaces every secret that it finds in a text with "[withheld]". It
// needs the complete text: a secret that is cut off at the end may remain.
func (g *Guard) Redact(text string) string {
	if g == nil {
		return text
	}
	text = replace(text, findAll(g.index().exact, text), redacted)
	return replace(text, findAll(formats(), text), redacted)
}

// RedactKnown replaces only Known and Secrets, with "[key]". JSON stays valid.
func (g *Guard) RedactKnown(text string) string {
	if g == nil {
		return text
	}
	return replace(text, findAll(g.index().exact, text), key)
}

// Knows reports whether there is anything that RedactKnown replaces, or will be.
func (g *Guard) Knows() bool {
	if g == nil {
		return false
	}
	return len(g.index().starts) > 0 || g.late != nil
}

// Complete returns how many bytes at the start of a text can be redacted with
// RedactKnown before the rest of the text is known: the end of the text may be
// the start of one of Known and Secrets.
func (g *Guard) Complete(text string) int {
	if !g.Knows() {
		return len(text)
	}
	known := g.index()
	n := len(text) - known.startLen(text)
	for _, f := range findAll(known.exact, text) {
		if f.start < n && n < f.end {
			return f.start
		}
	}
	return n
}

// startLen returns how many bytes at the end of a text are the start of a known
// value, but not all of it.
func (g *index) startLen(text string) int {
	for n := min(len(text), g.longest-1); n > 0; n-- {
		tail := text[len(text)-n:]
		for i, _ := slices.BinarySearch(g.starts, tail); i < len(g.starts) && strings.HasPrefix(g.starts[i], tail); i++ {
			if len(g.starts[i]) > n {
				return n
			}
		}
	}
	return 0
}

// minKnown is the minimum length of a known value in bytes. Shorter values
// occur in any text by chance.
const minKnown = 8

// formats returns the scanner for secrets that are recognized. It is made on first use, so
// that a process that scans nothing does not pay for it.
var formats = sync.OnceValue(func() *scanner { return newScanner(knownShapes()) })

func (g *Guard) index() *index {
	var learned []string
	if g.late != nil {
		g.late.mu.Lock()
		learned = g.late.values
		g.late.mu.Unlock()
	}
	if known := g.known.Load(); known != nil && known.learned == len(learned) {
		return known
	}
	list := append(exactShapes(OwnKeyReason, slices.Concat(g.Known, learned)), exactShapes(ValueReason, g.Secrets)...)
	slices.SortStableFunc(list, func(a, b shape) int { return cmp.Compare(len(b.literals[0]), len(a.literals[0])) })
	known := &index{exact: newScanner(list), learned: len(learned)}
	for _, s := range list {
		known.starts = append(known.starts, s.literals[0])
		known.longest = max(known.longest, len(s.literals[0]))
	}
	slices.Sort(known.starts)
	g.known.Store(known)
	return known
}

// Gate removes keys and other known values from a text that arrives in pieces. A
// value may be split between pieces, so the gate delays the end of the text
// while it may be the start of one.
type Gate struct {
	guard   *Guard
	show    func(string)
	pending string
}

// NewGate returns a gate that passes the text on to show.
func NewGate(guard *Guard, show func(string)) *Gate { return &Gate{guard: guard, show: show} }

// Pass takes the next piece of the text.
func (g *Gate) Pass(text string) {
	g.pending += text
	if n := g.guard.Complete(g.pending); n > 0 {
		g.show(g.guard.RedactKnown(g.pending[:n]))
		g.pending = g.pending[n:]
	}
}

// Flush shows the delayed text. Call it at the end of the text.
func (g *Gate) Flush() {
	if g.pending != "" {
		g.show(g.guard.RedactKnown(g.pending))
		g.pending = ""
	}
}
