package agent

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minKey is the minimum length of a redacted key: a shorter one would match
// unrelated text.
const minKey = 8

const mark = "[key]"

// redactor removes secrets, in any encoding, from responses (ruling G6). The
// longest come first, because one may be a prefix of another.
type redactor [][]byte

func newRedactor(secrets ...string) redactor {
	var r redactor
	for _, s := range secrets {
		if len(s) < minKey {
			continue
		}
		// Marshal cannot fail for a string.
		quoted, _ := json.Marshal(s)
		inner := string(quoted[1 : len(quoted)-1])
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), inner, strings.ReplaceAll(inner, "/", `\/`)} {
			r = append(r, []byte(form))
		}
	}
	slices.SortFunc(r, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

func (r redactor) text(s string) string {
	return string((&gate{r: r}).filter([]byte(s), true))
}

// gate removes secrets from a stream. It holds back the end of the data if a
// secret may begin there.
type gate struct {
	r       redactor
	pending []byte
}

// The returned data can be sent now.
func (g *gate) filter(p []byte, last bool) []byte {
	text := append(g.pending, p...)
	out := make([]byte, 0, len(text))
	g.pending = nil
next:
	for len(text) > 0 {
		for _, s := range g.r {
			if bytes.HasPrefix(text, s) {
				out, text = append(out, mark...), text[len(s):]
				continue next
			}
			if !last && bytes.HasPrefix(s, text) {
				g.pending = bytes.Clone(text)
				return out
			}
		}
		out, text = append(out, text[0]), text[1:]
	}
	return out
}
