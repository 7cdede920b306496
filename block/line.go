package block

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is one of the four kinds of blocks.
type kind uint8

const (
	thought kind = iota
	debug
	file
	done
	kinds // their number
)

// signs holds the sign of each kind; three of them make a marker.
const signs = "&%^$"

// sign returns the three signs that begin the kind's markers.
func (k kind) sign() string { return k.closing()[:3] }

// closing returns the kind's closing marker.
func (k kind) closing() string { return [kinds]string{"&&&end", "%%%end", "^^^end", "$$$end"}[k] }

// opening returns the kind's opening marker as a model is told to write it.
func (k kind) opening() string {
	if k == file {
		return "^^^ and the file's path"
	}
	return [kinds]string{thought: "&&&start", debug: "%%%start", done: "$$$start"}[k]
}

// role is what a line does.
type role uint8

const (
	text    role = iota // it is no marker
	opening             // it opens a block
	closing             // it closes one
	slip                // it was most likely meant to do either
)

// classify says what a line does, and to which kind of block if it is not
// text.
func classify(line string) (kind, role) {
	s := strings.TrimSpace(line)
	if len(s) < 3 || s[0] != s[1] || s[1] != s[2] {
		return 0, text
	}
	sign := strings.IndexByte(signs, s[0])
	if sign < 0 || len(s) > 3 && s[3] == s[0] {
		return 0, text
	}
	return kind(sign), roleOf(kind(sign), strings.TrimSpace(s[3:]))
}

// roleOf says what a line does by what follows its three signs.
func roleOf(k kind, rest string) role {
	switch {
	case strings.EqualFold(rest, "end"):
		return closing
	case k == file && rest != "", strings.EqualFold(rest, "start"):
		return opening
	case isWord(rest):
		return slip
	}
	return text
}

// isWord reports whether s is empty or one short word of ASCII letters.
func isWord(s string) bool {
	const longest = 16
	if len(s) > longest {
		return false
	}
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// pathOf returns the path in an opening marker of a file.
func pathOf(line string) string {
	return strings.TrimSpace(strings.TrimSpace(line)[len("^^^"):])
}

// shown returns a line as it may stand in a message: trimmed, shortened, and
// escaped where it holds anything that does not print.
func shown(line string) string {
	const longest = 120
	s := strings.TrimSpace(line)
	if len(s) > longest {
		cut := longest
		for cut > longest-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strings.Trim(strconv.Quote(s), `"`)
		}
	}
	return s
}
