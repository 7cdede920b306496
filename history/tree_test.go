package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// WriteTree writes the files of a manifest, or nothing if the contents of one are not stored.
func TestWriteTree(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{"a": "1\n", "sub/run.sh": "#!/bin/sh\n"} {
		path := filepath.Join(from, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home, err := journal.OpenHome(from)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	j, err := home.Create("r")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	source, target := openTree(t, from), openTree(t, to)
	m, err := source.Manifest(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := history.WriteTree(t.Context(), target, m, home); err == nil || !strings.Contains(err.Error(), "the contents of 2 files were not stored, such as a") {
		t.Errorf("nothing is stored: %v", err)
	}
	if m, err = history.KeepContents(t.Context(), source, j, nil, m, nil); err != nil {
		t.Fatal(err)
	}
	if err := history.WriteTree(t.Context(), target, m, home); err != nil {
		t.Fatal(err)
	}
	got, err := target.Manifest(t.Context(), nil)
	if err != nil || got.Digest() != m.Digest() {
		t.Errorf("the trees differ: %+v, %v", got, err)
	}
}

func openTree(t *testing.T, dir string) *workspace.Tree {
	t.Helper()
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}
