package check

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A spool leaves no file, even if the process is killed.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	var s spool
	for range 3 {
		if _, err := io.WriteString(&s, strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) > 0 && runtime.GOOS != "windows" {
		t.Errorf("%q, %v", names, err)
	}
	r, err := s.reader()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) != 3<<20 {
		t.Errorf("%d bytes are stored: %v", len(b), err)
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}
