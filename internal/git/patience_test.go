package git

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A git that never ends holds nobody up.
func TestGitThatNeverEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands in for git")
	}
	stuck := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(stuck, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := &Git{path: stuck, env: os.Environ(), patience: 50 * time.Millisecond}
	if _, err := g.Version(t.Context()); !errors.Is(err, errPatience) {
		t.Errorf("error %v", err)
	}
}
