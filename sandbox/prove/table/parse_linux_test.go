package table

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
)

func TestParseCell(t *testing.T) {
	for _, tt := range []struct {
		text string
		want cell
	}{
		{"ENOENT", cell{Expectation{Words: []string{"ENOENT"}}, Expectation{Words: []string{"ENOENT"}}}},
		{"open/EPERM", cell{Expectation{Words: []string{"open"}}, Expectation{Words: []string{"EPERM"}}}},
		{"EPERM from 6", cell{Expectation{Words: []string{"EPERM"}, Since: 6}, Expectation{Words: []string{"EPERM"}, Since: 6}}},
		{"EAGAIN or held/not tried", cell{Expectation{Words: []string{"EAGAIN", "held"}}, Expectation{Words: []string{"not tried"}}}},
	} {
		got, err := parseCell(tt.text)
		if err != nil {
			t.Errorf("parseCell(%q): %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(cell{})); diff != "" {
			t.Errorf("parseCell(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestTableIsStrict(t *testing.T) {
	const head = "| attempt | what it tries | hidden | bwrap | landlock | firejail | none |\n|-|-|-|-|-|-|-|\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a column is missing", head + "| `a` | b | open | open | open | open |\n", "attempts.md:3: 6 columns instead of 7"},
		{"a cell is empty", head + "| `a` | b | open |  | open | open | open |\n", "attempts.md:3: column 4 is empty"},
		{"the bar at the end is missing", head + "| `a` | b | open | open | open | open | open\n", "attempts.md:3: 7 columns instead of 7"},
		{"an unknown word", head + "| `a` | b | open | stopped | open | open | open |\n", `"stopped" is not a result`},
		{"an invalid number", head + "| `a` | b | open | open | EPERM from now | open | open |\n", `"now" is not a Landlock ABI`},
		{"a name twice", head + strings.Repeat("| `a` | b | open | open | open | open | open |\n", 2), "attempts.md:4: a already has a line"},
		{"another head", strings.Replace(head, "bwrap", "bubblewrap", 1), "attempts.md:1: the head is"},
	} {
		_, err := parseTable(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestExpected(t *testing.T) {
	rows, err := table()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == "read-file" })
	e, err := rows[i].expected(sandbox.Hidden, true)
	if err != nil || e.String() != "ENOENT" {
		t.Errorf("read-file behind hidden walls: %v, %v", e, err)
	}
	if _, err := rows[i].expected(sandbox.Auto, true); err == nil {
		t.Error("auto is in the table")
	}
}

func TestOlderLandlock(t *testing.T) {
	e := Expectation{Words: []string{"EPERM"}, Since: 6}
	if !e.under(5).open() || !e.under(5).allows("EPERM") {
		t.Errorf("below its ABI: %v", e.under(5))
	}
	if e.under(6).open() {
		t.Errorf("at its ABI: %v", e.under(6))
	}
}
