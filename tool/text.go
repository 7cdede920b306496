package tool

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// bom is the byte order mark of UTF-8.
const bom = "\uFEFF"

// isBinary reports whether content is not text: it contains a NUL, or more than
// 30 % of its bytes are not UTF-8. Text in older encodings is below that.
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

// countLines returns the number of lines, including a last one without a
// newline.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// trimLineEnd removes a newline and a carriage return before it.
func trimLineEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// boundary returns the last position up to n that is not inside a character.
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

// validUTF8 replaces bytes that JSON cannot encode.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// clip shortens a text to about limit bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return validUTF8(text)
	}
	return validUTF8(text[:boundary(text, limit)]) + "…"
}
