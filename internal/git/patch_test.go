package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPatch: git applies the patch, whatever changed.
func TestPatch(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a/dir/changed", "one\r\ntwo\r\n", 0o600)
	write("b/dir/changed", "one\r\n2\r\n", 0o600)
	write("a/removed", "gone", 0o600)
	write("b/a \"name\"\n", "no line feed", 0o600)
	write("b/empty", "", 0o600)
	write("b/binary", "\x00\x01", 0o600)
	write("a/mode", "x\n", 0o600)
	write("b/mode", "x\n", 0o700)
	g, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	patch, err := g.Patch(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	write("a.patch", string(patch), 0o600)
	for _, args := range [][]string{{"apply", "../a.patch"}, {"diff", "--no-index", ".", "../b"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(dir, "a")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s\n%s", args, err, out, patch)
		}
	}
	if patch, err := g.Patch(t.Context(), dir, true); err != nil || len(patch) > 0 {
		t.Errorf("the patch of equal directories is %q, %v", patch, err)
	}
}
