package workspace

import (
	"context"
	"errors"
	"slices"
	"testing"

	"hone/workspace/treepath"
)

// A tree neither lists, reads nor changes what is in its closed directory,
// however the path is spelled.
func TestClosed(t *testing.T) {
	const why = "logs contains records and is closed"
	tree := newTree(t, map[string]string{"logs/a": "x", "a": "x", "sub/logs/a": "x", "logs2/a": "x"}, Options{})
	tree.Shut(why, "logs")
	for path, closed := range map[string]bool{
		"logs": true, "logs/a": true, "./logs/a": true, "LOGS/a": true, "logs/none": true, "logs\u200c/a": true,
		"a": false, "sub/logs/a": false, "logs2/a": false,
	} {
		_, _, err := tree.Read(path)
		var refused *treepath.RefusedError
		if got := errors.As(err, &refused) && refused.Reason == why; got != closed {
			t.Errorf("read %q: %v", path, err)
		}
		verdicts, err := tree.Review(Change{Edits: []Edit{{Path: path, Content: []byte("y")}}}, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if got := verdicts[0].Ruling == Deny && verdicts[0].Reason == why; got != closed {
			t.Errorf("change %q: %+v", path, verdicts[0])
		}
	}
	checkNotListed(t, tree)
}

func checkNotListed(t *testing.T, tree *Tree) {
	t.Helper()
	want := []string{"a", "logs2/a", "sub/logs/a"}
	files, err := tree.Files(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	if !slices.Equal(names, want) {
		t.Errorf("files: %q, want %q", names, want)
	}
	m, err := tree.ManifestOf(context.Background(), []string{"a", "logs/a"}, nil)
	if err != nil || len(m) != 1 || m[0].Path != "a" {
		t.Errorf("manifest: %v, %v", m, err)
	}
}
