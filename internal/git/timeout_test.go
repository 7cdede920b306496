package git

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A git that never finishes blocks no caller.
func TestCallTimeout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands in for git")
	}
	stuck := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(stuck, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := &Git{path: stuck, env: os.Environ(), timeout: 50 * time.Millisecond}
	if _, err := g.Version(t.Context()); !errors.Is(err, errTimeout) {
		t.Errorf("error %v", err)
	}
}
