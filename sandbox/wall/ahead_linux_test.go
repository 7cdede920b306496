package wall

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/internal/waittest"
	"hone/sandbox/internal/process"
	"hone/sandbox/internal/runtest"
)

// idle returns the helper that waits for a command, which it starts if there is none.
func idle(w *Walls) *helper {
	w.ahead.used = true
	w.ahead.start(w)
	w.ahead.mu.Lock()
	defer w.ahead.mu.Unlock()
	return w.ahead.idle
}

// No helper starts for walls that may never run a command.
func TestPrepareAfterACommand(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		w.ahead.used = false // building the walls has tried them
		if w.ahead.start(w); w.ahead.idle != nil {
			t.Error("a helper waits before there was a command")
		}
		behind(t, w, dir, "true")
		if w.ahead.idle != nil {
			t.Error("a helper waits although nothing was prepared")
		}
		w.Prepare()
		if !waittest.Until(func() bool { return waits(w) }) {
			t.Error("no helper waits after a command")
		}
	})
}

// A command runs in the helper that waits, and sees what has changed since that started.
func TestHelperStartsAhead(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		h := idle(w)
		runtest.Script(t, filepath.Join(dir, "late"), "#!/bin/sh\necho late\n", 0o755)
		if r := behind(t, w, dir, "./late"); string(r.Stdout) != "late\n" {
			t.Errorf("exit %d, stdout %q, stderr %q", r.Exit, r.Stdout, r.Stderr)
		}
		if !h.ended() {
			t.Error("the command did not use the helper that waited")
		}
	})
}

func TestIdleHelperThatWasKilled(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		h := idle(w)
		h.tree.Kill()
		<-h.tree.Exited()
		if r := behind(t, w, dir, "echo fine"); string(r.Stdout) != "fine\n" {
			t.Errorf("exit %d, stdout %q, stderr %q", r.Exit, r.Stdout, r.Stderr)
		}
	})
}

// A helper that is killed before it starts its command is replaced by another, which gets
// all of the input.
func TestHelperThatWasKilled(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		h := idle(w)
		must(0, unix.Kill(h.tree.PID(), unix.SIGSTOP))
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for waits(w) { // for its command
				time.Sleep(time.Millisecond)
			}
			h.tree.Kill()
		}()
		c := inside(dir, "cat; echo ran >>log")
		c.Stdin = strings.NewReader("input\n")
		r, err := w.Run(t.Context(), c)
		<-killed
		if err != nil || string(r.Stdout) != "input\n" || r.Exit != 0 {
			t.Errorf("exit %d, stdout %q, stderr %q, error %v", r.Exit, r.Stdout, r.Stderr, err)
		}
		if log, err := os.ReadFile(filepath.Join(dir, "log")); string(log) != "ran\n" {
			t.Errorf("it did %q, %v", log, err)
		}
	})
}

// waits reports whether a helper waits for a command.
func waits(w *Walls) bool {
	w.ahead.mu.Lock()
	defer w.ahead.mu.Unlock()
	return w.ahead.idle != nil
}

// A helper that is killed when its command may have begun is not replaced.
func TestHelperThatWasKilledTooLate(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		w.ahead.used = true
		w.ahead.close() // no other helper waits
		ours, theirs := must2(newControl())
		cmd := exec.Command(binary(), dyingHelper)
		cmd.ExtraFiles = []*os.File{nil, theirs}
		w.ahead.idle = &helper{tree: must(process.StartDetached(cmd)), control: ours}
		must(0, theirs.Close())
		r, err := w.Run(t.Context(), inside(dir, "echo ran >>log"))
		if err != nil || r.Exit != -1 || r.Signal != "killed" {
			t.Errorf("exit %d, signal %q, error %v", r.Exit, r.Signal, err)
		}
		if log, err := os.ReadFile(filepath.Join(dir, "log")); err == nil {
			t.Errorf("it did %q", log)
		}
	})
}

func TestCloseEndsTheIdleHelper(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, _ string) {
		h := idle(w)
		must(0, w.Close())
		if !h.ended() {
			t.Error("the helper still waits")
		}
		if idle(w) != nil {
			t.Error("another helper waits after the walls were closed")
		}
	})
}

func TestIdleHelperDiesWithHone(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, _ string) {
		hone := exec.Command(os.Args[0])
		hone.Env = append(os.Environ(), "SANDBOX_TEST_WALL="+string(w.Grade().Wall), "SANDBOX_TEST_IDLE=yes")
		out := must(hone.StdoutPipe())
		must(0, hone.Start())
		line := must(bufio.NewReader(out).ReadString('\n'))
		pid := must(strconv.Atoi(strings.TrimSpace(line)))
		lives := func() bool {
			s, ok := process.ReadStatus(pid)
			return ok && !s.Zombie
		}
		if !lives() {
			t.Error("there is no helper")
		}
		must(0, hone.Process.Kill())
		_ = hone.Wait()
		if !waittest.Until(func() bool { return !lives() }) {
			t.Error("the helper outlived hone")
		}
	})
}

// The first command of walls, which may be the one that tries them, uses the helper that
// started before they were built, if that fits.
func TestEarlyHelper(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		for _, fits := range []bool{true, false} {
			p := w.spec.Policy
			p.Net = p.Net == fits // the same, or the other
			e := StartEarly(w.grade.Wall, p)
			h := <-e.helper
			e.helper <- h
			early := must(e.Build(t.Context(), w.grade.Wall, w.spec.Policy))
			if r := behind(t, early, dir, "echo fine"); string(r.Stdout) != "fine\n" {
				t.Errorf("exit %d, stdout %q, stderr %q", r.Exit, r.Stdout, r.Stderr)
			}
			must(0, early.Close())
			if h.ended() != fits {
				t.Errorf("fits %v, used %v", fits, h.ended())
			}
			if e.Close(); !h.ended() {
				t.Error("the helper still waits")
			}
			e.Close()
		}
	})
}
