package table

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hone/sandbox"
	"hone/sandbox/prove/table/stage"
)

//go:embed attempts.md
var tableText string

// columns returns the walls of the table, in its order.
func columns() []sandbox.Wall {
	return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall}
}

// Expectation is the expected result of an attempt.
type Expectation struct {
	// Words are the allowed results: names of error numbers, "open", "held" or
	// "not tried".
	Words []string
	// Since is the first Landlock ABI for which Words apply; with an older one the
	// attempt gets through. 0 means that they always apply.
	Since int
}

// String returns the expectation as the table writes it.
func (e Expectation) String() string {
	text := strings.Join(e.Words, " or ")
	if e.Since > 0 {
		text += fmt.Sprintf(" from %d", e.Since)
	}
	return text
}

// open reports whether the attempt may get through. Other words then depend on
// the machine.
func (e Expectation) open() bool {
	return slices.Contains(e.Words, stage.WordOpen) || slices.Contains(e.Words, stage.WordNotTried)
}

// allows reports whether a word is one of the allowed results.
func (e Expectation) allows(word string) bool { return slices.Contains(e.Words, word) }

// under returns the expectation on a machine with a Landlock ABI.
func (e Expectation) under(abi int) Expectation {
	if abi < e.Since {
		return Expectation{Words: append([]string{stage.WordOpen, stage.WordNotTried}, e.Words...)}
	}
	return Expectation{Words: e.Words}
}

// row is the line of an attempt in the table.
type row struct {
	name  string
	about string
	cells map[sandbox.Wall]cell
}

// cell is the expectation for root and that for other users.
type cell struct{ root, user Expectation }

// expected returns the expectation behind a wall. An unknown wall is an error.
func (r row) expected(wall sandbox.Wall, root bool) (Expectation, error) {
	c, ok := r.cells[wall]
	switch {
	case !ok:
		return Expectation{}, fmt.Errorf("the table of attempts has no wall %s", wall)
	case root:
		return c.root, nil
	}
	return c.user, nil
}

// table returns the rows of attempts.md.
func table() ([]row, error) { return parseTable(tableText) }

// parseTable parses the only table of a Markdown text. Every line that starts with
// a bar must be a row.
func parseTable(text string) ([]row, error) {
	var rows []row
	head := []string{"attempt", "what it tries"}
	for _, wall := range columns() {
		head = append(head, string(wall))
	}
	seen := 0
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		seen++
		fields, err := splitRow(line, len(head))
		if err == nil {
			switch seen {
			case 1:
				err = checkHead(fields, head)
			case 2: // the line below the head
			default:
				rows, err = appendRow(rows, fields)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("attempts.md:%d: %w", i+1, err)
		}
	}
	return rows, nil
}

// splitRow returns the cells of a row.
func splitRow(line string, columns int) ([]string, error) {
	fields := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	if len(fields) != columns || !strings.HasSuffix(line, "|") {
		return nil, fmt.Errorf("%d columns instead of %d", len(fields), columns)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
		if fields[i] == "" {
			return nil, fmt.Errorf("column %d is empty", i+1)
		}
	}
	return fields, nil
}

// checkHead checks the names of the columns.
func checkHead(fields, head []string) error {
	if !slices.Equal(fields, head) {
		return fmt.Errorf("the head is %q instead of %q", fields, head)
	}
	return nil
}

// appendRow parses a row and appends it.
func appendRow(rows []row, fields []string) ([]row, error) {
	r := row{name: strings.Trim(fields[0], "`"), about: fields[1], cells: map[sandbox.Wall]cell{}}
	if slices.ContainsFunc(rows, func(other row) bool { return other.name == r.name }) {
		return nil, fmt.Errorf("%s already has a line", r.name)
	}
	for i, wall := range columns() {
		c, err := parseCell(fields[i+2])
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", r.name, wall, err)
		}
		r.cells[wall] = c
	}
	return append(rows, r), nil
}

// parseCell parses "ENOENT", "EACCES or EPERM", "EPERM from 6", or two of them
// separated by a slash: root's and other users'.
func parseCell(text string) (cell, error) {
	root, user, both := strings.Cut(text, "/")
	if !both {
		user = root
	}
	r, err := parseExpectation(root)
	if err != nil {
		return cell{}, err
	}
	u, err := parseExpectation(user)
	return cell{root: r, user: u}, err
}

// parseExpectation parses one part of a cell.
func parseExpectation(text string) (Expectation, error) {
	var e Expectation
	words, since, limited := strings.Cut(text, " from ")
	if limited {
		abi, err := strconv.Atoi(since)
		if err != nil || abi < 1 {
			return e, fmt.Errorf("%q is not a Landlock ABI", since)
		}
		e.Since = abi
	}
	for word := range strings.SplitSeq(words, " or ") {
		if !isWord(word) {
			return e, fmt.Errorf("%q is not a result", word)
		}
		e.Words = append(e.Words, word)
	}
	return e, nil
}

// isWord reports whether a text is a result.
func isWord(text string) bool {
	return text == stage.WordOpen || text == stage.WordHeld || text == stage.WordNotTried || regexp.MustCompile(`^E[A-Z0-9]+$`).MatchString(text)
}
