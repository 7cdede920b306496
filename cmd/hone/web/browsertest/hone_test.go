package browsertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is the hone that is tested.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hone")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "hone")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/hone")
	build.Dir, build.Env = "../../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		os.Exit(1)
	}
	status := m.Run()
	closeChromium()
	os.RemoveAll(dir)
	os.Exit(status)
}

// place is a directory to work in, with what a test needs beside it.
type place struct {
	t   *testing.T
	dir string
}

// newPlace returns a git repository with some files; names that begin with ../ are beside
// it. They are written in the order of names and texts.
func newPlace(t *testing.T, files ...string) place {
	t.Helper()
	p := place{t, filepath.Join(t.TempDir(), "shop")}
	if out, err := exec.Command("git", "init", "-q", p.dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %v: %s", err, out)
	}
	for i := 0; i < len(files); i += 2 {
		p.write(files[i], files[i+1])
	}
	return p
}

// write writes a file.
func (p place) write(name, text string) {
	p.t.Helper()
	at := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// hone returns a command that runs hone.
func (p place) hone(args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Dir = p.dir
	state := filepath.Dir(p.dir)
	c.Env = append(os.Environ(), "HONE_TRUST=1", "XDG_CACHE_HOME="+filepath.Join(state, "cache"), "XDG_STATE_HOME="+filepath.Join(state, "state"), "XDG_CONFIG_HOME="+filepath.Join(state, "config"))
	return c
}

// run runs hone to its end, which has to be one of some statuses.
func (p place) run(statuses []int, args ...string) string {
	p.t.Helper()
	c := p.hone(args...)
	out, _ := c.CombinedOutput()
	for _, status := range statuses {
		if c.ProcessState.ExitCode() == status {
			return string(out)
		}
	}
	p.t.Fatalf("hone %v: %v\n%s", args, c.ProcessState, out)
	return ""
}

// start starts hone. The test ends it if it does not end before.
func (p place) start(args ...string) *exec.Cmd {
	p.t.Helper()
	c := p.hone(args...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

// web starts hone web, and returns the address that it prints.
func (p place) web(args ...string) (address string, server *exec.Cmd) {
	p.t.Helper()
	c := p.hone(append([]string{"web"}, args...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewReader(out)
	address, err = lines.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return strings.TrimSpace(address), c
}
