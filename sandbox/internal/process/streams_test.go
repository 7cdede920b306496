package process

import (
	"bytes"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"hone/sandbox"
)

func TestCaptureGrowsNoFurtherThanItMust(t *testing.T) {
	c := capture{max: 10_000}
	for range 100 {
		c.add(make([]byte, 333))
		if cap(c.kept) > 10_000 {
			t.Fatalf("a capture of 10000 bytes takes %d", cap(c.kept))
		}
	}
	if len(c.kept) != 10_000 || c.lost != 33_300-10_000 {
		t.Errorf("kept %d, lost %d", len(c.kept), c.lost)
	}
}

// slow is a terminal that takes its time for the first piece.
type slow struct{ first chan struct{} }

func (s slow) Write(b []byte) (int, error) {
	<-s.first
	return len(b), nil
}

// Output that is still unread in the pipe when the streams are closed is kept.
func TestOutputOfSlowReaders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its pipes have no deadlines")
	}
	var cmd exec.Cmd
	show := slow{make(chan struct{})}
	s, err := NewStreams(&cmd, sandbox.Command{LiveOut: show})
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("line\n"), 10_000)
	for _, piece := range [][]byte{text[:5], text[5:]} { // the second lies in the pipe
		if _, err := cmd.Stdout.Write(piece); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	held, err := cmd.Stdout.Write([]byte("the end\n"))
	s.Started(nil)
	finished := make(chan struct{})
	go func() { s.Finish(0); close(finished) }()
	time.Sleep(10 * time.Millisecond)
	close(show.first)
	<-finished
	if err != nil || len(s.stdout.kept) != len(text)+held || s.stdout.lost > 0 {
		t.Errorf("kept %d bytes of %d, lost %d: %v", len(s.stdout.kept), len(text)+held, s.stdout.lost, err)
	}
}
