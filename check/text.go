package check

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// notUTF8 stands for a text that is not UTF-8 (ruling B11).
const notUTF8 = "<non-UTF8 output>"

// MaxText is how many bytes of one text of a finding are shown before its
// middle is left out.
const MaxText = 64 << 10

// tailText is how much is shown of the standard error of a check that could
// not run.
const tailText = 8 << 10

// readable is a stream as text.
func readable(stream []byte) string {
	if !utf8.Valid(stream) {
		return notUTF8
	}
	return string(stream)
}

// cut leaves out the middle of a text that is longer than most, on whole lines
// where it can, and says in a line of its own how much that was.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := headLines(text, most/2), tailLines(text, most/2)
	left := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[... %d bytes left out here ...]\n%s", strings.TrimSuffix(head, "\n"), left, tail)
}

// headLines is the beginning of a text, at most so many bytes: whole lines, or
// whole runes where the first line is longer.
func headLines(text string, most int) string {
	if i := strings.LastIndexByte(text[:most], '\n'); i >= 0 {
		return text[:i+1]
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// tailLines is the end of a text, as headLines is its beginning.
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

// tail is the end of a stream, for a finding that says that a check could not
// run.
func tail(text string) string {
	if len(text) <= tailText {
		return text
	}
	end := tailLines(text, tailText)
	return fmt.Sprintf("[... %d bytes left out here ...]\n%s", len(text)-len(end), end)
}

// section is a titled text, set off by blank lines. An empty text is said to
// be empty.
func section(title, text string) string {
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("\n%s: nothing\n", title)
	}
	return fmt.Sprintf("\n%s:\n\n%s\n", title, strings.Trim(text, "\n"))
}

// clean takes the secrets out of a text.
func clean(redact func(string) string, text string) string {
	if redact == nil {
		return text
	}
	return redact(text)
}
