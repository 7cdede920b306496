package block

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hone/internal/reply"
)

type kind uint8

const (
	thought kind = iota
	debug
	file
	done
	kinds // their number
)

// signs has the sign of each kind; three of them make a marker.
const signs = "&%^$"

func (k kind) sign() string { return k.closing()[:3] }

func (k kind) closing() string { return [kinds]string{"&&&end", "%%%end", "^^^end", "$$$end"}[k] }

func (k kind) opening() string {
	if k == file {
		return "^^^ and the file's path"
	}
	return [kinds]string{thought: "&&&start", debug: "%%%start", done: "$$$start"}[k]
}

type role uint8

const (
	text    role = iota // not a marker
	opening             // opens a block
	closing             // closes a block
	slip                // probably meant as one of these
)

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

func roleOf(k kind, rest string) role {
	switch {
	case strings.EqualFold(rest, "end"), k == file && strings.EqualFold(rest, "delete"):
		return closing
	case k == file && rest != "", strings.EqualFold(rest, "start"):
		return opening
	case isWord(rest):
		return slip
	}
	return text
}

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

func pathOf(line string) string {
	return reply.Unquoted(strings.TrimSpace(strings.TrimSpace(line)[len("^^^"):]))
}

func deletes(line string) bool {
	_, r := classify(line)
	return r == closing && strings.EqualFold(pathOf(line), "delete")
}

// It is trimmed, shortened, and escaped if it contains anything unprintable.
func displayLine(line string) string {
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
