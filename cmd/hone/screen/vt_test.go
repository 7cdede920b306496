package screen_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// vt is a terminal with as many rows as it needs, so that nothing scrolls away.
type vt struct {
	columns  int
	rows     []vtRow
	row, col int
	noWrap   bool
}

// vtRow is a row of cells; the second cell of a wide character is empty.
type vtRow struct {
	cells []string
	wraps bool // the next row continues it
}

var controls = regexp.MustCompile(`^\x1b\[(\?)?([0-9]*)([a-zA-Z])`)

// terminal returns what a terminal of a given width shows for the bytes written.
func terminal(written string, columns int) string {
	t := &vt{columns: columns, rows: make([]vtRow, 1)}
	t.write(written)
	return t.String()
}

func (t *vt) String() string {
	var lines []string
	for _, r := range t.rows {
		lines = append(lines, strings.TrimRight(strings.Join(r.cells, ""), " "))
	}
	return strings.Join(lines, "\n")
}

func (t *vt) Write(b []byte) (int, error) {
	t.write(string(b))
	return len(b), nil
}

func (t *vt) write(text string) {
	for text != "" {
		if m := controls.FindStringSubmatch(text); m != nil {
			t.control(m[1] != "", m[2], m[3])
			text = text[len(m[0]):]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch r {
		case '\r':
			t.col = 0
		case '\n': // a terminal's driver adds the return
			t.down()
			t.col = 0
		case '\a':
		default:
			t.put(string(r))
		}
	}
}

func (t *vt) control(private bool, number, what string) {
	n, _ := strconv.Atoi(number)
	switch {
	case private && n == 7:
		t.noWrap = what == "l"
	case private, what == "m":
	case what == "A":
		t.row = max(0, t.row-max(1, n))
	case what == "J":
		t.rows = t.rows[:t.row+1]
		fallthrough
	case what == "K":
		t.rows[t.row].wraps = false
		t.rows[t.row].cells = t.rows[t.row].cells[:min(t.col, len(t.rows[t.row].cells))]
	default:
		panic("unknown control " + what)
	}
}

func (t *vt) down() {
	t.row++
	if t.row == len(t.rows) {
		t.rows = append(t.rows, vtRow{})
	}
}

func (t *vt) put(char string) {
	cells := []string{char}
	if displaywidth.String(char) == 2 {
		cells = append(cells, "")
	}
	if t.col+len(cells) > t.columns {
		if t.noWrap {
			t.col = t.columns - len(cells)
		} else {
			t.rows[t.row].wraps = true
			t.down()
			t.col = 0
		}
	}
	row := &t.rows[t.row]
	for len(row.cells) < t.col+len(cells) {
		row.cells = append(row.cells, " ")
	}
	copy(row.cells[t.col:], cells)
	t.col += len(cells)
}

// resize changes the width, and wraps the rows anew, as most terminals do. The cursor
// stays at its text.
func (t *vt) resize(columns int) {
	var rows []vtRow
	row := 0
	for i := 0; i < len(t.rows); i++ {
		at := i == t.row
		line := slices.Clone(t.rows[i].cells)
		for t.rows[i].wraps && i+1 < len(t.rows) {
			i++
			at = at || i == t.row
			line = append(line, t.rows[i].cells...)
		}
		for len(line) > columns {
			rows = append(rows, vtRow{line[:columns], true})
			line = line[columns:]
		}
		rows = append(rows, vtRow{cells: line})
		if at {
			row = len(rows) - 1
		}
	}
	t.rows, t.row, t.columns = rows, row, columns
}
