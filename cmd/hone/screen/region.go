package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"hone/internal/render"
)

// region keeps a few lines at the end of a terminal's contents. Everything else is
// printed above them.
type region struct {
	out io.Writer
	// size returns the columns and rows of the terminal. It is called at each update,
	// so that no signal is needed when the terminal is resized.
	size  func() (columns, rows int)
	lines []string // that are drawn
	at    int      // columns of the terminal when they were drawn
}

// A terminal ignores sequences that it does not know. Synchronised output shows an
// update at once. The terminal must not wrap a line of the region, because it may
// give a character another width than [render.Width] does.
const (
	startUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"
	noWrap      = "\x1b[?7l"
	wrap        = "\x1b[?7h"
)

// The text must end with a newline unless there are no lines. One Write prints everything.
func (r *region) update(text string, lines []string) {
	columns, rows := r.size()
	lines = slices.Clone(lines[max(0, len(lines)-max(1, rows-1)):]) // the last are the most important ones
	for i, line := range lines {
		lines[i] = render.Cut(strings.ReplaceAll(line, "\t", " "), columns-1)
	}
	switch {
	case text == "" && slices.Equal(lines, r.lines) && (columns == r.at || len(lines) == 0):
		return
	case len(lines) == 0 && len(r.lines) == 0:
		_, _ = io.WriteString(r.out, text)
		return
	}
	b := strings.Builder{}
	b.WriteString(startUpdate)
	drawn := 0 // rows: a terminal that became narrower has wrapped the lines
	for _, line := range r.lines {
		drawn += max(1, (render.Width(line)+columns-1)/columns)
	}
	if drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", drawn)
	}
	b.WriteString(text)
	if len(lines) > 0 {
		b.WriteString(noWrap + strings.Join(lines, "\n") + "\n" + wrap)
	}
	b.WriteString(endUpdate)
	_, _ = io.WriteString(r.out, b.String())
	r.lines, r.at = lines, columns
}
