package proof

import (
	"os"
	"testing"

	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/sandbox/wall"
)

func TestMain(m *testing.M) {
	wall.Helper()
	prove.Helper()
	os.Exit(m.Run())
}

// Walls are proved once under the same conditions, and again under others, or if the
// record cannot be read.
func TestOnce(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	grade := sandbox.Grade{Wall: sandbox.Hidden, Level: sandbox.LevelHidden}
	first, err := Of(t.Context(), grade, "")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if again, err := Of(t.Context(), grade, ""); err != nil || !again.Equal(first) {
		t.Errorf("proved at %v, and again at %v, %v", first, again, err)
	}
	file, err := recordFile(sandbox.Hidden)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{`{"conditions":"others","when":"2001-02-03T04:05:06Z"}`, `{"condi`} {
		if err := os.WriteFile(file, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		after, err := Of(t.Context(), grade, "")
		if err != nil || !after.After(first) {
			t.Errorf("after %s: proved at %v, %v", record, after, err)
		}
		if !read(file).When.Equal(after) {
			t.Errorf("after %s: recorded %v, want %v", record, read(file), after)
		}
	}
}

// Without a state folder walls are proved each time.
func TestWithoutStateFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/dev/null")
	grade := sandbox.Grade{Wall: sandbox.Hidden, Level: sandbox.LevelHidden}
	first, err := Of(t.Context(), grade, "")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if again, err := Of(t.Context(), grade, ""); err != nil || !again.After(first) {
		t.Errorf("proved at %v, and again at %v, %v", first, again, err)
	}
}
