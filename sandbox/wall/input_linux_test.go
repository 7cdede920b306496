package wall

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hone/internal/crashtest/waittest"
	"hone/sandbox/internal/runtest"
)

func TestStdinBehindWalls(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is about other processes; TestStdin of package sandbox feeds a command too")
	}
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		runtest.FeedAll(t, w, dir)
		t.Run("a reader that blocks", func(t *testing.T) { runtest.FeedBlocked(t, w, dir) })
	})
}

// A file on standard input gives a command no access beyond the mode in which it is
// open.
func TestStdinLeadsNowhere(t *testing.T) {
	outside := t.TempDir()
	path := filepath.Join(outside, "input")
	must(0, os.WriteFile(path, []byte("kept\n"), 0o644))
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		folder := must(os.Open(outside))
		defer folder.Close()
		c := inside(dir, "cat")
		c.Stdin = folder
		if _, err := w.Run(context.Background(), c); err == nil || !strings.Contains(err.Error(), "start sh: its standard input is a directory") {
			t.Errorf("a directory: %v", err)
		}
		if w.Grade().Landlock == 0 {
			return
		}
		file := must(os.Open(path))
		defer file.Close()
		c = inside(dir, "cat; (echo lost >/proc/self/fd/0) 2>/dev/null || echo refused")
		c.Stdin = file
		r := must(w.Run(context.Background(), c))
		if text, _ := os.ReadFile(path); string(r.Stdout) != "kept\nrefused\n" || string(text) != "kept\n" {
			t.Errorf("a file: stdout %q, stderr %q; it holds %q", r.Stdout, r.Stderr, text)
		}
	})
}

// A writer to standard input gets an error as soon as the command has closed it.
func TestStdinIsHeldByTheCommandAlone(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		r, feed := must2(os.Pipe())
		defer feed.Close()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c := inside(dir, "exec <&-; sleep 1000")
		c.Stdin = r
		running, err := w.Start(ctx, c)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		broken := func() bool {
			_, err := feed.Write([]byte("x"))
			return errors.Is(err, syscall.EPIPE)
		}
		if !waittest.Until(broken) {
			t.Error("another process keeps it open")
		}
		cancel()
		must(running.Wait())
	})
}

// asOrdinaryUser runs tests of this binary as an ordinary user if this one is root.
func asOrdinaryUser(t *testing.T, tests string) {
	t.Helper()
	all := runtest.Users()
	u := all[len(all)-1]
	if u.ID == uint32(os.Getuid()) {
		t.Skip("SKIPPED: this is an ordinary user, or there is no other")
	}
	cmd := exec.Command(runtest.TestBinary(t, u), "-test.run", tests, "-test.v")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "HOME=/nonexistent", "TMPDIR="+runtest.OpenDir(t, u))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.ID, Gid: u.ID}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n    --- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestStdinAsAnOrdinaryUser(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is TestStdinBehindWalls for another user")
	}
	asOrdinaryUser(t, "^TestStdin(BehindWalls|LeadsNowhere)$")
}
