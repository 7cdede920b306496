//go:build unix

package wall

import (
	"bytes"
	"testing"
	"time"

	"hone/sandbox/internal/runtest"
)

func TestStdin(t *testing.T) {
	runtest.FeedAll(t, None{Grace: 100 * time.Millisecond}, t.TempDir())
}

func TestStdinThatBlocks(t *testing.T) {
	runtest.FeedBlocked(t, None{}, t.TempDir())
}

// Input that blocks does not delay the end of a command that is stopped.
func TestStdinOfACommandThatIsEnded(t *testing.T) {
	c := shell(t, "exec sleep 1000")
	c.Timeout, c.Stdin = 50*time.Millisecond, bytes.NewReader(make([]byte, runtest.Megabytes))
	if r := mustRun(t, c); !r.TimedOut {
		t.Errorf("%+v", r)
	}
}
