package reader

import (
	"path"
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
)

var escape = lazyregexp.New("\x1b(?:\\[[0-9;:?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[()][0-9A-Za-z]|[@-Z\\\\^_=>])")

// plainText returns an output as UTF-8 without colors and with single line ends.
func plainText(out []byte) string {
	text := strings.ToValidUTF8(string(out), "\uFFFD")
	text = withoutColors(strings.TrimPrefix(text, "\uFEFF"))
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return text
}

// withoutColors returns a text without the codes of terminals.
func withoutColors(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	return escape.ReplaceAllString(text, "")
}

// number returns the value of digits, 0 if there are none.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// forEachLine calls f with each line of a text, without its end.
func forEachLine(text string, f func(line string)) {
	for line := range strings.Lines(text) {
		f(strings.TrimSuffix(line, "\n"))
	}
}

// dedent returns lines without the white space that all of them start with, and
// without empty lines at both ends.
func dedent(lines []string) string {
	indent, first := "", true
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		own := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if first {
			indent, first = own, false
		}
		for !strings.HasPrefix(own, indent) {
			indent = indent[:len(indent)-1]
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(strings.TrimPrefix(l, indent), " \t") + "\n")
	}
	return strings.Trim(b.String(), "\n")
}

// headed returns a finding's text: a head, and the body without what the head says.
func headed(head, body string) string {
	body = strings.Trim(body, "\n")
	if first, rest, _ := strings.Cut(body, "\n"); first == head || strings.HasSuffix(head, ": "+first) {
		body = rest
	}
	if body == "" {
		return head
	}
	return head + "\n" + body
}

// cleanFile returns a path as findings have it: with slashes, and without "./".
func cleanFile(file string) string {
	file = strings.TrimPrefix(strings.TrimSpace(file), "file://")
	if file == "" {
		return ""
	}
	if !strings.Contains(file, "/") {
		file = strings.ReplaceAll(file, `\`, "/")
	} else if len(file) > 2 && file[1] == ':' {
		file = strings.ReplaceAll(file, `\`, "/")
	}
	return path.Clean(file)
}

// isAbs reports whether a path of any system is absolute.
func isAbs(file string) bool {
	return strings.HasPrefix(file, "/") || len(file) > 2 && file[1] == ':' && (file[2] == '/' || file[2] == '\\')
}
