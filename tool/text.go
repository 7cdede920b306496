package tool

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const bom = "\uFEFF"

// A NUL, or more than 30 % of bytes that are not UTF-8, is no text. Text in older encodings is below that.
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

// A last line without a newline counts.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

func trimLineEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// It is the last position up to n that is not inside a character.
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

// JSON cannot encode other bytes.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func clip(text string, limit int) string {
	if len(text) <= limit {
		return validUTF8(text)
	}
	return validUTF8(text[:boundary(text, limit)]) + "…"
}
