package screen

import (
	"cmp"
	"fmt"
	"strings"

	"hone/check"
	"hone/internal/render"
	"hone/story"
)

// A round fits one line from a width of wideColumns. No line is wider than widestLine.
const (
	wideColumns = 64
	widestLine  = 120
)

// A verdict that has a line of its own is cut at longestVerdict, and one in a line of a file or a
// pipe at pipedVerdict.
const (
	longestVerdict = 200
	pipedVerdict   = 100
)

// RoundLines returns a round as one line for a terminal with so many columns, or as two: on a narrow
// terminal the verdict has a line of its own, and so has one that does not fit. 0 columns mean
// that there is no terminal: it is one line. last is the largest number of a round.
func RoundLines(r story.Round, c render.Colours, columns, last int) []string {
	piped := columns == 0
	columns = min(cmp.Or(columns, widestLine), widestLine)
	head := fmt.Sprintf("%s %s  ", r.Outcome.Mark(c), render.Pad(r.Name(), len(story.Round{Number: last}.Name())))
	figures := c.Dim(fmt.Sprintf("%5s %5s", render.Duration(r.Took), render.Short(r.Tokens)))
	room, files := columns-render.Width(head)-len("  ")-len("12.3s 12.3k"), (columns-1)/4
	rest := room - 1 - files - len("  ")
	verdict := cut(r.Verdict, rest)
	switch {
	case piped:
		verdict = cut(r.Verdict, pipedVerdict)
	case columns < wideColumns || render.Width(cut(r.Verdict, longestVerdict)) > rest:
		return []string{head + render.Pad(r.FilesText(room), room) + " " + figures, "    " + cut(r.Verdict, columns-5)}
	}
	return []string{head + render.Pad(r.FilesText(files), files) + "  " + render.Pad(verdict, rest) + "  " + figures}
}

func cut(text string, columns int) string {
	return render.Cut(strings.ReplaceAll(render.Line(text), "\t", " "), columns)
}

// FindingLines returns the first of the findings that block, one a line that is safe to
// print, and how many more there are: more says how to see those. The lines have at most
// so many columns; 0 means that only very long ones are cut.
func FindingLines(findings []check.Finding, columns int, more string) []string {
	if columns == 0 {
		columns = longestVerdict
	}
	lines, rest := story.FirstFindings(findings)
	for i, line := range lines {
		lines[i] = cut(line, columns)
	}
	if rest > 0 {
		lines = append(lines, fmt.Sprintf("… %d more: %s", rest, more))
	}
	return lines
}
