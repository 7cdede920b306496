package harness

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"hone/loop"
)

// KeyVariables returns the variables that contain providers' keys.
func KeyVariables() []string {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Keys...)
	}
	return names
}

// minKeyLength is the length of the shortest value that is redacted. A shorter
// one would be found in unrelated words.
const minKeyLength = 8

// KnownKeys returns the secret values of this process: every provider's key,
// not only the one in use, and the logins in addresses. Nil if there are none.
func KnownKeys(getenv func(string) string, addresses ...string) []string {
	var keys []string
	for _, p := range Providers() {
		for _, v := range p.Keys {
			keys = append(keys, getenv(v))
		}
		addresses = append(addresses, getenv(p.Base))
	}
	for _, a := range addresses {
		_, login := loop.CutLogin(a)
		keys = append(keys, secretsOfLogin(login)...)
	}
	return slices.DeleteFunc(keys, func(k string) bool { return len(k) < minKeyLength })
}

// secretsOfLogin returns the secret part of a login, as written and unescaped:
// the password or, without one, the user, which is a token.
func secretsOfLogin(login string) []string {
	secret, password, ok := strings.Cut(login, ":")
	if ok {
		secret = password
	}
	if unescaped, err := url.PathUnescape(secret); err == nil && unescaped != secret {
		return []string{secret, unescaped}
	}
	return []string{secret}
}

// keySpellings returns the keys also as JSON and URLs write them, the longest
// first, because one may be the start of another.
func keySpellings(keys []string) []string {
	var all []string
	for _, k := range keys {
		forms := []string{k, url.QueryEscape(k), url.PathEscape(k)}
		if quoted, err := json.Marshal(k); err == nil {
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		slices.Sort(forms)
		all = append(all, slices.Compact(forms)...)
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// Redactor returns a function that replaces keys in a text, in all their
// spellings; nil if there are no keys.
func Redactor(keys []string) func(string) string {
	var pairs []string
	for _, s := range keySpellings(keys) {
		pairs = append(pairs, s, "[key]")
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...).Replace
}

// Gate removes keys from a text that arrives in pieces. A key may be split
// between pieces, so the gate delays the end of the text while it may be the
// start of a key.
type Gate struct {
	keys    []string            // in all spellings
	clean   func(string) string // nil if there are no keys
	show    func(string)
	pending string
}

// NewGate returns a gate that passes the text on to show.
func NewGate(keys []string, show func(string)) *Gate {
	return &Gate{keys: keySpellings(keys), clean: Redactor(keys), show: show}
}

// Pass takes the next piece of the text.
func (g *Gate) Pass(text string) {
	if g.clean == nil {
		g.show(text)
		return
	}
	text = g.clean(g.pending + text)
	cut := len(text) - g.keyPrefixLen(text)
	g.pending = text[cut:]
	if cut > 0 {
		g.show(text[:cut])
	}
}

// keyPrefixLen returns how many bytes at the end of a text may be the start of
// a key.
func (g *Gate) keyPrefixLen(text string) int {
	longest := 0
	for _, k := range g.keys {
		for n := min(len(k)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, k[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Flush shows the delayed text. Call it at the end of the text.
func (g *Gate) Flush() {
	if g.pending != "" {
		g.show(g.pending)
		g.pending = ""
	}
}
