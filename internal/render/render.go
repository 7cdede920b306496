// Package render makes text fit for a person's eyes: what a model, a checker
// or a file says is shown without control characters, and a change is shown
// as a unified diff. For a model's eyes it reads a tree's files, and leaves out
// what no model may see.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Escape makes a text safe to print on a terminal: every control character
// but newline and tab, every character that changes the direction or the
// width of what stands around it, and every byte that is not UTF-8 is written
// as an escape (ruling G1).
func Escape(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case harmless(r):
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

func clean(s string) bool {
	for _, r := range s {
		if !harmless(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// harmless characters leave a terminal and the order of the text alone. The
// formatting class holds the bidirectional overrides and the zero widths, of
// which the joiners make up emoji and scripts.
func harmless(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return true
	}
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}

// Line is Escape for a text that has to stay on one line.
func Line(s string) string {
	return strings.ReplaceAll(Escape(s), "\n", `\n`)
}

// Diff is the unified diff of one file, with its control characters escaped.
// Nil stands for no file. What is not text is described by its sizes.
func Diff(path string, before, after []byte) string {
	path = Line(path) // a line feed in it could forge a header
	from, to := "a/"+path, "b/"+path
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	if !text(before) || !text(after) {
		return fmt.Sprintf("--- %s\n+++ %s\nbinary: %d bytes before, %d after\n", from, to, len(before), len(after))
	}
	d := udiff.Unified(from, to, string(before), string(after))
	if d == "" {
		d = fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	}
	return Escape(strings.ReplaceAll(d, "\r\n", "\\r\n"))
}

// The colours of a diff, as terminals know them.
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// Colour paints the lines of a diff.
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

// Dim paints a text so that it stands back.
func Dim(s string) string { return dim + s + reset }

// Counts are the lines that a diff adds and takes away.
func Counts(before, after []byte) (added, removed int) {
	if !text(before) || !text(after) {
		return 0, 0
	}
	for _, line := range strings.Split(udiff.Unified("", "", string(before), string(after)), "\n") {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}

// Bytes words a size.
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

// Tokens words a number of tokens, with its thousands apart.
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
