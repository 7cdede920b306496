package render

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// onTerminal measures texts as a terminal shows them: colours take no room.
var onTerminal = displaywidth.Options{ControlSequences: true}

// Width returns how many columns of a terminal a line takes.
func Width(line string) int { return onTerminal.String(line) }

// Cut cuts a line to so many columns, of which an ellipsis is the last; at least one is
// left.
func Cut(line string, columns int) string {
	return onTerminal.TruncateString(line, max(1, columns), "…")
}

// Pad fills a line with spaces up to so many columns.
func Pad(line string, columns int) string {
	return line + strings.Repeat(" ", max(0, columns-Width(line)))
}

// Aligned returns a line for each row of cells, with two spaces between the columns.
// Those of right are aligned to the right.
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
