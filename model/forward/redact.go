package forward

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A shorter key would be found in words that have nothing to do with it.
const shortestKey = 8

// mark stands where a key stood.
const mark = "[key]"

// redactor knows what must not go back, however it is spelt (ruling G6).
type redactor struct {
	secrets [][]byte // the longest first: one may begin another
	first   string   // the bytes that they begin with
}

func newRedactor(secrets ...string) *redactor {
	r := &redactor{}
	var all []string
	for _, s := range secrets {
		if len(s) < shortestKey {
			continue
		}
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s))
		// A string can always be encoded.
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

// text is s without secrets.
func (r *redactor) text(s string) string {
	out, _ := r.scan([]byte(s), true)
	return string(out)
}

// header takes the secrets out of a header.
func (r *redactor) header(h http.Header) {
	for name, values := range h {
		if r.names(name) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			values[i] = r.text(v)
		}
	}
}

// names reports whether a header's name holds a secret in any case.
func (r *redactor) names(name string) bool {
	return slices.ContainsFunc(r.secrets, func(s []byte) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(string(s)))
	})
}

// gate lets bytes through without their secrets. The end of what came is held
// back while it may be the beginning of one.
type gate struct {
	r    *redactor
	held []byte
}

// pass is what may go on now; it is the caller's.
func (g *gate) pass(p []byte) []byte {
	out, held := g.r.scan(append(g.held, p...), false)
	g.held = bytes.Clone(held)
	return out
}

// rest is what was held back, when nothing more comes.
func (g *gate) rest() []byte {
	out, _ := g.r.scan(g.held, true)
	g.held = nil
	return out
}

// scan takes the secrets out of text. What it holds back is the end of text
// that more may make a secret of; nothing where this is all.
func (r *redactor) scan(text []byte, all bool) (out, held []byte) {
	out = make([]byte, 0, len(text))
	for {
		i := bytes.IndexAny(text, r.first)
		if i < 0 {
			return append(out, text...), nil
		}
		out, text = append(out, text[:i]...), text[i:]
		n, open := r.at(text, all)
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

// at is the length of the secret that text begins with, or whether text ends
// before it can be told, which all rules out.
func (r *redactor) at(text []byte, all bool) (n int, open bool) {
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
