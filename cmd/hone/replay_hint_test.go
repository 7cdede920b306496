package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"hone/cmd/hone/failure"
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
	var f *failure.Error
	if err := replayMismatch(errors.New("it was asked with something else"), j); !errors.As(err, &f) || f.Kind != failure.Differs {
		t.Fatalf("got %v", err)
	}
	version, changed := strings.Index(f.Hint, "another version of hone"), strings.Index(f.Hint, "the journal was changed")
	if version < 0 || changed < version || !strings.Contains(f.Hint, "hone show r1 -C ") || !strings.Contains(f.Hint, filepath.Base(dir)+" --json") {
		t.Errorf("the hint is %q", f.Hint)
	}
}
