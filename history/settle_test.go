package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// A process died after one of three edits, and then the user changed the file of another: the
// one is taken back.
func TestApplyChangedAfterCrash(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
	}
	if err := errors.Join(put("a", "old"), put("b", "old"), put("c", "old")); err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	j, err := home.Create("run")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	vs, err := tree.Review(workspace.Change{Edits: []workspace.Edit{edit("a", "new"), edit("b", "new"), edit("c", "new")}}, workspace.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"old", "new"} {
		if _, err := j.Put([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(put("a", "new"), put("b", "the user's")); err != nil {
		t.Fatal(err)
	}
	done, err := history.Apply(t.Context(), tree, home, history.ApplyBegun{Verdicts: vs})
	if err != nil || !slices.Equal(done.Outdated, []string{"b"}) || len(done.Verdicts) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range map[string]string{"a": "old", "b": "the user's", "c": "old"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
