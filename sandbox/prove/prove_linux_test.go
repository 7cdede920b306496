package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
)

// TestAttemptsAndTable checks that the table and the code have the same attempts.
func TestAttemptsAndTable(t *testing.T) {
	rows, err := table()
	if err != nil {
		t.Fatal(err)
	}
	all := attempts()
	if len(all) < 80 || len(rows) != len(all) {
		t.Errorf("%d attempts and %d lines of the table", len(all), len(rows))
	}
	for i := range min(len(all), len(rows)) {
		if all[i].Name != rows[i].name {
			t.Errorf("line %d of the table is %s, and the attempt %s", i+1, rows[i].name, all[i].Name)
		}
	}
	short := slices.DeleteFunc(all, func(a Attempt) bool { return !a.Short })
	if len(short) == 0 || len(short) > 12 || slices.ContainsFunc(short, func(a Attempt) bool { return a.Alone }) {
		t.Errorf("%d attempts are short, or want processes of their own", len(short))
	}
}

// Variables that select how the tests run themselves again.
const (
	againLoosely = "HONE_PROVE_LOOSELY" // the machine differs from the table, and only holes count
	againMissing = "HONE_PROVE_MISSING" // a wall that must not be available
)

// TestWalls makes every attempt behind every available wall and compares the results
// with the table, word by word.
func TestWalls(t *testing.T) {
	scenes := t.TempDir()
	t.Setenv("TMPDIR", scenes)
	for _, wall := range columns() {
		t.Run(string(wall), func(t *testing.T) {
			if wall == sandbox.NoWall && os.Getenv(againLoosely) != "" {
				t.Skip("the walls around it are tried elsewhere")
			}
			r := proved(t, wall)
			for _, one := range r.Results {
				if !one.Conclusive() {
					t.Logf("unknown: %s", one)
				}
			}
			wrong := slices.Concat(r.Holes(), r.Blocked())
			if os.Getenv(againLoosely) == "" {
				wrong = r.pick(func(one Result) bool { return !one.asExpected() })
			}
			for _, one := range wrong {
				t.Errorf("%s", one)
			}
			t.Logf("PROVED %s: %d stopped, %d open, %d unknown", r.Grade, len(r.Stopped()), len(r.Open()), len(r.Inconclusive()))
			if left, _ := os.ReadDir(scenes); len(left) > 0 {
				t.Errorf("%s is left behind", left[0])
			}
		})
	}
}

// proved makes every attempt behind a wall. If the wall is not available here it skips
// the test, unless the wall must not be available.
func proved(t *testing.T, wall sandbox.Wall) Report {
	t.Helper()
	if raced {
		t.Skipf("NOT PROVED %s: the race detector takes more memory than the attempts are allowed", wall)
	}
	r, err := All(t.Context(), wall)
	var cannot *sandbox.WallError
	if errors.As(err, &cannot) {
		t.Skipf("NOT PROVED %s: %v", wall, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(againMissing) == string(wall) {
		t.Errorf("the wall %s is there, inside of walls in which it must refuse", wall)
	}
	return r
}

// Attempts whose process is killed before the first of them are made once more.
func TestAttemptsThatWereKilled(t *testing.T) {
	for deaths := 1; deaths <= 2; deaths++ {
		short := slices.DeleteFunc(attempts(), func(a Attempt) bool { return !a.Short })
		st, err := setUp(short)
		if err != nil {
			t.Fatal(err)
		}
		defer st.takeDown()
		policy := st.policy(short)
		dies := fmt.Sprintf("#!/bin/sh\nfor n in $(seq %d); do mkdir died-$n 2>/dev/null && kill -9 $$; done\nexec %s \"$@\"\n", deaths, st.Program)
		st.Program = st.lib("dies")
		if err := os.WriteFile(st.Program, []byte(dies), 0o755); err != nil {
			t.Fatal(err)
		}
		r := Report{Grade: sandbox.Grade{Wall: sandbox.Landlock}}
		err = st.prove(t.Context(), policy, short, &r)
		if cannot := (*sandbox.WallError)(nil); errors.As(err, &cannot) {
			t.Skip(err)
		}
		if deaths == 1 && (err != nil || len(r.Results) != len(short)) || deaths == 2 && err == nil {
			t.Errorf("%d deaths: %d results of %d attempts, %v", deaths, len(r.Results), len(short), err)
		}
	}
}

func TestWallsAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT PROVED as another user: this is not root")
	}
	const nobody = 65534
	cmd := exec.Command(copied(t), again()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	passes(t, cmd, "hidden", "landlock")
}

func TestWallsInsideBubblewrap(t *testing.T) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("NOT PROVED inside bubblewrap: it is not installed")
	}
	if err := exec.Command(program, "--ro-bind", "/", "/", "true").Run(); err != nil {
		t.Skipf("NOT PROVED inside bubblewrap: %v", err)
	}
	cmd := exec.Command(program, append([]string{"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", "/tmp", "/tmp", "--unshare-pid", "--unshare-ipc", copied(t)}, again()...)...)
	cmd.Env = append(os.Environ(), againLoosely+"=1")
	passes(t, cmd, "landlock")
}

func TestWallsInsideHidden(t *testing.T) {
	program := copied(t)
	scenes := t.TempDir()
	p := sandbox.Policy{Write: []string{scenes}, Read: append(workshop.System(), filepath.Dir(program))}
	w, err := wall.Build(t.Context(), sandbox.Hidden, p)
	if err != nil {
		t.Skipf("NOT PROVED inside hidden walls: %v", err)
	}
	defer w.Close()
	how, err := w.Run(t.Context(), sandbox.Command{
		Argv: append([]string{program}, again()...), Dir: scenes,
		Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + scenes, againLoosely + "=1", againMissing + "=hidden"},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := string(how.Stdout) + string(how.Stderr)
	if how.Exit != 0 {
		t.Fatalf("exit %d %s:\n%s", how.Exit, how.Signal, text)
	}
	provedIn(t, text, "landlock")
	if strings.Contains(text, "PROVED hidden (") {
		t.Error("the hidden walls did not refuse")
	}
}

func TestWallsInsideFirejail(t *testing.T) {
	program, err := exec.LookPath("firejail")
	if err != nil {
		t.Skip("NOT PROVED inside firejail: it is not installed")
	}
	if out, err := exec.Command(program, "--noprofile", "true").CombinedOutput(); err != nil {
		t.Skipf("NOT PROVED inside firejail: %v: %s", err, out)
	}
	cmd := exec.Command(program, append([]string{"--noprofile", copied(t)}, again()...)...)
	cmd.Env = append(os.Environ(), againLoosely+"=1", againMissing+"=firejail")
	passes(t, cmd, "landlock")
}

// again returns the arguments with which the tests run themselves again.
func again() []string { return []string{"-test.run=^TestWalls$", "-test.v"} }

// copied returns the path of a copy of the test's program that every user may run.
func copied(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prove")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "prove.test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// passes runs the tests again and checks that they prove some walls.
func passes(t *testing.T, cmd *exec.Cmd, walls ...string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	provedIn(t, string(out), walls...)
}

func provedIn(t *testing.T, text string, walls ...string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "PROVED") {
			t.Log(strings.TrimSpace(line))
		}
	}
	for _, wall := range walls {
		if !strings.Contains(text, " PROVED "+wall+" (") && !strings.Contains(text, "NOT PROVED "+wall) {
			t.Errorf("nothing was said of the wall %s:\n%s", wall, text)
		}
	}
}

// TestNothingHolds checks that the prover sees what gets through: without walls every
// attempt that the table calls open does.
func TestNothingHolds(t *testing.T) {
	r := proved(t, sandbox.NoWall)
	open := 0
	for _, one := range r.Results {
		if !one.Conclusive() || !slices.Equal(one.Expected.Words, []string{wordOpen}) {
			continue
		}
		open++
		if !one.Crossed() {
			t.Errorf("%s", one)
		}
	}
	if open < 60 {
		t.Errorf("only %d attempts get through without walls", open)
	}
	if len(r.Holes()) > 0 {
		t.Errorf("without walls there are holes: %v", r.Holes())
	}
}

// TestHoles checks that the prover finds walls that let too much through.
func TestHoles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		widen func(*sandbox.Policy, *stage)
		holes []string
	}{
		{"one directory too many", func(p *sandbox.Policy, st *stage) { p.Write = append(p.Write, filepath.Join(st.Dir, "outside")) }, []string{"read-file", "overwrite-file", "symlink-there"}},
		{"the network", func(p *sandbox.Policy, _ *stage) { p.Net = true }, []string{"tcp"}},
		{"nothing hidden", func(p *sandbox.Policy, _ *stage) { p.Hide = nil }, []string{"hidden-read"}},
		{"nothing guarded", func(p *sandbox.Policy, st *stage) {
			p.Read = slices.DeleteFunc(p.Read, func(path string) bool { return strings.Contains(path, ".git/") })
		}, []string{"git-config-write"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st, err := setUp(slices.DeleteFunc(attempts(), func(a Attempt) bool { return !a.Short }))
			if err != nil {
				t.Fatal(err)
			}
			defer st.takeDown()
			r := Report{Grade: sandbox.Grade{Wall: sandbox.Hidden}}
			p := st.policy(st.all)
			tt.widen(&p, st)
			err = st.prove(t.Context(), p, st.all, &r)
			var cannot *sandbox.WallError
			if errors.As(err, &cannot) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range tt.holes {
				if !slices.ContainsFunc(r.Holes(), func(one Result) bool { return one.Name == name }) {
					t.Errorf("%s is not among the holes %v", name, r.Holes())
				}
			}
		})
	}
}

// TestClaims checks that variables of other walls change nothing.
func TestClaims(t *testing.T) {
	before, err := Short(t.Context(), sandbox.Auto)
	if err != nil {
		t.Skip(err)
	}
	for _, pair := range claims() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	after, err := Short(t.Context(), sandbox.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if before.Grade.String() != after.Grade.String() || after.Err() != nil {
		t.Errorf("the walls were %s, and are %s: %v", before.Grade, after.Grade, after.Err())
	}
}

func TestShort(t *testing.T) {
	for _, wall := range columns() {
		r, err := Short(t.Context(), wall)
		var cannot *sandbox.WallError
		if errors.As(err, &cannot) {
			t.Logf("NOT PROVED %s: %v", wall, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Grade.Wall != wall || len(r.Results) == 0 || r.Err() != nil {
			t.Errorf("%s: %v, %d results", r.Grade, r.Err(), len(r.Results))
		}
	}
}

func TestNoSuchWall(t *testing.T) {
	var cannot *sandbox.WallError
	if _, err := Short(t.Context(), "paper"); !errors.As(err, &cannot) {
		t.Errorf("a wall of paper: %v", err)
	}
}

// TestEndedInTheMiddle checks that an attempt whose process ended without a result
// never counts as stopped, unless its walls killed it at a limit.
func TestEndedInTheMiddle(t *testing.T) {
	const told = `{"begin":"a"}` + "\n" + `{"end":"a","got":"ENOENT"}` + "\n" + `{"begin":"b"}` + "\n"
	for _, tt := range []struct {
		how  sandbox.Result
		want string
	}{
		{sandbox.Result{Signal: "killed", Exit: -1}, wordUnknown},
		{sandbox.Result{TimedOut: true, Exit: -1}, wordUnknown},
		{sandbox.Result{OverLimit: "memory", Exit: -1}, wordHeld},
	} {
		tt.how.Stdout = []byte(told)
		got, err := readNotes(tt.how, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Got != "ENOENT" || got[1].Name != "b" || got[1].Got != tt.want {
			t.Errorf("%+v: got %+v", tt.how, got)
		}
	}
}

func TestWord(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, wordOpen},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, "EACCES"},
		{fmt.Errorf("wrapped: %w", syscall.EXDEV), "EXDEV"},
		{errHeld("empty"), wordHeld},
		{errUnknown("none here"), wordUnknown},
		{errNotTried, wordNotTried},
		{io.EOF, wordHeld},
	} {
		if got, _ := word(tt.err); got != tt.want {
			t.Errorf("word(%v) = %s, want %s", tt.err, got, tt.want)
		}
	}
}

func BenchmarkShort(b *testing.B) {
	for _, wall := range columns() {
		b.Run(string(wall), func(b *testing.B) {
			for b.Loop() {
				if _, err := Short(context.Background(), wall); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}
