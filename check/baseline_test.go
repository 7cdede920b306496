package check_test

import (
	"slices"
	"testing"

	"hone/check"
)

func TestBaseline(t *testing.T) {
	at := func(id string, line int) check.Finding {
		return check.Finding{ID: id, File: "a", Line: line, Text: "x"}
	}
	b := check.BaselineOf([]check.Finding{at("a: long", 1), at("a: long #2", 9), at("b: unused", 3), {Text: "no identity"}})
	if got, want := b.Lines(), []string{"a: long (2 times)", "b: unused"}; !slices.Equal(got, want) {
		t.Errorf("lines: %q", got)
	}
	untouched := func(check.Finding) bool { return false }
	for _, c := range []struct {
		name    string
		now     []check.Finding
		touched int // the line that the run has changed
		added   []int
	}{
		{"moved", []check.Finding{at("a: long", 41), at("a: long #2", 42), at("b: unused", 7)}, 0, nil},
		{"fewer", []check.Finding{at("a: long", 9)}, 0, nil},
		{"multiplied", []check.Finding{at("a: long", 1), at("a: long #2", 5), at("a: long #3", 9)}, 5, []int{5}},
		{"multiplied elsewhere", []check.Finding{at("a: long", 1), at("a: long #2", 5), at("a: long #3", 9)}, 0, []int{9}},
		{"another file", []check.Finding{at("c: long", 1)}, 0, []int{1}},
		{"no identity", []check.Finding{{Line: 4, Text: "no identity"}}, 0, []int{4}},
		{"hides others", []check.Finding{{ID: "b: unused", Line: 3, Partial: true}}, 0, []int{3}},
	} {
		touched := untouched
		if c.touched > 0 {
			touched = func(f check.Finding) bool { return f.Line == c.touched }
		}
		added, old := b.Split(c.now, touched)
		var lines []int
		for _, f := range added {
			lines = append(lines, f.Line)
		}
		if !slices.Equal(lines, c.added) || len(added)+len(old) != len(c.now) {
			t.Errorf("%s: new in lines %v, want %v", c.name, lines, c.added)
		}
	}
}
