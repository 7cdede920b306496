package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// frame is what a terminal shows from a time on.
type frame struct {
	at   time.Duration
	rows [][]run
	x, y int // cells before and above the cursor
}

// run is a text of one style in a row. It ends before two spaces, and after a character
// that fonts may give another width, so that what follows is in its place.
type run struct {
	column int
	text   string
	class  string // of the style sheet
}

// Between these sequences a terminal shows nothing new.
const (
	beginUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"
)

// shortest is the least time for which a frame is shown.
const shortest = 80 * time.Millisecond

// frames returns what a terminal shows of a recording. Colours other than the sixteen
// standard ones, and backgrounds, are not distinguished.
func frames(recording []output, columns, rows int) []frame {
	terminal := vt.NewEmulator(columns, rows)
	defer terminal.Close()
	var list []frame
	written := ""
	for _, o := range recording {
		_, _ = terminal.WriteString(o.text) // a write to memory cannot fail
		written += o.text
		if strings.LastIndex(written, beginUpdate) <= strings.LastIndex(written, endUpdate) {
			list = appendFrame(list, shown(terminal, o.at))
		}
	}
	return list
}

// appendFrame appends a frame that differs from the last one, and replaces that if it
// was shown too briefly.
func appendFrame(list []frame, f frame) []frame {
	last := len(list) - 1
	switch {
	case last >= 0 && slices.EqualFunc(list[last].rows, f.rows, slices.Equal) && list[last].x == f.x && list[last].y == f.y:
		return list
	case last >= 0 && f.at-list[last].at < shortest:
		f.at = list[last].at
		list = list[:last]
	}
	return append(list, f)
}

// shown returns what a terminal shows.
func shown(terminal *vt.Emulator, at time.Duration) frame {
	cursor := terminal.CursorPosition()
	f := frame{at: at, x: cursor.X, y: cursor.Y}
	for y := range terminal.Height() {
		f.rows = append(f.rows, runs(terminal, y))
	}
	return f
}

// runs returns a row without the spaces around its runs.
func runs(terminal *vt.Emulator, y int) []run {
	var row []run
	breaks := true
	for x := range terminal.Width() {
		c := terminal.CellAt(x, y)
		if c.Width == 0 { // covered by a wide character
			continue
		}
		class := styleClass(c.Style)
		breaks = breaks || row[len(row)-1].class != class
		switch {
		case breaks && c.Content == " ":
			continue
		case breaks:
			row = append(row, run{x, c.Content, class})
		default:
			row[len(row)-1].text += c.Content
		}
		breaks = c.Content[0] >= utf8.RuneSelf || strings.HasSuffix(row[len(row)-1].text, "  ")
	}
	for i := range row {
		row[i].text = strings.TrimRight(row[i].text, " ")
	}
	return slices.DeleteFunc(row, func(r run) bool { return r.text == "" })
}

// styleClass returns the classes of the style sheet for a style.
func styleClass(s uv.Style) string {
	var classes []string
	if c, ok := s.Fg.(ansi.BasicColor); ok {
		classes = append(classes, fmt.Sprintf("c%d", c%8))
	}
	if s.Attrs&uv.AttrBold != 0 {
		classes = append(classes, "bold")
	}
	if s.Attrs&uv.AttrFaint != 0 {
		classes = append(classes, "dim")
	}
	return strings.Join(classes, " ")
}
