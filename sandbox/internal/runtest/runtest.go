// Package runtest contains what the tests of runners share: commands that leave
// processes behind, commands that read input, and users who run them.
package runtest

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hone/sandbox"
)

// Daemons is a script that starts processes in every way that leaves a group, a
// session and a parent behind. They ignore SIGTERM, SIGHUP and SIGINT, and print
// their numbers.
const Daemons = `
deaf='trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done'
setsid sh -c "$deaf" </dev/null &
(setsid sh -c "$deaf" </dev/null &)
setsid sh -c "(setsid sh -c '$deaf' </dev/null &)" &
(sh -c "$deaf" </dev/null &)
sh -c "$deaf" </dev/null &
setsid sh -c "for i in 1 2 3; do sh -c '$deaf' & done; exit" &
(setsid sh -c "exec env -i $(command -v setsid) $(command -v sh) -c 'PATH=$PATH; $deaf'" &)
(setsid sh -c "(setsid true &)" </dev/null &)
`

// DaemonCount is how many numbers Daemons prints.
const DaemonCount = 9

// Watch is a writer that calls Then after it received Lines lines.
type Watch struct {
	Lines int
	Then  func()
	seen  bytes.Buffer
}

func (w *Watch) Write(p []byte) (int, error) {
	before := bytes.Count(w.seen.Bytes(), []byte("\n"))
	w.seen.Write(p)
	if after := bytes.Count(w.seen.Bytes(), []byte("\n")); before < w.Lines && after >= w.Lines {
		w.Then()
	}
	return len(p), nil
}

// PIDs returns the numbers that were written.
func (w *Watch) PIDs(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, field := range strings.Fields(w.seen.String()) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) != w.Lines {
		t.Fatalf("%d numbers, want %d:\n%s", len(pids), w.Lines, w.seen.String())
	}
	return pids
}

// OnWrite is a writer that calls a function.
type OnWrite func()

func (f OnWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// OpenFiles returns the number of this process's open files.
func OpenFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// Script writes a file and makes its parent directories.
func Script(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// Listen starts a loopback server that answers connections until the test ends,
// and returns its address.
func Listen(t *testing.T, answer func(net.Conn)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return l.Addr()
}

// ReadSoon reads a byte that arrives within 50 ms.
func ReadSoon(c net.Conn) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		return 0, err
	}
	defer c.SetReadDeadline(time.Time{})
	return c.Read(make([]byte, 1))
}

// RunScript runs a script to its end and prints its output.
func RunScript(r sandbox.Runner, script string) {
	_, err := r.Run(context.Background(), sandbox.Command{
		Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}, Live: os.Stdout,
	})
	if err != nil {
		panic(err)
	}
}
