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
func TestFaultTable(t *testing.T) { tableOfTests(t, "../../docs/faults.md", 5, 40, "fault_") }

// Each row of docs/threats.md names its tests, and each test about a threat has a
// row.
func TestThreatTable(t *testing.T) { tableOfTests(t, "../../docs/threats.md", 3, 2, "threat_") }

// tableOfTests checks the tables in a file: the number of columns, of which the
// last names tests, and the smallest number of rows. Every script whose name starts with
// prefix must be named.
func tableOfTests(t *testing.T, file string, columns, least int, prefix string) {
	t.Helper()
	skipDocs(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tests, named, rows := allTests(t), map[string]bool{}, 0
	inTable := false
	for line := range strings.Lines(string(text)) {
		heading := !inTable || strings.HasPrefix(line, "|---")
		if inTable = strings.HasPrefix(line, "|"); !inTable || heading {
			continue
		}
		cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), "|")
		if len(cells) != columns+2 {
			t.Errorf("a row of %d cells: %s", len(cells)-2, line)
			continue
		}
		rows++
		names := testName.FindAllStringSubmatch(cells[columns], -1)
		if len(names) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, n := range names {
			named[n[1]] = true
			if !tests[n[1]] {
				t.Errorf("there is no test %s: %s", n[1], line)
			}
		}
		for i, cell := range cells[1 : columns+1] {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("cell %d is empty: %s", i+1, line)
			}
		}
	}
	if rows < least {
		t.Errorf("the tables have %d rows", rows)
	}
	for name := range tests {
		if strings.HasPrefix(name, prefix) && !named[name] {
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
