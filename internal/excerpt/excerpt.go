// Package excerpt shortens long texts, such as the output of a build, without cutting
// lines or runes.
package excerpt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/lazyregexp"
)

// Middle omits the middle of a text longer than most bytes, at line ends if
// possible, and inserts a line that states how much was omitted. If the result would not be
// shorter than the text, it is the text. What was omitted before, where the middle is now, counts.
func Middle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := headLines(text, most/2), tailLines(text, most/2)
	omitted := text[len(head) : len(text)-len(tail)]
	n, from := len(omitted), 0
	for _, m := range omission.FindAllStringSubmatchIndex(omitted, -1) {
		more, _ := strconv.Atoi(omitted[m[2]:m[3]])
		n += more - (m[1] - m[0])
		if m[0] > from && omitted[m[0]-1] == '\n' {
			n--
		}
		from = m[1]
	}
	return shorter(text, strings.TrimSuffix(head, "\n")+Omitted(n)+tail)
}

// Omitted returns the line, with line ends around it, that states how many bytes were omitted in its place.
func Omitted(n int) string { return fmt.Sprintf("\n[... %d bytes omitted ...]\n", n) }

// It starts with a text that package regexp searches for: with an optional line end, it would
// be tried at each byte of the output of a check.
var omission = lazyregexp.New(`\[\.\.\. (\d{1,12}) bytes omitted \.\.\.\]\n`)

func shorter(text, excerpt string) string {
	if len(excerpt) < len(text) {
		return excerpt
	}
	return text
}

// It consists of complete lines, or of complete runes if the first line is longer.
func headLines(text string, most int) string {
	if i := strings.LastIndexByte(text[:most], '\n'); i >= 0 {
		return text[:i+1]
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

func tailLines(text string, most int) string {
	from := len(text) - most
	if text[from-1] == '\n' {
		return text[from:]
	}
	if i := strings.IndexByte(text[from:], '\n'); i >= 0 && from+i+1 < len(text) {
		return text[from+i+1:]
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// End omits the start of a text longer than most bytes, as Middle omits its middle.
func End(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := tailLines(text, most)
	return shorter(text, fmt.Sprintf("[... %d bytes omitted ...]\n%s", len(text)-len(end), end))
}
