// Package render formats texts and files for the user and for models.
//
// For the user, [Escape] makes any text safe to print, [Diff] shows a change as a
// unified diff, and [Stat] counts its lines; [Colours] colours a text, and [Cut] shortens
// it. For a model, [Reader] reads a tree's files and leaves out what no model may see.
package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Escape returns a text that is safe to print on a terminal. It replaces with
// escapes all control characters except newline and tab, all characters that
// change the direction or width of surrounding text, and all bytes that are not
// UTF-8 (ruling G1).
func Escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !isHarmlessRune(r) }) {
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
	old := string(before)
	d, err := udiff.ToUnified(from, to, old, edits(old, string(after)), udiff.DefaultContextLines)
	if err != nil {
		panic(err) // edits are in order, and do not overlap
	}
	if d == "" {
		d = fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	}
	return Escape(strings.ReplaceAll(d, "\r\n", "\\r\n"))
}

// Stat returns how many lines a change adds and removes. For binary contents both
// are 0.
func Stat(before, after []byte) (added, removed int) {
	if !isText(before) || !isText(after) {
		return 0, 0
	}
	return count(string(before), edits(string(before), string(after)))
}

// AddedLines returns the lines of a text, counted from 1, that a change added or changed.
func AddedLines(before, after []byte) map[int]bool {
	old, added := string(before), map[int]bool{}
	at, line := 0, 1
	for _, e := range edits(old, string(after)) {
		line += strings.Count(old[at:e.Start], "\n")
		at = e.End
		for range lineCount(e.New) {
			added[line] = true
			line++
		}
	}
	return added
}

// StatText formats the numbers of lines that were added and removed, such as "+3 -1". minus
// is the sign before the latter.
func StatText(added, removed int, minus string) string {
	var parts []string
	if added > 0 || removed == 0 {
		parts = append(parts, fmt.Sprintf("+%d", added))
	}
	if removed > 0 {
		parts = append(parts, fmt.Sprintf("%s%d", minus, removed))
	}
	return strings.Join(parts, " ")
}

// The last line need not end in a newline.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// Bytes formats a size, in powers of 1024 like those in .config/hone.toml. It rounds down,
// so that a size below a limit does not look equal to it.
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10<<10:
		return Tokens(n) + " bytes"
	}
	unit := -1
	for n >= 10<<10 && unit < len(units)-1 {
		n, unit = n>>10, unit+1
	}
	return fmt.Sprintf("%d %s", n, units[unit])
}

var units = [...]string{"KB", "MB", "GB", "TB"}

// Short formats a number with three digits at most: 999, 2.5k, 149k, 5M.
func Short(n int64) string {
	unit := 0
	f := float64(n)
	for f >= 999.5 && unit < 3 {
		f, unit = f/1000, unit+1
	}
	digits := 0
	if unit > 0 && f < 9.95 {
		digits = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', digits, 64), ".0") + [...]string{"", "k", "M", "G"}[unit]
}

// Duration formats a duration: 0.4s, 41s, 3m10s, 1h02m.
func Duration(d time.Duration) string {
	switch s := d.Round(time.Second); {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case s < time.Minute:
		return fmt.Sprintf("%ds", s/time.Second)
	case s < time.Hour:
		return fmt.Sprintf("%dm%02ds", s/time.Minute, s%time.Minute/time.Second)
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// Age returns the time since from in its largest unit: 0s, 59m, 23h, 400d; "-" if from is
// zero or in the future.
func Age(from, now time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(from); {
	case from.IsZero() || d < 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}

// Cost formats a cost in USD; nil means that it is unknown. A bound is what may have
// been spent at most, because no provider confirmed some of it.
func Cost(usd *float64, bound bool) string {
	switch {
	case usd != nil && *usd > 0 && bound:
		return "at most " + Cost(usd, false)
	case usd == nil:
		return "cost unknown"
	case *usd > 0 && *usd < 0.995:
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}

// UsageParts returns the parts of a line about usage: the confirmed tokens, the unconfirmed
// ones if there are any, and the cost unless nothing was used. A nil cost is unknown.
// number formats the tokens: [Tokens] or [Short].
func UsageParts(confirmed, unconfirmed int64, cost *float64, number func(int64) string) []string {
	parts := []string{number(confirmed) + " tokens"}
	if unconfirmed > 0 {
		parts = append(parts, "+"+number(unconfirmed)+" unconfirmed")
	}
	if confirmed+unconfirmed > 0 {
		parts = append(parts, Cost(cost, unconfirmed > 0))
	}
	return parts
}

// Tokens formats a number of tokens, with a space between thousands.
func Tokens(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Count returns a number with its noun, such as "1 file" or "3 files". thing is the
// singular of a noun whose plural ends in s.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// maxNamed limits the names in a message.
const maxNamed = 5

// Names returns the first few names for a message, and how many others there are.
func Names(names []string) string {
	var some []string
	for _, name := range names[:min(len(names), maxNamed)] {
		some = append(some, Line(name))
	}
	if more := len(names) - len(some); more > 0 {
		some = append(some, fmt.Sprintf("%d more", more))
	}
	return strings.Join(some, ", ")
}
