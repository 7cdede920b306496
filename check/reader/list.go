package reader

import (
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/excerpt"
)

type rank int

const (
	crash   rank = iota // it does not compile, or did not end
	failure             // a test failed, or a linter calls it an error
	warning
	note
)

// item is what a format reads: a finding without its ID and its final text.
type item struct {
	rank rank
	// test is a test's full name. If it is empty, the item is recognized by file, the
	// first line of text, and rule unless that line has it.
	test string
	rule string
	file string
	line int
	text string
	// explicit means that the line has a column and a severity.
	explicit bool
	// silent means that the text only says that the test failed.
	silent bool
}

type list struct {
	items []item
	exit  int // the program's exit status; -1 if it was stopped by a signal or by its time limit
}

func (l *list) addInterrupted(test, name string, said []string) {
	if l.exit < 0 {
		l.add(item{rank: crash, test: test, text: headed(name+": it was running when the command was stopped", dedent(said))})
	}
}

func (l *list) add(i ...item) { l.items = append(l.items, i...) }

func (l *list) more(line string) {
	if last := &l.items[len(l.items)-1]; len(last.text) < maxText {
		last.text += "\n" + line
	}
}

// maxText is the length of the longest text of a finding, in bytes.
const maxText = 4 << 10

func (l *list) findings() []check.Finding {
	slices.SortStableFunc(l.items, func(a, b item) int { return int(a.rank - b.rank) })
	advisory := l.exit == 0 || len(l.items) > 0 && l.items[0].rank < warning
	var found []check.Finding
	times := make(map[string]int, len(l.items))
	for _, i := range l.items {
		if i.file = cleanFile(i.file); i.file == "" {
			i.line = 0 // of nothing
		}
		if i.text = strings.Trim(i.text, " \t\n"); i.text == "" {
			i.text = "failed"
		}
		id := i.id()
		times[id]++
		if n := times[id]; n > 1 {
			id = fmt.Sprintf("%s #%d", id, n)
		}
		found = append(found, check.Finding{
			Source: check.SourceCommand, File: i.file, Line: i.line, ID: id,
			Text:     withValues(excerpt.Middle(withoutForeign(excerpt.Middle(i.text, 16*maxText)), maxText)),
			Partial:  i.rank == crash,
			Advisory: advisory && i.rank >= warning,
		})
	}
	return found
}

// told returns the item with what its program said about it: the first line has a name and what is wrong, and the place is the
// first in the user's code, if the text has one.
func (i item) told(name, said, text string) item {
	if file, line := locate(text); file != "" {
		i.file, i.line = file, line
	}
	i.text = headed(strings.TrimSuffix(name+": "+said, ": "), text)
	return i
}

// Two formats that find something in the same lines have equal keys.
func (i item) key() string { return fmt.Sprintf("%s\n%s:%d", i.id(), i.file, i.line) }

// maxID is the length of the longest first line in an ID, in bytes.
const maxID = 300

func (i item) id() string {
	if name := strings.Join(strings.Fields(i.test), " "); name != "" {
		return name
	}
	first, _, _ := strings.Cut(i.text, "\n")
	first = stableText(first)
	if len(first) > maxID {
		first = strings.ToValidUTF8(first[:maxID], "")
	}
	if strings.Contains(first, i.rule) {
		i.rule = ""
	}
	return strings.Join(slices.DeleteFunc([]string{i.rule, i.file, first}, func(s string) bool { return s == "" }), ": ")
}

// It lacks what differs between two runs.
func stableText(text string) string { return strings.Join(strings.Fields(check.Normalize(text)), " ") }
