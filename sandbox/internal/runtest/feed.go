//go:build unix

package runtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"hone/internal/crashtest/waittest"
	"hone/sandbox"
)

// Megabytes is more than the buffer of any pipe.
const Megabytes = 3 << 20

// feedings returns commands with their input, their output and their exit status.
func feedings(t *testing.T) map[string]struct {
	stdin          io.Reader
	script, stdout string
	exit           int
} {
	text := bytes.Repeat([]byte("0123456789abcde\n"), Megabytes/16)
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if _, err := file.Seek(16, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	go func() {
		_, _ = w.Write(text)
		_ = w.Close()
	}()
	return map[string]struct {
		stdin          io.Reader
		script, stdout string
		exit           int
	}{
		"nothing":               {stdin: strings.NewReader(""), script: "wc -c", stdout: "0\n"},
		"a line":                {stdin: strings.NewReader("a\n"), script: "read x && echo $x-$x", stdout: "a-a\n"},
		"by the device":         {stdin: strings.NewReader("a\n"), script: "cat /dev/stdin", stdout: "a\n"},
		"megabytes, counted":    {stdin: bytes.NewReader(text), script: "wc -c", stdout: fmt.Sprintln(Megabytes)},
		"megabytes, echoed":     {stdin: bytes.NewReader(text), script: "cat", stdout: string(text)},
		"not read":              {stdin: bytes.NewReader(text), script: "exit 3", exit: 3},
		"read in part":          {stdin: bytes.NewReader(text), script: "head -c 5", stdout: "01234"},
		"closed":                {stdin: bytes.NewReader(text), script: "exec <&-; echo on", stdout: "on\n"},
		"read by what is left":  {stdin: bytes.NewReader(text), script: "exec 3<&0; (sleep 0.1; head -c 3 <&3) & exit 4", stdout: "012", exit: 4},
		"a file":                {stdin: file, script: "cat", stdout: string(text[16:])},
		"a pipe":                {stdin: r, script: "wc -c", stdout: fmt.Sprintln(Megabytes)},
		"a reader that fails":   {stdin: io.MultiReader(strings.NewReader("a"), iotest.ErrReader(errors.New("broken"))), script: "wc -c", stdout: "1\n"},
		"a reader in no hurry":  {stdin: iotest.OneByteReader(strings.NewReader("abc")), script: "cat", stdout: "abc"},
		"a reader that is last": {stdin: iotest.DataErrReader(strings.NewReader("abc")), script: "cat", stdout: "abc"},
	}
}

// FeedAll checks that a runner passes all kinds of input to commands.
func FeedAll(t *testing.T, runner sandbox.Runner, dir string) {
	for name, c := range feedings(t) {
		t.Run(name, func(t *testing.T) {
			r, err := runner.Run(context.Background(), sandbox.Command{Argv: []string{"sh", "-c", c.script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: waittest.Limit, Stdin: c.stdin})
			if err != nil || r.Exit != c.exit || string(r.Stdout) != c.stdout || r.TimedOut {
				t.Errorf("%v, exit %d %s, %d bytes of output: %.40q, stderr %q", err, r.Exit, r.Signal, len(r.Stdout), r.Stdout, r.Stderr)
			}
		})
	}
}

// FeedBlocked checks that a command ends although its input blocks, and that the
// input is not read again afterwards.
func FeedBlocked(t *testing.T, runner sandbox.Runner, dir string) {
	r, w := io.Pipe()
	result, err := runner.Run(context.Background(), sandbox.Command{Argv: []string{"sh", "-c", "read x; echo $x"}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: waittest.Limit, Stdin: io.MultiReader(strings.NewReader("a\n"), r)})
	if err != nil || string(result.Stdout) != "a\n" || result.TimedOut {
		t.Errorf("%v, exit %d, stdout %q", err, result.Exit, result.Stdout)
	}
	if _, err := w.Write([]byte("late")); err != nil { // the read that blocked takes it
		t.Error(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := w.Write([]byte("later"))
		second <- err
	}()
	select {
	case <-second:
		t.Error("there was another read")
	case <-time.After(50 * time.Millisecond):
	}
	_ = r.Close()
	if err := <-second; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the second write: %v", err)
	}
}
