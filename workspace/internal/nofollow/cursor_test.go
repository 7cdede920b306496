package nofollow

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hone/workspace/treepath"
)

// cursorIn returns a cursor of the tree in a directory.
func cursorIn(t *testing.T, dir string) *Cursor {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cursor{Root: root}
	t.Cleanup(func() {
		c.Close()
		root.Close()
	})
	return c
}

// A cursor finds what is in the tree, and nothing outside it.
func TestCursor(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "tree")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "a/b"), 0o755),
		os.WriteFile(filepath.Join(dir, "a/b/f"), []byte("text"), 0o640),
		os.WriteFile(filepath.Join(top, "secret"), []byte("secret"), 0o644),
		os.Symlink("../secret", filepath.Join(dir, "out")),
		os.Symlink("a", filepath.Join(dir, "in")),
	); err != nil {
		t.Skip(err)
	}
	c := cursorIn(t, dir)
	for _, p := range []string{"../secret", "a/../../secret", "a/..", "..", "in/b/f", "out/x", "a/b/f/x", "gone/x"} {
		if _, err := c.Lstat(p); !IsAbsent(err) {
			t.Errorf("Lstat(%q): %v", p, err)
		}
		if f, _, err := c.Open(p); !IsAbsent(err) {
			t.Errorf("Open(%q): %v, %v", p, f, err)
		}
		if names, err := c.Names(p); !IsAbsent(err) {
			t.Errorf("Names(%q): %q, %v", p, names, err)
		}
	}
	var refused *treepath.RefusedError
	for _, p := range []string{"out", "in", "a", "a/b"} {
		if _, _, err := c.Open(p); !errors.As(err, &refused) {
			t.Errorf("Open(%q): %v", p, err)
		}
	}
	if info, err := c.Lstat("out"); err != nil || info.Mode&fs.ModeSymlink == 0 {
		t.Errorf("Lstat of a link: %v, %v", info, err)
	}
	if target, err := c.Readlink("out"); err != nil || filepath.ToSlash(target) != "../secret" {
		t.Errorf("Readlink: %q, %v", target, err)
	}
	if names, err := c.Names(""); err != nil || !slices.Equal(names, []string{"a", "in", "out"}) {
		t.Errorf("Names: %q, %v", names, err)
	}
	f, info, err := c.Open("a/b/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil || string(text) != "text" || info.Size != 4 || !info.Mode.IsRegular() {
		t.Errorf("Open: %q, %v, %v", text, info, err)
	}
}

// A link's target may be longer than what is read at first.
func TestCursorLongLink(t *testing.T) {
	dir := t.TempDir()
	target := string(slices.Repeat([]byte("x/"), 300))
	if err := os.Symlink(target, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	c := cursorIn(t, dir)
	if got, err := c.Readlink("link"); err != nil || got != target {
		t.Errorf("Readlink: %d bytes, %v", len(got), err)
	}
}
