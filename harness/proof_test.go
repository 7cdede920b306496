package harness

import (
	"os"
	"path/filepath"
	"testing"

	"hone/harness/internal/state"
	"hone/sandbox"
)

// Walls are proved once under the same conditions, and again under others, or if the
// record cannot be read.
func TestProveOnce(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	grade := sandbox.Grade{Wall: sandbox.Hidden}
	first, err := proveOnce(t.Context(), grade, "")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if again, err := proveOnce(t.Context(), grade, ""); err != nil || !again.Equal(first) {
		t.Errorf("proved at %v, and again at %v, %v", first, again, err)
	}
	dir, err := state.Make("proofs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "hidden.json")
	for _, record := range []string{`{"conditions":"others","when":"2001-02-03T04:05:06Z"}`, `{"condi`} {
		if err := os.WriteFile(file, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		after, err := proveOnce(t.Context(), grade, "")
		if err != nil || !after.After(first) {
			t.Errorf("after %s: proved at %v, %v", record, after, err)
		}
		if again, err := proveOnce(t.Context(), grade, ""); err != nil || !again.Equal(after) {
			t.Errorf("after %s: proved at %v, and again at %v, %v", record, after, again, err)
		}
	}
}

// Without a state folder walls are proved each time.
func TestProveWithoutStateFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/dev/null")
	grade := sandbox.Grade{Wall: sandbox.Hidden}
	first, err := proveOnce(t.Context(), grade, "")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if again, err := proveOnce(t.Context(), grade, ""); err != nil || !again.After(first) {
		t.Errorf("proved at %v, and again at %v, %v", first, again, err)
	}
}
