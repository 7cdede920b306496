package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuick measures everything once, with small sizes: each row has a figure, or says why it has none.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it measures other processes")
	}
	hone := filepath.Join(t.TempDir(), "hone")
	if err := runGo("-C", "../..", "build", "-trimpath", "-o", hone, "./cmd/hone"); err != nil {
		t.Fatal(err)
	}
	table, err := measure(hone, quick(), t.Output())
	if err != nil {
		t.Error(err)
	}
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.HasPrefix(strings.TrimSpace(cells[1]), "**") {
			continue
		}
		rows++
		if !strings.ContainsAny(strings.Join(cells[2:], ""), "0123456789") && !strings.Contains(cells[1], "not measured: ") && rows > 2 {
			t.Errorf("no figure: %s", line)
		}
	}
	if rows < 30 {
		t.Errorf("the table has only %d rows:\n%s", rows, table)
	}
}

// TestTable: what a row shows of its measurements and goals.
func TestTable(t *testing.T) {
	floor := &row{name: "floor", got: []figures{{wall: 3e6, first: 1e6}, {wall: 1e6, first: 1e6}, {wall: 2e6, first: 1e6}}}
	slow := &row{name: "slow", got: []figures{{wall: 30e6, first: 3e6, cpu: 61e6, sent: 39_000, rss: 2e6, pss: 1e6}}, goal: goal{times: 4, plus: 30, first: 4, cpu: 60, sent: 40, pss: 4}}
	for _, tt := range []struct {
		row  *row
		want string
	}{
		{floor, "floor|2.0 (1.0)|1.0|1.0|1.0|||"},
		{slow, "slow|30 (30)|**15** (goal 4.0); 28 (goal 30) ms more|3.0|3.0 (goal 4.0)|**61** (goal 60)|39 (goal 40)|2.0 / 1.0 (goal 4.0)"},
		{&row{name: "none", err: os.ErrNotExist}, "none (not measured: file does not exist)|–||||||"},
	} {
		if got := strings.Join(tt.row.cells(floor, floor), "|"); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestBusy(t *testing.T) {
	for load, want := range map[string]bool{"0.02 9.00 9.00": false, "1000.00 0.00 0.00": true, "unknown": false} {
		if isBusy(load) != want {
			t.Errorf("%s: %v", load, !want)
		}
	}
}

// TestWrite: the table replaces the last one, and nothing else.
func TestWrite(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for _, tt := range []struct{ before, after string }{
		{"a\n" + begin + "old\n" + end + "b\n", "a\n" + begin + "\nnew\n\n" + end + "b\n"},
		{"a\n" + begin + "b\n", ""},
	} {
		if err := os.WriteFile(page, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := write(page, "new\n")
		if got, _ := os.ReadFile(page); err == nil && string(got) != tt.after {
			t.Errorf("the page is %q", got)
		}
		if (err == nil) != (tt.after != "") {
			t.Errorf("the error is %v", err)
		}
	}
}
