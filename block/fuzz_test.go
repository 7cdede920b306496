package block

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse checks that a parsed reply is equal after Format and Parse, and that
// problems name lines of the text in order.
func FuzzParse(f *testing.F) {
	for _, text := range hostile(1 << 10) {
		f.Add(text)
	}
	f.Add("&&&start\r\nx\r\r\n&&&end\r\n%%%\n^^^a\n%%%end\n^^^ ^b\n\n^^^end\n\n$$$START\n$$$end")
	f.Add("^^^a\n&&&start\n^^^end\n&&&start\n^^^b\n&&&end\n^^^end\n^^^end\n")
	f.Add("^^^a\n\n^^^delete\n\n^^^end\n^^^b\nx\n^^^delete\n^^^`c`\n^^^end\n^^^delete")
	f.Add("\ufeff^^^ end\n^^^./end\n\ufeff\n^^^END")
	f.Fuzz(func(t *testing.T, text string) {
		r, problems := Parse(text)
		checkProblems(t, text, problems)
		again, after := Parse(Format(r))
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("written and read again (-first +second):\n%s", diff)
		}
		if len(problems) == 0 && len(after) > 0 {
			t.Errorf("a reply without problems has some when it is written: %v", after)
		}
	})
}

func checkProblems(t *testing.T, text string, problems []Problem) {
	t.Helper()
	lines := slices.Collect(strings.Lines(text))
	last := 0
	for i, p := range problems {
		if i >= maxProblems && p.Line == 0 {
			continue // the number of those that are omitted
		}
		if p.Line < last || p.Line > len(lines) {
			t.Fatalf("%v after line %d, of %d lines", p, last, len(lines))
		}
		last = p.Line
		if p.Line > 0 && !isMarker(lines[p.Line-1]) {
			t.Errorf("%v: the line is not a marker: %q", p, lines[p.Line-1])
		}
	}
	if len(problems) > maxProblems+2 {
		t.Errorf("%d problems", len(problems))
	}
}

func isMarker(line string) bool {
	_, r := classify(strings.TrimPrefix(line, "\ufeff"))
	return r != text
}
