// Package table holds the table of all attempts to cross walls (attempts.md), and the
// tests that make them behind each wall that this machine allows. No program contains it.
package table

import (
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
	"hone/sandbox/prove"
	"hone/sandbox/prove/table/stage"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
)

type (
	attempt = stage.Attempt
	scene   = stage.Scene
)

func TestMain(m *testing.M) {
	wall.Helper()
	prove.Helper()
	stage.Helper(attempts)
	os.Exit(m.Run())
}

// attempts returns all attempts: those that the program makes as well, and the others.
func attempts() []attempt {
	return slices.Concat(productAttempts(), fileAttempts(), guardedAttempts(), processAttempts(), kernelAttempts(), networkAttempts(), sharedAttempts())
}

// TestAttemptsAndTable checks that the table and the code have the same attempts, and that
// the package prove says of its own what the table does.
func TestAttemptsAndTable(t *testing.T) {
	rows, err := table()
	if err != nil {
		t.Fatal(err)
	}
	all := attempts()
	if len(rows) != 174 || len(all) != len(rows) {
		t.Errorf("%d attempts, and %d lines of the table", len(all), len(rows))
	}
	for i, a := range all {
		at := slices.IndexFunc(rows, func(r row) bool { return r.name == a.Name })
		switch {
		case at < 0:
			t.Errorf("the table has no %s", a.Name)
		case slices.ContainsFunc(all[:i], func(other attempt) bool { return other.Name == a.Name }):
			t.Errorf("there are two attempts %s", a.Name)
		}
	}
	own := prove.Attempts()
	if len(own) != len(productAttempts()) {
		t.Errorf("the program makes %d attempts, and the table has %d of them", len(own), len(productAttempts()))
	}
	for _, a := range own {
		at := slices.IndexFunc(rows, func(r row) bool { return r.name == a.Name })
		if at < 0 {
			t.Errorf("the table has no %s", a.Name)
			continue
		}
		agree(t, a, rows[at])
	}
}

// agree checks that an attempt of the package prove is what its line of the table says.
func agree(t *testing.T, a prove.Attempt, r row) {
	t.Helper()
	if a.About != r.about {
		t.Errorf("%s is %q, in the table %q", a.Name, a.About, r.about)
	}
	for _, kind := range columns() {
		for abi := range 8 {
			for _, root := range []bool{true, false} {
				e, err := r.expected(kind, root)
				if err != nil {
					t.Fatal(err)
				}
				open := a.OpenBehind(sandbox.Grade{Wall: kind, Landlock: abi})
				if kind != sandbox.NoWall && open != e.under(abi).open() {
					t.Errorf("%s behind %s with ABI %d: open is %v, and the table has %v", a.Name, kind, abi, open, e.under(abi))
				}
			}
		}
	}
}

// result is how an attempt ended, and what the table expects.
type result struct {
	stage.Made
	expected Expectation
}

func (r result) unknown() bool    { return r.Got == stage.WordUnknown }
func (r result) crossed() bool    { return r.Got == stage.WordOpen || r.Got == stage.WordNotTried }
func (r result) asExpected() bool { return r.unknown() || r.expected.allows(r.Got) }

func (r result) String() string {
	return fmt.Sprintf("%s: %s (%s), expected %s", r.Name, r.Got, r.Text, r.expected)
}

// batches returns the attempts in groups. Firejail's command line limits how many of a
// group may add to the policy.
func batches(all []attempt) [][]attempt {
	const most = 10
	var found [][]attempt
	adding := most
	for _, a := range all {
		if a.Policy != nil || len(found) == 0 {
			if adding++; adding > most {
				found, adding = append(found, nil), 1
			}
		}
		found[len(found)-1] = append(found[len(found)-1], a)
	}
	return found
}

// run makes all attempts behind a wall. If the wall is not available here it skips
// the test, unless the wall must not be available.
func run(t *testing.T, kind sandbox.Wall) (sandbox.Grade, []result) {
	t.Helper()
	if raced {
		t.Skipf("NOT PROVED %s: the race detector takes more memory than the attempts are allowed", kind)
	}
	rows, err := table()
	if err != nil {
		t.Fatal(err)
	}
	var grade sandbox.Grade
	var results []result
	for _, batch := range batches(attempts()) {
		g, made, err := stage.Run(t.Context(), kind, "", batch)
		var cannot *sandbox.WallError
		if errors.As(err, &cannot) {
			t.Skipf("NOT PROVED %s: %v", kind, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		grade = g
		for _, one := range made {
			at := slices.IndexFunc(rows, func(r row) bool { return r.name == one.Name })
			e, err := rows[at].expected(kind, os.Getuid() == 0)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, result{one, e.under(g.Landlock)})
		}
	}
	if len(results) != len(rows) {
		t.Errorf("%d attempts were made, and the table has %d", len(results), len(rows))
	}
	if os.Getenv(againMissing) == string(kind) {
		t.Errorf("the wall %s is there, inside of walls in which it must refuse", kind)
	}
	return grade, results
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
			grade, results := run(t, wall)
			stopped, open, unknown := 0, 0, 0
			for _, one := range results {
				wrong := !one.asExpected()
				if os.Getenv(againLoosely) != "" {
					wrong = wrong && one.crossed() && !one.expected.open()
				}
				switch {
				case wrong:
					t.Errorf("%s", one)
				case one.unknown():
					t.Logf("unknown: %s", one)
					unknown++
				case one.crossed():
					open++
				default:
					stopped++
				}
			}
			t.Logf("PROVED %s: %d stopped, %d open, %d unknown", grade, stopped, open, unknown)
			if left, _ := os.ReadDir(scenes); len(left) > 0 {
				t.Errorf("%s is left behind", left[0])
			}
		})
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
	p := sandbox.Policy{Wall: sandbox.Hidden, Write: []string{scenes}, Read: append(workshop.System(), filepath.Dir(program))}
	w, err := wall.Build(t.Context(), p)
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
	open := 0
	_, results := run(t, sandbox.NoWall)
	for _, one := range results {
		switch {
		case one.crossed() && !one.expected.open():
			t.Errorf("without walls there is a hole: %s", one)
		case one.unknown() || !slices.Equal(one.expected.Words, []string{stage.WordOpen}):
		case one.crossed():
			open++
		default:
			t.Errorf("%s", one)
		}
	}
	if open < 60 {
		t.Errorf("only %d attempts get through without walls", open)
	}
}

// TestClaims checks that variables of other walls change nothing.
func TestClaims(t *testing.T) {
	before, err := prove.Wall(t.Context(), sandbox.Auto, "")
	if err != nil {
		t.Skip(err)
	}
	for _, pair := range claims() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	after, err := prove.Wall(t.Context(), sandbox.Auto, "")
	if err != nil {
		t.Fatal(err)
	}
	if before.Grade.String() != after.Grade.String() || after.Err() != nil {
		t.Errorf("the walls were %s, and are %s: %v", before.Grade, after.Grade, after.Err())
	}
}
