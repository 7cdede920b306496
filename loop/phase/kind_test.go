package phase

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComplete: shells complete the phases that have a specification, and no other file
// in specs/.
func TestComplete(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"phase10.md", "phase2.md", "phase03.md", "phase0.md", "phase-1.md", "phase+4.md", "phase1234567.md", "phase5.txt", "myphase6.md"} {
		at := filepath.Join(dir, "specs", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{"": "2 3 10 all", "3": "2 10", "2 10": "3"} {
		if got := strings.Join(Kind().Complete(dir, strings.Fields(args)), " "); got != want {
			t.Errorf("after %q: %q, want %q", args, got, want)
		}
	}
}
