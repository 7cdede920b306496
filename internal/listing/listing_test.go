package listing

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"hone/workspace"
)

func TestInFolder(t *testing.T) {
	root := t.TempDir()
	for at, want := range map[string]bool{
		".codescribe": true, ".codescribe/loop/run.toml": true, "./.codescribe": true, "a/../.codescribe/x": true, ".CodeScribe/x": true,
		filepath.Join(root, ".codescribe", "x"): true, "../.codescribe": true,
		"": false, ".": false, "a": false, "a/.codescribe": false, ".codescribed": false, filepath.Join(root, "a"): false,
	} {
		if got := InDir(root, ".codescribe", at); got != want {
			t.Errorf("%q: %v", at, got)
		}
	}
}

// Agents do not find the loop's own files, inside a repository or outside.
func TestTreeWithout(t *testing.T) {
	plain, repo := t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	for _, dir := range []string{plain, repo} {
		for _, name := range []string{".codescribe/loop/run.toml", "sub/.codescribe/x", "sub/a", ".hone/runs/x"} {
			if err := putFile(dir, name); err != nil {
				t.Fatal(err)
			}
		}
		list, err := Without(dir, ".codescribe")
		if err != nil {
			t.Fatal(err)
		}
		tree, err := workspace.Open(dir, workspace.Options{List: list})
		if err != nil {
			t.Fatal(err)
		}
		files, err := tree.Files(t.Context())
		tree.Close()
		var names []string
		for _, f := range files {
			names = append(names, f.Path)
		}
		if err != nil || slices.Contains(names, ".codescribe/loop/run.toml") || !slices.Contains(names, "sub/a") || !slices.Contains(names, "sub/.codescribe/x") {
			t.Errorf("%s: %q, %v", dir, names, err)
		}
	}
}

// putFile writes a file below a directory.
func putFile(dir, name string) error {
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, []byte("x"), 0o644)
}
