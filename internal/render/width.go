package render

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// onTerminal measures texts as a terminal shows them: escape sequences take no columns.
var onTerminal = displaywidth.Options{ControlSequences: true}

// Width returns how many columns of a terminal a line takes.
func Width(line string) int { return onTerminal.String(line) }

// Cut shortens a line that is wider than columns, and ends it with an ellipsis. columns
// below 1 count as 1.
func Cut(line string, columns int) string {
	return onTerminal.TruncateString(line, max(1, columns), "…")
}

// Pad appends spaces to a line that is narrower than columns.
func Pad(line string, columns int) string {
	return line + strings.Repeat(" ", max(0, columns-Width(line)))
}

// Aligned returns a line for each row of cells, with two spaces between the columns. A
// column whose element of right is true is aligned to the right.
func Aligned(rows [][]string, right ...bool) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	var lines []string
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-Width(cell))
			if i < len(right) && right[i] {
				cell, fill = fill+cell, ""
			}
			b.WriteString(cell + fill + "  ")
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// Fill wraps the lines of a text at words, so that none is wider than columns. A line
// continues below its second column, which two spaces separate from the first, or else
// below its start. A comment of a configuration stays one.
func Fill(text string, columns int) string { return fill(text, columns, 0) }

// Wrap is [Fill], but a line without a second column continues two spaces further right.
func Wrap(text string, columns int) string { return fill(text, columns, 2) }

func fill(text string, columns, more int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = wrapped(line, columns, more)
	}
	return strings.Join(lines, "\n")
}

// A word that is wider than columns is not broken. more is that of hangingIndent.
func wrapped(line string, columns, more int) string {
	if Width(line) <= columns {
		return line
	}
	indent := strings.Repeat(" ", hangingIndent(line, columns, more))
	if strings.HasPrefix(line, "# ") {
		indent = "# "
	}
	var b strings.Builder
	used, gap := 0, ""
	for _, word := range strings.SplitAfter(line, " ") {
		text := strings.TrimSuffix(word, " ")
		if text != "" && used > len(indent) && used+len(gap)+Width(text) > columns {
			b.WriteString("\n" + indent)
			used, gap = len(indent), ""
		}
		if text != "" {
			b.WriteString(gap + text)
			used += len(gap) + Width(text)
			gap = ""
		}
		gap += word[len(text):]
	}
	return b.String()
}

// hangingIndent returns the indentation of a line's continuation: that of its second
// column, which two spaces separate from the first, or else that of its start plus more.
func hangingIndent(line string, columns, more int) int {
	start := len(line) - len(strings.TrimLeft(line, " "))
	if end := strings.Index(line[start:], "  "); end > 0 {
		rest := strings.TrimLeft(line[start+end:], " ")
		if at := Width(line) - Width(rest); at <= columns/2 {
			return at
		}
		return start + 4 // the terminal is too narrow for two columns
	}
	return start + more
}

// Colours colours texts for a terminal; false leaves them as they are. It uses
// only the base colours of a terminal, which are legible on any background.
type Colours bool

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	reset  = "\x1b[0m"
)

// HasColours reports whether a stream gets colours: a terminal does, unless NO_COLOR is
// set or TERM is dumb, and so does any stream if CLICOLOR_FORCE is set.
func HasColours(getenv func(string) string, terminal bool) Colours {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return Colours(terminal && getenv("TERM") != "dumb")
}

// Red, Green, Yellow, Bold and Dim return a coloured text.
func (c Colours) Red(s string) string    { return c.in(red, s) }
func (c Colours) Green(s string) string  { return c.in(green, s) }
func (c Colours) Yellow(s string) string { return c.in(yellow, s) }
func (c Colours) Bold(s string) string   { return c.in(bold, s) }
func (c Colours) Dim(s string) string    { return c.in(dim, s) }

func (c Colours) in(colour, s string) string {
	if !c || s == "" {
		return s
	}
	return colour + s + reset
}

// Diff colours the lines of a diff.
func (c Colours) Diff(diff string) string {
	if !c {
		return diff
	}
	var b strings.Builder
	for line := range strings.Lines(diff) {
		body, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		switch {
		case strings.HasPrefix(body, "---"), strings.HasPrefix(body, "+++"):
			b.WriteString(c.Bold(body) + end)
		case strings.HasPrefix(body, "@@"):
			b.WriteString(c.in(cyan, body) + end)
		case strings.HasPrefix(body, "+"):
			b.WriteString(c.Green(body) + end)
		case strings.HasPrefix(body, "-"):
			b.WriteString(c.Red(body) + end)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}
