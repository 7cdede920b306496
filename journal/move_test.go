package journal

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// moveCase is a home that moves.
type moveCase struct {
	workspace, to string
}

// open opens the home where it is, with its lock and its only journal.
func (c moveCase) open(t *testing.T) (*Home, *Lock, *Journal) {
	t.Helper()
	path := c.to
	if _, err := os.Lstat(path); err != nil {
		path = filepath.Join(c.workspace, HomeName)
	}
	h := must(OpenHomeAt(c.workspace, path))
	l := must(h.Lock())
	runs := must(h.Runs())
	if len(runs) != 1 || l.LastRun != runs[0] {
		t.Fatalf("runs %q, the last one %q", runs, l.LastRun)
	}
	return h, l, must(h.Open(runs[0]))
}

// move moves the home. step is called between steps.
func (c moveCase) move(h *Home, l *Lock, j *Journal, step func()) error {
	return h.move(c.to, l, j, step)
}

// check appends an event, and reads everything that the home should have.
func (c moveCase) check(t *testing.T, h *Home, l *Lock, j *Journal) {
	t.Helper()
	n := len(j.Events())
	must(j.Append(Entry{Type: "later", Sync: true}))
	must(0, l.SetRun(j.Run()))
	other := must(FindHomeAt(c.workspace, h.Dir()))
	defer other.Close()
	if events := must(other.Read(j.Run())); len(events) != n+1 {
		t.Errorf("%d events, want %d", len(events), n+1)
	}
	for _, text := range []string{"one", "two"} {
		if b, err := h.Get(hash([]byte(text))); err != nil || string(b) != text {
			t.Errorf("%q: %q, %v", text, b, err)
		}
	}
	if _, ok := other.LockedRun(); !ok {
		t.Error("the home is not locked")
	}
}

func newMoveCase(t *testing.T) moveCase {
	t.Helper()
	c := moveCase{t.TempDir(), filepath.Join(t.TempDir(), "ws-1234")}
	h := must(OpenHome(c.workspace))
	l := must(h.Lock())
	j := must(h.Create(h.NewRun()))
	must(j.Append(Entry{Type: "first"}))
	must(j.Put([]byte("one")))
	must(j.Put([]byte("two")))
	must(0, l.SetRun(j.Run()))
	must(0, errors.Join(j.Close(), l.Unlock(), h.Close()))
	return c
}

// TestMove moves a home with a journal that has a hard link in the workspace. What is
// written through that link does not reach the home.
func TestMove(t *testing.T) {
	skipWindows(t)
	c := newMoveCase(t)
	h, l, j := c.open(t)
	link := filepath.Join(c.workspace, "link")
	must(0, os.Link(filepath.Join(h.Dir(), filepath.FromSlash(runFile(j.Run()))), link))
	must(0, c.move(h, l, j, func() {}))
	must(0, os.Truncate(link, 0))
	if h.Dir() != c.to || h.Workspace() != c.workspace {
		t.Errorf("the home is %s, of %s", h.Dir(), h.Workspace())
	}
	c.check(t, h, l, j)
	must(0, errors.Join(j.Close(), l.Unlock(), h.Close()))
	c.checkPlaces(t)
}

// checkPlaces fails unless the home is outside the workspace, and nowhere else.
func (c moveCase) checkPlaces(t *testing.T) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(c.workspace, HomeName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the workspace still has a home: %v", err)
	}
	if names := must(os.ReadDir(filepath.Dir(c.to))); len(names) != 1 {
		t.Errorf("the directory of homes contains %v", names)
	}
}

// TestMoveFails moves a home to where it cannot be.
func TestMoveFails(t *testing.T) {
	skipWindows(t)
	c := newMoveCase(t)
	c.to = filepath.Join(filepath.Dir(c.to), "missing", "ws")
	h, l, j := c.open(t)
	if err := c.move(h, l, j, func() {}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	c.check(t, h, l, j)
	must(0, errors.Join(j.Close(), l.Unlock(), h.Close()))
}

// killVar names a step of a move, in the process that TestMoveKilled starts.
const killVar = "HONE_TEST_KILL_MOVE"

// TestMoveKilled kills a process at every step of a move. Nothing is lost, and the
// next process uses the copy, or repeats the move.
func TestMoveKilled(t *testing.T) {
	skipWindows(t)
	if spec := strings.Split(os.Getenv(killVar), "\n"); len(spec) == 3 {
		killedMove(t, moveCase{spec[0], spec[1]}, must(strconv.Atoi(spec[2])))
		return
	}
	steps := 0
	for killed := true; killed; steps++ {
		c := newMoveCase(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestMoveKilled$")
		cmd.Env = append(os.Environ(), killVar+"="+strings.Join([]string{c.workspace, c.to, strconv.Itoa(steps)}, "\n"))
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		killed = errors.As(err, &exit) && exit.ExitCode() == -1
		if err != nil && !killed {
			t.Fatalf("%v\n%s", err, out)
		}
		h, l, j := c.open(t)
		c.check(t, h, l, j)
		if h.Dir() != c.to {
			must(0, c.move(h, l, j, func() {}))
			c.check(t, h, l, j)
		}
		must(0, errors.Join(j.Close(), l.Unlock(), h.Close()))
		if names := must(os.ReadDir(filepath.Dir(c.to))); len(names) != 1 {
			t.Errorf("the directory of homes contains %v", names)
		}
	}
	if steps < 8 {
		t.Errorf("there are only %d steps", steps)
	}
}

// killedMove moves a home and kills the process at a step.
func killedMove(t *testing.T, c moveCase, steps int) {
	h, l, j := c.open(t)
	must(0, c.move(h, l, j, func() {
		if steps == 0 {
			p := must(os.FindProcess(os.Getpid()))
			_ = p.Kill()
			select {}
		}
		steps--
	}))
}

func skipWindows(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
