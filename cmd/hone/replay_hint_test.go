package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"hone/journal"
)

// The hint about a replay that differs names the more frequent cause first.
func TestReplayHint(t *testing.T) {
	dir := t.TempDir()
	h, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	j, err := h.Create("r1")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var f *failure
	if err := another(errors.New("it was asked with something else"), j); !errors.As(err, &f) || f.kind != kindDiffers {
		t.Fatalf("got %v", err)
	}
	version, changed := strings.Index(f.hint, "another version of hone"), strings.Index(f.hint, "the journal was changed")
	if version < 0 || changed < version || !strings.Contains(f.hint, "hone show r1 -C ") || !strings.Contains(f.hint, filepath.Base(dir)+" --json") {
		t.Errorf("the hint is %q", f.hint)
	}
}
