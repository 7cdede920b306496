package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultTable: each row of docs/faults.md names existing tests, and each
// script about a fault has a row.
func TestFaultTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, named, rows := allTests(t), map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), "|")
		if len(cells) != 7 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "fault" {
			if strings.HasPrefix(line, "|") && len(cells) != 7 {
				t.Errorf("a row of %d cells: %s", len(cells)-2, line)
			}
			continue
		}
		rows++
		names := testName.FindAllStringSubmatch(cells[5], -1)
		if len(names) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, n := range names {
			named[n[1]] = true
			if !tests[n[1]] {
				t.Errorf("there is no test %s: %s", n[1], line)
			}
		}
		for i, cell := range cells[1:6] {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("cell %d is empty: %s", i+1, line)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the table has %d rows", rows)
	}
	for name := range tests {
		if strings.HasPrefix(name, "fault_") && !named[name] {
			t.Errorf("%s has no row", name)
		}
	}
}

// testName matches a test in the table. The group is its name without a subtest.
var testName = regexp.MustCompile("`([A-Za-z0-9_.]+)[^`]*`")

// allTests returns the names of all tests and scripts of the repository.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".hone"):
			return fs.SkipDir
		case filepath.Ext(path) == ".txtar":
			tests[d.Name()] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllSubmatch(text, -1) {
				tests[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
