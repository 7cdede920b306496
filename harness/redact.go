package harness

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"hone/loop"
)

// KeyVariables are the variables that hold providers' keys.
func KeyVariables() []string {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Keys...)
	}
	return names
}

// shortestKey is what is long enough to be taken out of texts: a shorter value
// would be found in words that have nothing to do with it.
const shortestKey = 8

// KnownKeys are the secret values that this process holds: every provider's
// key, not only the one that is used, and the logins in addresses.
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
		keys = append(keys, secretOf(login)...)
	}
	return slices.DeleteFunc(keys, func(k string) bool { return len(k) < shortestKey })
}

// secretOf is what is secret of a login, as it is written and as it is meant:
// the password, or a user without one, which is a token.
func secretOf(login string) []string {
	secret, password, ok := strings.Cut(login, ":")
	if ok {
		secret = password
	}
	if meant, err := url.PathUnescape(secret); err == nil && meant != secret {
		return []string{secret, meant}
	}
	return []string{secret}
}

// spellings are the keys, and how JSON or a URL writes them, the longest first:
// one key may begin another.
func spellings(keys []string) []string {
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

// Redactor takes keys out of a text, however they are spelt. It
// returns nil where there are none.
func Redactor(keys []string) func(string) string {
	var pairs []string
	for _, s := range spellings(keys) {
		pairs = append(pairs, s, "[key]")
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...).Replace
}

// Gate lets a streamed text through without its keys. A key may arrive in
// pieces, so that the end of the text is held back while it may be the
// beginning of one.
type Gate struct {
	keys  []string            // in all their spellings
	clean func(string) string // nil where there are none
	show  func(string)
	held  string
}

// NewGate is a gate whose text goes to show.
func NewGate(keys []string, show func(string)) *Gate {
	return &Gate{keys: spellings(keys), clean: Redactor(keys), show: show}
}

// Pass takes the next piece of the text.
func (g *Gate) Pass(text string) {
	if g.clean == nil {
		g.show(text)
		return
	}
	text = g.clean(g.held + text)
	cut := len(text) - g.doubtful(text)
	g.held = text[cut:]
	if cut > 0 {
		g.show(text[:cut])
	}
}

// doubtful is how many bytes at the end of a text begin a key.
func (g *Gate) doubtful(text string) int {
	most := 0
	for _, k := range g.keys {
		for n := min(len(k)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, k[:n]) {
				most = n
			}
		}
	}
	return most
}

// Flush shows what is held back: the text has ended.
func (g *Gate) Flush() {
	if g.held != "" {
		g.show(g.held)
		g.held = ""
	}
}
