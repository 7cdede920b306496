package excerpt

import (
	"strings"
	"unicode/utf8"
)

// Screen returns a program's output as a terminal shows it in the end: a carriage return
// goes back to the start of the line, as progress bars do, and codes for colours and the
// cursor are left out.
func Screen(output string) string {
	if !strings.ContainsAny(output, "\r\b\x1b") {
		return output
	}
	var b strings.Builder
	for line := range strings.Lines(output) {
		text, ended := strings.CutSuffix(line, "\n")
		b.WriteString(screenLine(text))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func screenLine(line string) string {
	if !strings.ContainsAny(line, "\r\b\x1b") {
		return line
	}
	var cells []rune
	at := 0
	for len(line) > 0 {
		if line[0] == '\x1b' {
			code, rest := escape(line)
			switch code {
			case "[K", "[0K":
				cells = cells[:min(at, len(cells))]
			case "[2K":
				cells = cells[:0]
			}
			line = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		line = line[size:]
		switch r {
		case '\r':
			at = 0
			continue
		case '\b':
			at = max(0, at-1)
			continue
		}
		for len(cells) <= at {
			cells = append(cells, ' ')
		}
		cells[at] = r
		at++
	}
	return string(cells)
}

// escape returns the code after the escape character that a text starts with, and the rest
// of the text.
func escape(text string) (code, rest string) {
	if len(text) < 2 {
		return "", ""
	}
	ends := func(byte) bool { return true }
	switch text[1] {
	case '[':
		ends = func(c byte) bool { return c >= '@' && c <= '~' }
	case ']':
		ends = func(c byte) bool { return c == '\a' || c == '\\' }
	case '(', ')':
	default:
		return text[1:2], text[2:]
	}
	for i := 2; i < len(text); i++ {
		if ends(text[i]) {
			return text[1 : i+1], text[i+1:]
		}
	}
	return "", ""
}
