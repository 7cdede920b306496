package task

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// pair is a key with its value: a string, an int64, an int or a bool.
type pair struct {
	key   string
	value any
}

// A reader gets every string back unchanged, except that each sequence of bytes that are not UTF-8, which TOML cannot
// represent, becomes U+FFFD.
func encode(pairs []pair) string {
	var b strings.Builder
	for _, p := range pairs {
		switch v := p.value.(type) {
		case string:
			fmt.Fprintf(&b, "%s = %s\n", p.key, quote(v))
		default:
			fmt.Fprintf(&b, "%s = %v\n", p.key, v)
		}
	}
	return b.String()
}

// quote returns a string as CodeScribe writes it: between ”' if it has several lines,
// or on one line if it cannot be written that way.
func quote(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.Contains(s, "\n") && literal(s) {
		return "'''\n" + s + "'''"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		b.WriteString(escaped(r))
	}
	b.WriteByte('"')
	return b.String()
}

func literal(s string) bool {
	if strings.Contains(s, "'''") || strings.HasSuffix(s, "'") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	})
}

func escaped(r rune) string {
	switch {
	case r == '"' || r == '\\':
		return `\` + string(r)
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < ' ' || r == 0x7f:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return string(r)
}

// most is in characters.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

func characters(text string) int { return utf8.RuneCountInString(text) }
