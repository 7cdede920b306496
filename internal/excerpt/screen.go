package excerpt

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Output returns what a program printed as text: as [Screen] does, and with U+FFFD for what
// is not UTF-8. All output is measured, read, shown and sent in this form.
func Output(stream []byte) string { return Screen(strings.ToValidUTF8(string(stream), "\uFFFD")) }

// Screen returns a program's output as a terminal shows it in the end: a carriage return
// goes back to the start of the line, as progress bars do, and codes for colours and the
// cursor are left out.
func Screen(output string) string {
	if !strings.ContainsAny(output, controls) {
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

// controls are the characters that a terminal does not show.
const controls = "\r\b\a\x1b"

// widest is the column beyond which the cursor is not moved past the end of a line.
const widest = 500

func screenLine(line string) string {
	if !strings.ContainsAny(line, controls) {
		return line
	}
	var cells []rune
	at := 0
	for len(line) > 0 {
		if line[0] == '\x1b' {
			code, rest := escape(line)
			cells, at = move(code, cells, at)
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
		case '\a':
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

func move(code string, cells []rune, at int) ([]rune, int) {
	if len(code) < 2 || code[0] != '[' {
		return cells, at
	}
	given := code[1 : len(code)-1]
	n, err := strconv.Atoi(given)
	if err != nil && given != "" {
		return cells, at
	}
	steps := max(1, n)
	switch code[len(code)-1] {
	case 'K', 'J':
		switch n {
		case 0:
			cells = cells[:min(at, len(cells))]
		case 1:
			for i := range min(at+1, len(cells)) {
				cells[i] = ' '
			}
		default:
			cells = cells[:0]
		}
	case 'P':
		if at < len(cells) {
			cells = slices.Delete(cells, at, min(at+steps, len(cells)))
		}
	case 'G':
		at = min(steps-1, max(len(cells), widest))
	case 'C':
		at = min(at+steps, max(len(cells), widest))
	case 'D':
		at = max(0, at-steps)
	}
	return cells, at
}

// A code that does not end in the text is only that character.
func escape(text string) (code, rest string) {
	if len(text) < 2 {
		return "", ""
	}
	end := 0
	switch text[1] {
	case '[':
		end = 1 + strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	case ']', 'P', 'X', '^', '_': // a title, a link or other text for the terminal
		bell, stop := strings.IndexByte(text, '\a'), strings.Index(text, "\x1b\\")
		if end = stop - 1; stop < 0 || bell >= 0 && bell < stop {
			return "", text[max(1, bell+1):]
		}
		return "", text[end+3:]
	case '(', ')', '#', ' ', '%':
		if len(text) > 2 {
			end = 1
		}
	default:
		return text[1:2], text[2:]
	}
	if end == 0 {
		return "", text[1:]
	}
	_, size := utf8.DecodeRuneInString(text[end+1:])
	return text[1 : end+1+size], text[end+1+size:]
}
