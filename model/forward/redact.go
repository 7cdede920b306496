package forward

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// minKey is the minimum length of a redacted key: a shorter one would match
// unrelated text.
const minKey = 8

// mark replaces a key.
const mark = "[key]"

// redactor removes secrets, in any encoding, from responses (ruling G6).
type redactor struct {
	secrets [][]byte // the longest first, because one may be a prefix of another
	first   string   // the first bytes of all secrets
}

func newRedactor(secrets ...string) *redactor {
	r := &redactor{}
	var all []string
	for _, s := range secrets {
		if len(s) < minKey {
			continue
		}
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s))
		// Marshal cannot fail for a string.
		quoted, _ := json.Marshal(s)
		inner := string(quoted[1 : len(quoted)-1])
		all = append(all, inner, strings.ReplaceAll(inner, "/", `\/`))
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, s := range all {
		r.secrets = append(r.secrets, []byte(s))
		r.first += s[:1]
	}
	return r
}

// text returns s without secrets.
func (r *redactor) text(s string) string {
	out, _ := r.scan([]byte(s), true)
	return string(out)
}

// header removes secrets from a header.
func (r *redactor) header(h http.Header) {
	for name, values := range h {
		if r.isInName(name) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			values[i] = r.text(v)
		}
	}
}

// isInName reports whether a header's name contains a secret, ignoring case.
func (r *redactor) isInName(name string) bool {
	return slices.ContainsFunc(r.secrets, func(s []byte) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(string(s)))
	})
}

// gate removes secrets from a stream. It holds back the end of the data if a
// secret may begin there.
type gate struct {
	r       *redactor
	pending []byte
}

// filter adds p and returns the data that can be sent now.
func (g *gate) filter(p []byte) []byte {
	out, pending := g.r.scan(append(g.pending, p...), false)
	g.pending = bytes.Clone(pending)
	return out
}

// flush returns the rest at the end of the stream.
func (g *gate) flush() []byte {
	out, _ := g.r.scan(g.pending, true)
	g.pending = nil
	return out
}

// scan removes the secrets from text. Unless text is all of the data, pending
// is its end if a secret may begin there.
func (r *redactor) scan(text []byte, all bool) (out, pending []byte) {
	out = make([]byte, 0, len(text))
	for {
		i := bytes.IndexAny(text, r.first)
		if i < 0 {
			return append(out, text...), nil
		}
		out, text = append(out, text[:i]...), text[i:]
		n, open := r.match(text, all)
		switch {
		case n > 0:
			out, text = append(out, mark...), text[n:]
		case open:
			return out, text
		default:
			out, text = append(out, text[0]), text[1:]
		}
	}
}

// match returns the length of the secret at the beginning of text, or 0. Unless
// text is all of the data, open means that text is the beginning of a secret.
func (r *redactor) match(text []byte, all bool) (n int, open bool) {
	for _, s := range r.secrets {
		if bytes.HasPrefix(text, s) {
			return len(s), false
		}
		if !all && bytes.HasPrefix(s, text) {
			return 0, true
		}
	}
	return 0, false
}
