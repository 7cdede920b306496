package implement

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFolders: ruling C9. The runs of one second have a folder each.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"logs/20260304-050607", "logs/20260304-050607-2", "logs/20260304-050607-3"} {
		if got, err := folder(dir, "20260304-050607-d904af"); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestAppendOnce adds what is missing, wherever a process died.
func TestAppendOnce(t *testing.T) {
	for name, c := range map[string]struct {
		there  string
		before int64
		want   string
	}{
		"nothing yet":         {"", 0, "thought\n"},
		"behind another":      {"one\n", 4, "one\nthought\n"},
		"done already":        {"one\nthought\n", 4, "one\nthought\n"},
		"half done":           {"one\nthou", 4, "one\nthought\n"},
		"somebody else wrote": {"one\nthis\n", 4, "one\nthis\nthought\n"},
		"cut meanwhile":       {"o", 4, "othought\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, "f")
			if err := os.WriteFile(at, []byte(c.there), 0o644); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := appendOnce(dir, "f", "thought\n", c.before); err != nil {
					t.Fatal(err)
				}
				if name == "somebody else wrote" || name == "cut meanwhile" {
					break
				}
			}
			if b, err := os.ReadFile(at); string(b) != c.want || err != nil {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
