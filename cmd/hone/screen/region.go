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
	typed func() int // see Options; may be nil
	lines []string   // that are drawn
	input int        // what typed returned before
	at    int        // columns of the terminal when they were drawn
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
	lines = fitted(lines, columns, rows)
	entered := r.entered()
	switch {
	case entered == 0 && text == "" && slices.Equal(lines, r.lines) && (columns == r.at || len(lines) == 0):
		return
	case len(lines) == 0 && len(r.lines) == 0:
		_, _ = io.WriteString(r.out, text)
		return
	}
	b := strings.Builder{}
	b.WriteString(startUpdate)
	r.erase(&b, columns, entered)
	b.WriteString(text)
	if len(lines) > 0 {
		b.WriteString(noWrap + strings.Join(lines, "\n") + "\n" + wrap)
	}
	b.WriteString(endUpdate)
	_, _ = io.WriteString(r.out, b.String())
	r.lines, r.at = lines, columns
}

// If Enter was typed several times since the last call, lines of the region stay: that is better than erasing lines above it,
// because a line of several characters looks the same.
func (r *region) entered() int {
	if r.typed == nil {
		return 0
	}
	before := r.input
	r.input = r.typed()
	if r.input > before {
		return 1
	}
	return 0
}

// The terminal has echoed lines below the region. A terminal that became narrower has wrapped its lines.
func (r *region) erase(b *strings.Builder, columns, echoed int) {
	rows := 0
	for _, line := range r.lines {
		rows += max(1, (render.Width(line)+columns-1)/columns)
	}
	if rows > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", rows+echoed)
	}
}

// The last lines are the most important ones.
func fitted(lines []string, columns, rows int) []string {
	lines = lines[max(0, len(lines)-max(1, rows-1)):]
	fit := make([]string, len(lines))
	for i, line := range lines {
		fit[i] = render.Cut(strings.ReplaceAll(line, "\t", " "), columns-1)
	}
	return fit
}
