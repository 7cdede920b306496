package treepath

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Look returns what a text looks like: the same string for all texts that a reader cannot
// tell apart, because they differ only in normalization (é as one code point or two), in
// invisible characters, or in the kind of a space, a hyphen or a quotation mark. at has the
// offset in the text of each byte of the look.
func Look(text string) (look string, at []int) {
	b := make([]byte, 0, len(text))
	at = make([]int, 0, len(text))
	var segments norm.Iter
	segments.InitString(norm.NFC, text)
	for !segments.Done() {
		start := segments.Pos()
		for _, r := range string(segments.Next()) {
			if r = lookOf(r); r < 0 {
				continue
			}
			b = append(b, string(r)...)
			for len(at) < len(b) {
				at = append(at, start)
			}
		}
	}
	return string(b), at
}

func lookOf(r rune) rune {
	switch {
	case Invisible(r), unicode.Is(unicode.Variation_Selector, r):
		return -1
	case unicode.Is(unicode.Zs, r):
		return ' '
	case r == '\u2010' || r == '\u2011' || r == '\u2212':
		return '-'
	case r == '\u2018' || r == '\u2019':
		return '\''
	case r == '\u201c' || r == '\u201d':
		return '"'
	}
	return r
}

// Invisible reports whether a character is never seen: it has no width, or only controls
// how others are shown.
func Invisible(r rune) bool { return unicode.Is(unicode.Cf, r) || r == '\u034f' }
