package block

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzParse checks that a parsed reply is equal after Format and Parse, that
// problems name lines of the text in order, and that Check agrees.
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
		if err := r.Check(); (err == nil) != (len(after) == 0) {
			t.Errorf("check says %v, parse %v", err, after)
		}
		if err := r.Check(); len(problems) == 0 && err != nil {
			t.Errorf("a reply without problems: %v", err)
		}
	})
}

func checkProblems(t *testing.T, text string, problems []Problem) {
	t.Helper()
	lines := slices.Collect(strings.Lines(text))
	last := 0
	for _, p := range problems {
		if p.Line < last || p.Line > len(lines) {
			t.Fatalf("%v after line %d, of %d lines", p, last, len(lines))
		}
		last = p.Line
		if p.Line > 0 && !isMarker(lines[p.Line-1]) {
			t.Errorf("%v: the line is not a marker: %q", p, lines[p.Line-1])
		}
	}
	if len(problems) > maxProblems+1 {
		t.Errorf("%d problems", len(problems))
	}
}

func isMarker(line string) bool {
	_, r := classify(strings.TrimPrefix(line, "\ufeff"))
	return r != text
}

// FuzzFormat checks that Check accepts exactly the replies that Parse reads
// back unchanged and without problems.
func FuzzFormat(f *testing.F) {
	f.Add("hello", "mind", "a", "x\n", "b", "", "", uint8(3))
	f.Add("^^^", "x\r", "end", "y", "./a", "\r\n", "done", uint8(7))
	f.Add("", "", "a", "x\n", "delete", "", "", uint8(9))
	f.Add("\n", "%%%\n%%%", " a", "&&&end\n", "a\nb", "\n", "$$$", uint8(6))
	f.Fuzz(func(t *testing.T, thought, debug, path1, content1, path2, content2, done string, has uint8) {
		r := Reply{Thoughts: []string{thought}, Debug: []string{debug}}
		if has&1 != 0 {
			r.Files = append(r.Files, File{Path: path1, Content: []byte(content1)})
		}
		if has&2 != 0 {
			r.Files = append(r.Files, File{Path: path2, Content: []byte(content2)})
		}
		if has&8 != 0 {
			r.Files = append(r.Files, File{Path: path1 + path2, Delete: true})
		}
		if has&4 != 0 {
			r.Done = append(r.Done, done)
		}
		got, problems := Parse(Format(r))
		same := cmp.Equal(r, got, cmpopts.EquateEmpty()) && len(problems) == 0
		if err := r.Check(); (err == nil) != same {
			t.Errorf("check says %v; problems %v, (-want +got):\n%s", err, problems, cmp.Diff(r, got, cmpopts.EquateEmpty()))
		}
	})
}
