package loop

import (
	"slices"
	"strings"
	"testing"

	"hone/workspace"
)

// A directory in which all judges is named, and so is a kind of tests; a file only by itself.
func TestPartOfCheck(t *testing.T) {
	for judging, want := range map[string]string{
		"":                                      "",
		"a/a_test.go b/b_test.go":               "*_test.go",
		"test/a.js test/fixtures/b.js check.sh": "test/, check.sh",
		"lib/test_one.py lib/test_two.py":       "test_*.py",
		"Makefile src/app.spec.ts":              "Makefile, *.spec.ts",
	} {
		var files workspace.Manifest
		for _, name := range append(strings.Fields(judging), "main.go", "a/a.go", "b/b.go", "lib/lib.py", "src/app.ts") {
			files = append(files, workspace.Entry{Path: name})
		}
		if want != "" {
			want = "Part of the check, which must pass without edits of these: " + want + "\n"
		}
		if got := partOfCheck(files, func(path string) bool { return slices.Contains(strings.Fields(judging), path) }); got != want {
			t.Errorf("%s: %q, want %q", judging, got, want)
		}
	}
}
