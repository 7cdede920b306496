package main

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// keyVariables are the variables that hold providers' keys.
func keyVariables() []string {
	var names []string
	for _, p := range providers() {
		names = append(names, p.keys...)
	}
	return names
}

// shortestKey is what is long enough to be taken out of texts: a shorter value
// would be found in words that have nothing to do with it.
const shortestKey = 8

// knownKeys are the secret values that this process holds: every provider's
// key, not only the one that is used, and the logins in addresses.
func knownKeys(env func(string) string, addresses ...string) []string {
	var keys []string
	for _, p := range providers() {
		for _, v := range p.keys {
			keys = append(keys, env(v))
		}
		addresses = append(addresses, env(p.base))
	}
	for _, a := range addresses {
		_, login := cutLogin(a)
		keys = append(keys, secretOf(login)...)
	}
	return slices.DeleteFunc(keys, func(k string) bool { return len(k) < shortestKey })
}

// cutLogin takes the user and the password out of an address.
func cutLogin(address string) (rest, login string) {
	begin := strings.Index(address, "://") + len("://")
	if begin < len("://") {
		begin = 0
	}
	end := len(address)
	if i := strings.IndexAny(address[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	at := strings.LastIndexByte(address[begin:end], '@')
	if at < 0 {
		return address, ""
	}
	return address[:begin] + address[begin+at+1:], address[begin : begin+at]
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

// redactor takes keys out of a text, however they are spelt (ruling G6). It
// returns nil where there are none.
func redactor(keys []string) func(string) string {
	var pairs []string
	for _, s := range spellings(keys) {
		pairs = append(pairs, s, "[key]")
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...).Replace
}

// gate lets a streamed text through without its keys. A key may arrive in
// pieces, so that the end of the text is held back while it may be the
// beginning of one.
type gate struct {
	keys  []string            // in all their spellings
	clean func(string) string // nil where there are none
	show  func(string)
	held  string
}

func newGate(keys []string, show func(string)) *gate {
	return &gate{keys: spellings(keys), clean: redactor(keys), show: show}
}

func (g *gate) pass(text string) {
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
func (g *gate) doubtful(text string) int {
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

// flush shows what is held back: the text has ended.
func (g *gate) flush() {
	if g.held != "" {
		g.show(g.held)
		g.held = ""
	}
}
