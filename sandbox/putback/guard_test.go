//go:build unix

package putback

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
)

// What a command left is kept as it left it, and nothing overwrites it.
func TestRestoreKeeps(t *testing.T) {
	y := newPlotted(t)
	g := y.guard()
	for _, text := range []string{"one", "two"} {
		p, err := g.protect()
		y.must(err)
		y.write(".git/config", text, 0o644)
		restored, err := p.restore()
		y.must(err)
		if data, err := os.ReadFile(restored[0].MovedTo); err != nil || string(data) != text {
			t.Errorf("kept %q, %v", data, err)
		}
	}
	found, _ := filepath.Glob(filepath.Join(y.aside, "left-*", "*", "config"))
	if len(found) != 2 {
		t.Errorf("kept %v", found)
	}
}

func TestRestoreTellsTimeOfChange(t *testing.T) {
	if !touchTells {
		t.Skip("this system does not tell it")
	}
	y := newPlotted(t)
	g := y.guard()
	p, err := g.protect()
	y.must(err)
	trust(g.plots[0].node)
	was := g.plots[0].node.inner(".git").inner("config").Stamp.Touched
	for {
		sneak(y)
		info, err := os.Stat(y.path(".git/config"))
		y.must(err)
		if stampOf(info).Touched != was {
			break
		}
	}
	restored, err := p.restore()
	y.must(err)
	if got := y.told(restored); len(got) != 1 || got[0] != ".git/config kept" {
		t.Errorf("told %q", got)
	}
}

// trust makes nodes as they are when their times are no longer in doubt.
func trust(n *node) {
	n.Doubt = false
	for _, inner := range n.Inner {
		trust(inner)
	}
}

// forget makes nodes whose contents cannot be compared.
func forget(n *node) {
	if n.Kind == isFile {
		n.Data = []byte("nobody reads this")
	}
	for _, inner := range n.Inner {
		forget(inner)
	}
}

// Where no time of change is in doubt nothing is read, and nothing is written.
func TestRestoreReadsOnlyWhatChanged(t *testing.T) {
	if !touchTells {
		t.Skip("this system does not tell it")
	}
	y := newPlotted(t)
	g := y.guard()
	p, err := g.protect()
	y.must(err)
	_, err = p.restore()
	y.must(err)
	trust(g.plots[0].node)
	forget(g.plots[0].node)
	form, err := os.Stat(g.form.name + idle)
	y.must(err)
	p, err = g.protect()
	y.must(err)
	trust(g.plots[0].node)
	if data := g.plots[0].node.inner(".git").inner("config").Data; string(data) != "nobody reads this" {
		t.Errorf("a look has read %q again", data)
	}
	again, err := os.Stat(g.form.name + armed)
	y.must(err)
	if !os.SameFile(form, again) {
		t.Error("the form was written again")
	}
	if restored, err := p.restore(); err != nil || restored != nil {
		t.Errorf("%v, %v", restored, err)
	}
}

// What the person changed between two commands is not put back.
func TestRestoreLeavesThePersonAlone(t *testing.T) {
	y := newPlotted(t)
	g := y.guard()
	for i := range 3 {
		y.write(".git/config", fmt.Sprintf("[person %d]\n", i), 0o644)
		y.write(fmt.Sprintf(".git/hooks/%d", i), "mine", 0o755)
		before := y.state(true)
		p, err := g.protect()
		y.must(err)
		y.write(".git/config", "[evil]\n", 0o644)
		y.rm(".git/hooks")
		_, err = p.restore()
		y.must(err)
		diff(t, "protected", y.state(true), before)
	}
}

func TestRestoreAtTheSameTime(t *testing.T) {
	y := newPlotted(t)
	before := y.state(true)
	g := y.guard()
	p, err := g.protect()
	y.must(err)
	y.write(".git/config", "[evil]\n", 0o644)
	q, err := g.protect()
	y.must(err)
	if g.Close() == nil {
		t.Error("it was closed while commands run")
	}
	if restored, err := p.restore(); err != nil || len(restored) != 1 {
		t.Errorf("%v, %v", restored, err)
	}
	y.rm(".git/hooks")
	if restored, err := q.restore(); err != nil || len(restored) != 1 {
		t.Errorf("%v, %v", restored, err)
	}
	diff(t, "protected", y.state(true), before)
	if restored, err := q.restore(); err != nil || restored != nil {
		t.Errorf("restored twice: %v, %v", restored, err)
	}
}

// While what a command did could not be put back, the next one does not start.
func TestRestoreOwed(t *testing.T) {
	y := newPlotted(t)
	before := y.state(true)
	g := y.guard()
	p, err := g.protect()
	y.must(err)
	y.write(".git/config", "[evil]\n", 0o644)
	y.must(os.Rename(y.aside, y.aside+"2"))
	y.must(os.WriteFile(y.aside, nil, 0o600))
	restored, err := p.restore()
	if err == nil || !strings.Contains(err.Error(), y.path(".git/config")) || len(restored) != 1 || restored[0].NotRestored == "" {
		t.Fatalf("%v, %v", restored, err)
	}
	if _, err := g.protect(); err == nil {
		t.Fatal("the next command could start")
	}
	y.must(os.Remove(y.aside))
	y.must(os.Rename(y.aside+"2", y.aside))
	p, err = g.protect()
	y.must(err)
	restored, err = p.restore()
	if got := y.told(restored); err != nil || len(got) != 1 || got[0] != ".git/config kept" {
		t.Errorf("told %q, %v", got, err)
	}
	diff(t, "protected", y.state(true), before)
}

func TestRestoreBigFiles(t *testing.T) {
	y := newPlotted(t)
	y.write("ro/0", "", 0o644)
	y.must(os.Truncate(y.path("ro/0"), mostKept))
	y.write("ro/1", "", 0o644)
	y.must(os.Truncate(y.path("ro/1"), mostKept))
	g := y.guard()
	p, err := g.protect()
	y.must(err)
	y.write(".git/config", "[evil]\n", 0o644)
	y.must(os.Chmod(y.path("ro/0"), 0o777))
	y.rm("ro/1")
	restored, err := p.restore()
	y.must(err)
	want := []string{".git/config kept", "ro/0 LOST " + tooBig, "ro/1 LOST " + tooBig}
	if got := y.told(restored); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if info, err := os.Stat(y.path("ro/0")); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	p, err = g.protect()
	y.must(err)
	if restored, err := p.restore(); err != nil || restored != nil {
		t.Errorf("told again: %v, %v", restored, err)
	}
}

func TestRestoreTellsAHundred(t *testing.T) {
	y := newPlotted(t)
	g := y.guard()
	before := y.state(true)
	p, err := g.protect()
	y.must(err)
	for i := range 3 * mostReported {
		y.write(fmt.Sprintf(".git/hooks/x%d", i), "x", 0o644)
	}
	restored, err := p.restore()
	y.must(err)
	if last := restored[len(restored)-1]; len(restored) != mostReported || last.Path != y.path(".git/hooks") || filepath.Dir(last.MovedTo) != y.aside {
		t.Errorf("%d, the last %v", len(restored), last)
	}
	diff(t, "protected", y.state(true), before)
}

// What is put aside may have to go to another file system.
func TestRestoreToAnotherFileSystem(t *testing.T) {
	y := newPlotted(t)
	shm, err := os.MkdirTemp("/dev/shm", "aside")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	y.aside = shm
	probe := filepath.Join(shm, "probe")
	if err := os.Rename(y.path("src"), probe); err == nil {
		t.Skip("it is the same file system")
	}
	before := y.state(true)
	p, err := y.guard().protect()
	y.must(err)
	y.write(".git/config", "[evil]\n", 0o644)
	y.write(".git/hooks/new/deep", "evil", 0)
	y.must(os.Chmod(y.path(".git/hooks/new"), 0))
	restored, err := p.restore()
	y.must(err)
	if got := y.told(restored); !slices.Equal(got, []string{".git/config kept", ".git/hooks/new kept"}) {
		t.Errorf("told %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(restored[1].MovedTo, "deep")); err != nil || string(data) != "evil" {
		t.Errorf("kept %q, %v", data, err)
	}
	diff(t, "protected", y.state(true), before)
}

func TestRestoreCopies(t *testing.T) {
	y := newPlotted(t)
	y.write("x/a", "secret", 0)
	y.write("x/y/b", "b", 0o644)
	y.must(os.Symlink("y/b", y.path("x/l")))
	y.must(syscall.Mkfifo(y.path("x/fifo"), 0o600))
	y.must(os.Chmod(y.path("x/y"), 0))
	from, err := os.OpenRoot(y.dir)
	y.must(err)
	defer from.Close()
	y.must(os.Mkdir(y.aside, 0o700))
	to, err := os.OpenRoot(y.aside)
	y.must(err)
	defer to.Close()
	room := int64(mostCopied)
	y.must(copyTree(from, to, "x", &room, 0))
	y.must(discard(from, "x"))
	for name, want := range map[string]string{"x/a": "secret", "x/y/b": "b", "x/l": "b"} {
		if data, err := to.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	if _, err := to.Lstat("x/fifo"); err == nil {
		t.Error("a FIFO was kept")
	}
	if _, err := from.Lstat("x"); err == nil {
		t.Error("it was not removed")
	}
	y.write("big", strings.Repeat("x", 10_000), 0o644)
	room = 5000
	y.must(copyTree(from, to, "big", &room, 0))
	if info, err := to.Stat("big"); err != nil || info.Size() > 5000 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestGuarded(t *testing.T) {
	at := func(a sandbox.Access, paths ...string) (all []sandbox.Entry) {
		for _, p := range paths {
			all = append(all, sandbox.Entry{Path: p, Access: a})
		}
		return all
	}
	for name, c := range map[string]struct {
		entries []sandbox.Entry
		want    string
	}{
		"nothing to write": {at(sandbox.AccessRead, "/a", "/usr"), ""},
		"nothing to read":  {append(at(sandbox.AccessWrite, "/a"), at(sandbox.AccessRead, "/usr", "/ab")...), ""},
		"one in the other": {append(at(sandbox.AccessWrite, "/a"), append(at(sandbox.AccessRead, "/a/b", "/usr"), at(sandbox.AccessNone, "/a/c")...)...), "/a /a/b"},
		"and out again":    {append(at(sandbox.AccessWrite, "/a", "/a/b/c", "/d"), at(sandbox.AccessRead, "/a/b", "/a/b/c/d")...), "/a /a/b/c /d /a/b /a/b/c/d"},
	} {
		var got []string
		for _, e := range guarded(c.entries) {
			got = append(got, e.Path)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if again := guarded(guarded(c.entries)); len(again) != len(got) {
			t.Errorf("%s: %v, and of itself %v", name, got, again)
		}
	}
}

func TestGuardRefuses(t *testing.T) {
	y := newPlotted(t)
	entries, err := y.policy.Entries()
	y.must(err)
	if _, err := New(entries, y.path("src/aside")); err == nil {
		t.Error("an aside that commands may write")
	}
	open := t.TempDir()
	y.must(os.Chmod(open, 0o777))
	if _, err := New(entries, open); err == nil {
		t.Error("an aside that others may write")
	}
	g := y.guard()
	y.mv(".git", "src/git")
	y.must(os.Symlink("src/git", y.path(".git")))
	if _, err := g.protect(); err == nil || !strings.Contains(err.Error(), y.path(".git")) {
		t.Errorf("a way that is a symlink: %v", err)
	}
	var none *Guard
	p, err := none.protect()
	y.must(err)
	if restored, err := p.restore(); err != nil || restored != nil {
		t.Errorf("%v, %v", restored, err)
	}
}

func TestAround(t *testing.T) {
	y := newPlotted(t)
	before := y.state(true)
	g := y.guard()
	result, err := g.Around(func() (sandbox.Result, error) {
		y.write(".git/config", "[evil]\n", 0o644)
		return sandbox.Result{Exit: 3}, nil
	})
	if err != nil || result.Exit != 3 || len(result.Restored) != 1 {
		t.Errorf("%v, %+v", err, result.Restored)
	}
	diff(t, "protected", y.state(true), before)
	y.must(g.Close())
	if forms, _ := filepath.Glob(filepath.Join(y.aside, formPrefix+"*")); len(forms) > 0 {
		t.Errorf("left in aside: %v", forms)
	}
}

// A change in the same tick of the clock leaves a young file's times as they
// were.
func TestRestoreDoubtsYoungFiles(t *testing.T) {
	y := newPlotted(t)
	before := y.state(true)
	p, err := y.guard().protect()
	y.must(err)
	n := p.guard.plots[0].node.inner(".git").inner("config")
	if !n.Doubt {
		t.Error("the times of a file made just now are trusted")
	}
	sneak(y)
	info, err := os.Lstat(y.path(".git/config"))
	y.must(err)
	n.Stamp = stampOf(info)
	if restored, err := p.restore(); err != nil || len(restored) != 1 {
		t.Errorf("%v, %v", restored, err)
	}
	diff(t, "protected", y.state(true), before)
}

// A name that is not protected keeps what a command did to its file, though
// the protected one has to be read through the same file.
func TestRestoreLeavesTheOtherName(t *testing.T) {
	y := newPlotted(t)
	before := y.state(true)
	p, err := y.guard().protect()
	y.must(err)
	y.must(os.Link(y.path(".git/config"), y.path("src/config")))
	y.must(os.Chmod(y.path("src/config"), 0))
	restored, err := p.restore()
	if got := y.told(restored); err != nil || !slices.Equal(got, []string{".git/config"}) {
		t.Errorf("%v, %v", got, err)
	}
	if info, err := os.Stat(y.path("src/config")); err != nil || info.Mode() != 0 {
		t.Errorf("the other name's mode: %v, %v", info.Mode(), err)
	}
	diff(t, "protected", y.state(true), before)
}
