package history_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
)

func TestUndoOfARunThatChangesWhatIsIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		left          []string // of new/file and made.log
	}{
		"one rule more":        {"old\n", "old\nmore/\n", nil},
		"a rule less":          {"*.log\n", "", []string{"made.log"}},
		"a folder less":        {"# c\nnew/\n", "\n", []string{"new/file"}},
		"another order":        {"a\n*.log\n", "*.log\na\n", nil},
		"an exception":         {"*\n", "*\n!new\n", []string{"made.log", "new/file"}},
		"a rule hard to read":  {"[a-m]*\n", "", []string{"made.log", "new/file"}},
		"no file before":       {"", "*.tmp\n", nil},
		"the folder's own":     {"/new\n", "", []string{"new/file"}},
		"another folder's own": {"/x/new\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "0"})
			if c.before != "" {
				crashtest.WriteFile(dir, ".gitignore", c.before)
			}
			before := crashtest.Tree(t, dir)
			process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				_, err := hone.Once(ctx, r, "work", nil, func(context.Context) (seen, error) {
					crashtest.WriteFile(dir, ".gitignore", c.after)
					crashtest.WriteFile(dir, "new/file", "n")
					crashtest.WriteFile(dir, "made.log", "m")
					return seen{"done"}, nil
				}, func(context.Context, []string) (seen, error) { return seen{"cut off"}, nil })
				return nil, err
			}}.end(t, dir)
			v, _, err := crashtest.Undo(dir, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(v.Doubtful, " "); got != strings.Join(c.left, " ") {
				t.Errorf("left %q, want %q", got, c.left)
			}
			after := crashtest.Tree(t, dir)
			for _, p := range c.left {
				delete(after, p)
			}
			for p, want := range before {
				if after[p] != want {
					t.Errorf("%s is %q, and was %q", p, after[p], want)
				}
			}
			if len(c.left) == 0 && len(after) != len(before) {
				t.Errorf("%d entries, and %d before", len(after), len(before))
			}
		})
	}
}

// A file that stays does not block the restoration of a directory silently.
func TestUndoOfAFolderThatIsAFileNow(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{".gitignore": "*\n", "folder/sub/file": "f"})
	process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := hone.Once(ctx, r, "work", nil, func(context.Context) (seen, error) {
			crashtest.WriteFile(dir, ".gitignore", "!x\n")
			return seen{"done"}, replaceFolder(dir)
		}, func(context.Context, []string) (seen, error) { return seen{"cut off"}, nil })
		return nil, err
	}}.end(t, dir)
	v, _, err := crashtest.Undo(dir, 0, false)
	if err == nil || len(v.Conflicts) != 1 || v.Conflicts[0].Path != "folder" {
		t.Fatalf("conflicts %v, error %v", v.Conflicts, err)
	}
	if _, kept, err := crashtest.Undo(dir, 0, true); err != nil || kept["folder"] == "" || crashtest.ReadFile(dir, "folder/sub/file") != "f" {
		t.Errorf("kept %v, error %v", kept, err)
	}
}

func replaceFolder(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, "folder")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "folder"), []byte("a file now"), 0o644)
}
