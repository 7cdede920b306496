package screen

import (
	"fmt"
	"strings"

	"hone/check"
	"hone/internal/render"
	"hone/story"
)

// Layout is the room for the lines of rounds.
type Layout struct {
	Columns int // of the terminal; 0 means that lines are not cut
	// Last is the largest number of a round; Files and Verdict are the columns of these.
	Last, Files, Verdict int
	// Whole gives a verdict that does not fit a line of its own; else it is cut.
	Whole bool
}

// LayoutFor returns the layout of rounds whose number is at most last, on a terminal
// with so many columns, before it is known what they will say.
func LayoutFor(columns, last int) Layout {
	columns = min(columns, widestLine)
	return Layout{Columns: columns, Last: last, Files: (columns - 1) / 4, Verdict: columns, Whole: true}
}

// LayoutOf returns the layout of all these rounds.
func LayoutOf(all []story.Round, columns int) Layout {
	l := Layout{Columns: columns}
	most, widest := 40, pipedVerdict
	if columns > 0 {
		most, widest = columns/3, 60
	}
	for _, r := range all {
		l.Last = max(l.Last, r.Number)
		l.Files = max(l.Files, min(most, render.Width(r.FilesText(most))))
		l.Verdict = max(l.Verdict, min(widest, render.Width(render.Line(r.Verdict))))
	}
	return l
}

// A round fits one line from a width of wideColumns. The lines of a run that is not over
// are no wider than widestLine.
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

// RoundLines returns a round as one line, or as two: on a narrow terminal the verdict has a
// line of its own, and so has one that is not to be cut.
func RoundLines(r story.Round, c render.Colours, l Layout) []string {
	name := render.Pad(r.Name(), len(story.Round{Number: l.Last}.Name()))
	figures := c.Dim(fmt.Sprintf("%5s %5s", render.Duration(r.Took), render.Short(r.Tokens)))
	head := fmt.Sprintf("%s %s  ", r.Outcome.Mark(c), name)
	fixed := len("x ") + len(name) + len("  ") + len("  ") + len("12.3s 12.3k")
	rest := pipedVerdict
	if l.Columns > 0 {
		rest = l.Columns - 1 - fixed
		if l.Files > 0 {
			rest -= l.Files + len("  ")
		}
		if l.Columns < wideColumns || l.Whole && render.Width(cut(r.Verdict, longestVerdict)) > rest {
			files := l.Columns - fixed
			return []string{head + render.Pad(r.FilesText(files), files) + " " + figures, "    " + cut(r.Verdict, l.Columns-5)}
		}
	}
	if l.Files > 0 {
		head += render.Pad(r.FilesText(l.Files), l.Files) + "  "
	}
	return []string{head + render.Pad(cut(r.Verdict, rest), min(rest, l.Verdict)) + "  " + figures}
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
