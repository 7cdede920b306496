package check

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// notUTF8 replaces a text that is not UTF-8 (ruling B11).
const notUTF8 = "<non-UTF8 output>"

// MaxText is the length in bytes above which the middle of a text is omitted
// from a finding.
const MaxText = 64 << 10

// tailText is how many bytes of standard error are shown of a check that could
// not run.
const tailText = 8 << 10

// streamText returns the text of a stream.
func streamText(stream []byte) string {
	if !utf8.Valid(stream) {
		return notUTF8
	}
	return string(stream)
}

// truncateMiddle omits the middle of a text longer than most, at line ends if
// possible, and inserts a line that states how much was omitted.
func truncateMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := headLines(text, most/2), tailLines(text, most/2)
	omitted := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[... %d bytes omitted ...]\n%s", strings.TrimSuffix(head, "\n"), omitted, tail)
}

// headLines returns the start of a text, at most most bytes: complete lines, or
// complete runes if the first line is longer.
func headLines(text string, most int) string {
	if i := strings.LastIndexByte(text[:most], '\n'); i >= 0 {
		return text[:i+1]
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// tailLines returns the end of a text, like headLines returns its start.
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

// truncateStart omits the start of a stream longer than tailText.
func truncateStart(text string) string {
	if len(text) <= tailText {
		return text
	}
	end := tailLines(text, tailText)
	return fmt.Sprintf("[... %d bytes omitted ...]\n%s", len(text)-len(end), end)
}

// section returns a titled text between blank lines.
func section(title, text string) string {
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("\n%s: (empty)\n", title)
	}
	return fmt.Sprintf("\n%s:\n\n%s\n", title, strings.Trim(text, "\n"))
}

// applyRedact removes the secrets from a text.
func applyRedact(redact func(string) string, text string) string {
	if redact == nil {
		return text
	}
	return redact(text)
}
