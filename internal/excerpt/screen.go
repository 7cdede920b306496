package excerpt

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/lazyregexp"
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

// code matches an escape sequence: with a number and a letter; a title, a link or other text for the terminal; or a short one.
var code = lazyregexp.New(`^\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\a\x1b]*(?:\a|\x1b\\)|[()#% ].|[^\[\]PX^_()#% ])`)

func screenLine(line string) string {
	if !strings.ContainsAny(line, controls) {
		return line
	}
	const widest = 500 // the column beyond which the cursor is not moved past the end of a line
	var cells []rune
	at := 0
	for len(line) > 0 {
		r, size := utf8.DecodeRuneInString(line)
		switch r {
		case '\r':
			at = 0
		case '\b':
			at = max(0, at-1)
		case '\a':
		case '\x1b':
			m := code.FindStringSubmatch(line)
			if m == nil {
				break // what begins a code that does not end is shown
			}
			size = len(m[0])
			n, err := strconv.Atoi(cmp.Or(m[1], "0"))
			if err != nil {
				break
			}
			switch m[2] {
			case "K", "J":
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
			case "G":
				at = min(max(1, n)-1, max(len(cells), widest))
			case "C":
				at = min(at+max(1, n), max(len(cells), widest))
			case "D":
				at = max(0, at-max(1, n))
			}
		default:
			for len(cells) <= at {
				cells = append(cells, ' ')
			}
			cells[at] = r
			at++
		}
		line = line[size:]
	}
	return string(cells)
}
