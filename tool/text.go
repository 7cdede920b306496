package tool

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// bom is the byte order mark of UTF-8.
const bom = "\uFEFF"

// isBinary reports whether contents are no text: they hold a NUL, or more than
// three bytes in ten are not UTF-8. Texts in older encodings pass.
func isBinary(content []byte) bool {
	if bytes.IndexByte(content, 0) >= 0 {
		return true
	}
	if utf8.Valid(content) {
		return false
	}
	wrong := 0
	for rest := content; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			wrong++
		}
		rest = rest[size:]
	}
	return wrong*10 > len(content)*3
}

// countLines is how many lines a text has. One that does not end in a newline
// counts.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// bare is a line without what ends it.
func bare(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// boundary is the greatest place up to n where a text can be cut without
// tearing a character.
func boundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for back := 0; back < utf8.UTFMax && n-back > 0; back++ {
		if utf8.RuneStart(text[n-back]) {
			return n - back
		}
	}
	return n
}

// valid is text as JSON can carry it.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// clip shortens a text to about so many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return valid(text)
	}
	return valid(text[:boundary(text, most)]) + "…"
}

// clipMiddle shortens a text to about so many bytes by leaving out its middle.
func clipMiddle(text string, most int) string {
	if len(text) <= most {
		return valid(text)
	}
	end := boundary(text, len(text)-most/2)
	return valid(text[:boundary(text, most/2)]) + " … " + valid(text[end:])
}
