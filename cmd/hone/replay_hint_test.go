package main

import (
	"errors"
	"strings"
	"testing"

	"hone/journal"
)

// The hint about a replay that differs names the more frequent cause first.
func TestReplayHint(t *testing.T) {
	h, err := journal.OpenHome(t.TempDir())
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
	if version < 0 || changed < version || !strings.Contains(f.hint, "hone show r1 --json") {
		t.Errorf("the hint is %q", f.hint)
	}
}
