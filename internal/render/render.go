// Package render formats texts and files for the user and for models.
//
// For the user, [Escape] makes any text safe to print, and [Diff] shows a
// change as a unified diff. For a model, [Reader] reads a tree's files and
// leaves out what no model may see.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Escape returns a text that is safe to print on a terminal. It replaces with
// escapes all control characters except newline and tab, all characters that
// change the direction or width of surrounding text, and all bytes that are not
// UTF-8 (ruling G1).
func Escape(s string) string {
	if isHarmless(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isHarmlessRune(r):
			b.WriteString(s[i : i+n])
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// isHarmless reports whether Escape would leave a text unchanged.
func isHarmless(s string) bool {
	for _, r := range s {
		if !isHarmlessRune(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// isHarmlessRune reports whether a character affects neither the terminal nor
// the order of the text. The formatting class includes bidirectional overrides
// and zero-width characters, but emoji and some scripts need the joiners.
func isHarmlessRune(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return true
	}
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}

// Line escapes a text that must stay on one line: Escape, and newlines too.
func Line(s string) string {
	return strings.ReplaceAll(Escape(s), "\n", `\n`)
}

// Diff returns the unified diff of one file, with control characters escaped.
// Nil means that the file does not exist. For binary contents it states only
// the sizes.
func Diff(path string, before, after []byte) string {
	path = Line(path) // a newline in it could forge a header
	from, to := "a/"+path, "b/"+path
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	if !isText(before) || !isText(after) {
		return fmt.Sprintf("--- %s\n+++ %s\nbinary: %d bytes before, %d after\n", from, to, len(before), len(after))
	}
	d := udiff.Unified(from, to, string(before), string(after))
	if d == "" {
		d = fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	}
	return Escape(strings.ReplaceAll(d, "\r\n", "\\r\n"))
}

// The terminal colours of a diff.
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// Colour adds colours to the lines of a diff.
func Colour(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		body, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		switch {
		case strings.HasPrefix(body, "---"), strings.HasPrefix(body, "+++"):
			b.WriteString(bold + body + reset + end)
		case strings.HasPrefix(body, "@@"):
			b.WriteString(cyan + body + reset + end)
		case strings.HasPrefix(body, "+"):
			b.WriteString(green + body + reset + end)
		case strings.HasPrefix(body, "-"):
			b.WriteString(red + body + reset + end)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// Dim returns a text in a dim colour.
func Dim(s string) string { return dim + s + reset }

// Bytes formats a size.
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// Tokens formats a number of tokens, with a space between thousands.
func Tokens(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Count words a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
