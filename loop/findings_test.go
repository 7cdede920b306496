package loop

import (
	"fmt"
	"strings"
	"testing"

	"hone/check"
)

func parsed(file string, line int, text string) check.Finding {
	return check.Finding{Source: check.SourceCommand, File: file, Line: line, Text: text, ID: text}
}

func TestForModel(t *testing.T) {
	unread := check.Finding{Source: check.SourceCommand, Text: strings.Repeat("no reader knows this\n", 700)}
	note := check.Finding{Source: check.SourceCommand, Advisory: true, Text: "a note"}
	for name, c := range map[string]struct {
		findings []check.Finding
		want     []string
	}{
		"none":                  {nil, nil},
		"blocking before notes": {[]check.Finding{note, parsed("a.go", 1, "bad")}, []string{"a.go:1: bad", "a note"}},
		"an output that no reader knows is whole": {[]check.Finding{unread}, []string{strings.TrimRight(unread.Text, "\n")}},
		"of a place, two whole": {
			[]check.Finding{parsed("a.go", 1, "T/1: got 1, want 2\nmore"), parsed("a.go", 1, "T/2: got 3, want 4\nmore"), parsed("a.go", 1, "T/3: got 5, want 6\nmore"), parsed("b.go", 1, "other\nmore")},
			[]string{"a.go:1: T/1: got 1, want 2\nmore", "a.go:1: T/2: got 3, want 4\nmore", "a.go:1: T/3: got 5, want 6", "b.go:1: other\nmore"},
		},
		"equal ones are counted": {[]check.Finding{parsed("a.go", 1, "bad"), parsed("a.go", 1, "bad"), parsed("a.go", 1, "bad")}, []string{"a.go:1: bad (3 times)"}},
		"long runs":              {[]check.Finding{parsed("", 0, "got "+strings.Repeat("é", 5000)+"x")}, []string{"got éééééééééé[… 5000 times in all]x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ForModel(c.findings); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A suite of many failures stays within the room, the first ones whole, and nothing is lost
// without a word.
func TestForModelBounded(t *testing.T) {
	var many []check.Finding
	for i := range 150 {
		many = append(many, parsed(fmt.Sprintf("test/%d.js", i%7), i, fmt.Sprintf("case %d: got 0, want %d\n%s", i, i, strings.Repeat("stack of it\n", 30))))
	}
	texts := ForModel(many)
	all := strings.Join(texts, "\n\n")
	if len(all) > maxTold+1<<10 {
		t.Errorf("%d bytes", len(all))
	}
	if !strings.Contains(texts[0], "stack of it\nstack of it") || !strings.Contains(all, "case 40: got 0, want 40") {
		t.Errorf("the first is not whole, or others are not told in a line: %.2000s", all)
	}
	last := texts[len(texts)-1]
	if told := len(texts) - 1; !strings.HasPrefix(last, fmt.Sprintf("… and %d more findings, in test/", 150-told)) {
		t.Errorf("%d texts, the last is %q", len(texts), last)
	}
}

// Each file has a finding before "and … more", whichever has most.
func TestForModelEachFile(t *testing.T) {
	var many []check.Finding
	for i := range 200 {
		many = append(many, parsed("a_test.go", i, fmt.Sprintf("case %d: got 0, want %d\n%s", i, i, strings.Repeat("stack of it\n", 30))))
	}
	many = append(many, parsed("b_test.go", 1, "the cause\nwhole"), parsed("c_test.go", 1, "another"))
	all := strings.Join(ForModel(many), "\n\n")
	if !strings.Contains(all, "b_test.go:1: the cause\nwhole") || !strings.Contains(all, "c_test.go:1: another") {
		t.Errorf("%s", all)
	}
}
