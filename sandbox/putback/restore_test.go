//go:build linux

package putback

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/sandbox"
)

// attack is what a command does, and what is reported about it.
type attack struct {
	name, script string
	want         []string
}

func attacks() []attack {
	return []attack{
		{"nothing", "", nil},
		{"what is not protected", "echo x >src/main.c; echo x >ro/rw/b; rm .git/HEAD; mkdir -p .git/objects no/such", nil},

		{"a file's contents", "echo evil >.git/config", []string{".git/config kept"}},
		{"a file's contents, with its size and time", "cp -p .git/config ../c; echo '[Core]' >.git/config; touch -r ../c .git/config", []string{".git/config kept"}},
		{"a file's mode", "chmod 777 .git/config", []string{".git/config kept"}},
		{"a file that cannot be read", "echo evil >.git/config; chmod 0 .git/config", []string{".git/config kept"}},
		{"a file removed", "rm .git/config", []string{".git/config"}},
		{"a file to directory", "rm .git/config; mkdir .git/config; echo x >.git/config/x", []string{".git/config kept"}},
		{"a file to symlink", "mv .git/config .git/config2; ln -s config2 .git/config", []string{".git/config kept"}},
		{"a file to FIFO", "rm .git/config; mkfifo .git/config", []string{".git/config kept"}},
		{"a second name", "ln .git/config src/config", []string{".git/config kept"}},
		{"a second name written by", "ln .git/config src/config; echo evil >src/config", []string{".git/config kept"}},
		{"a symlink's target", "ln -sfn /etc/passwd .git/hooks/link", []string{".git/hooks kept"}},

		{"a directory added to", "echo evil >.git/hooks/pre-commit", []string{".git/hooks kept"}},
		{"a directory added to deep", "mkdir .git/hooks/deep/er/new; echo x >.git/hooks/deep/er/new/x; mkfifo .git/hooks/deep/fifo", []string{".git/hooks kept"}},
		{"a directory taken from", "rm -r .git/hooks/deep", []string{".git/hooks"}},
		{"a directory's files swapped", "cd .git/hooks; mv empty x; mv deep/er/file empty; mv x deep/er/file", []string{".git/hooks kept"}},
		{"a directory to symlink", "mv .git/hooks src/hooks; ln -s ../src/hooks .git/hooks", []string{".git/hooks kept"}},
		{"a directory to a symlink that leaves", "rm -r .git/hooks; mkdir ../evil; ln -s ../../evil .git/hooks", []string{".git/hooks kept"}},
		{"a directory to file", "rm -r .git/hooks; echo x >.git/hooks", []string{".git/hooks kept"}},
		{"a directory's mode", "chmod 777 .git/hooks", []string{".git/hooks"}},
		{"a directory closed", "rm .git/hooks/empty; chmod 0 .git/hooks", []string{".git/hooks"}},
		{"a directory that is not writable", "chmod 755 ro/sub; echo x >ro/sub/new; rm -f ro/sub/a; chmod 555 ro/sub", []string{"ro kept"}},
		{"a closed directory added", "mkdir -p .git/hooks/x/y/z; chmod 0 .git/hooks/x/y .git/hooks/x || chmod 0 .git/hooks/x", []string{".git/hooks kept"}},
		{"a directory with a writable one renamed", "mv ro src/ro", []string{"ro"}},

		{"a missing file created", "echo x >task.toml; mkdir .git/config.worktree; echo x >.git/config.worktree/x", []string{".git/config.worktree kept", "task.toml kept"}},
		{"a missing path created", "mkdir -p no/such; echo x >no/such/file; echo x >no/other", []string{"no/such/file kept"}},
		{"a missing path's parent a file", "echo x >no", nil},
		{"a missing path's parent a symlink", "mkdir -p yes/such; echo x >yes/such/file; ln -s yes no", []string{"no/such/file kept"}},
		{"a dangling symlink", "ln -s nowhere task.toml", []string{"task.toml kept"}},

		{"a parent renamed", "mv .git .git2", []string{".git/config", ".git/hooks"}},
		{"a parent replaced", "mv .git .git2; mkdir .git; echo evil >.git/config", []string{".git/config kept", ".git/hooks"}},
		{"a parent to symlink", "mv .git src/git; ln -s src/git .git", []string{".git/config kept", ".git/hooks"}},
		{"a parent to a symlink that leaves", "mv .git ../git; ln -s ../git .git; echo evil >../git/config", []string{".git/config kept", ".git/hooks"}},
		{"a parent to file", "rm -r .git; echo 'gitdir: /tmp/evil' >.git", []string{".git/config kept", ".git/hooks"}},
		{"a parent closed", "echo evil >.git/config; chmod 0 .git", []string{".git/config kept"}},
		{"a parent not writable", "rm .git/config; chmod 555 .git", []string{".git/config"}},
		{"the tree not writable", "rm .git/config; chmod 555 .", []string{".git/config"}},
		{"everything removed", "chmod 755 ro/sub; rm -r .git src ro", []string{".git/config", ".git/hooks", "ro"}},
	}
}

// Whatever a command did, the protected paths are as before: after the command, and
// after a process that was killed during it. Nothing changes at the targets of its
// symlinks.
func TestRestore(t *testing.T) {
	for _, a := range attacks() {
		for how, do := range map[string]func(f *fixture) []string{
			"restored": func(f *fixture) []string {
				g := f.guard()
				told := f.around(g, a.script)
				f.wantTold(f.around(g, ""))
				return told
			},
			"settled": func(f *fixture) []string {
				f.killed(func() { f.run(a.script) })
				restored, err := Recover(f.aside, f.dir)
				f.must(err)
				f.wantTold(f.restoredPaths(restored), a.want...)
				again, err := Recover(f.aside, f.dir)
				if err != nil || again != nil {
					f.Errorf("settled twice: %v, %v", again, err)
				}
				return f.restoredPaths(restored)
			},
		} {
			t.Run(a.name+"/"+how, func(t *testing.T) {
				f := newFixture(t)
				before := f.state(true)
				f.wantTold(do(f), a.want...)
				f.want("protected", f.state(true), before)
				f.run("test ! -e ../evil || rmdir ../evil; test ! -e ../git || grep '^evil$' ../git/config; test ! -e src/git || test -e src/git/config")
				if left := f.records(); len(left) > 0 {
					t.Errorf("left in aside: %v", left)
				}
			})
		}
	}
}

// A tree that its owner can no longer search is restored. One that is now another
// directory is not touched.
func TestRestoreTree(t *testing.T) {
	f := newFixture(t)
	before := f.state(true)
	f.around(f.guard(), "rm .git/config; chmod 0 .")
	f.want("closed", f.state(true), before)
	_, err := f.guard().Around(func() (sandbox.Result, error) {
		f.run("mv ../tree ../tree2; mkdir ../tree")
		return sandbox.Result{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "not the same directory") {
		t.Errorf("another directory: %v", err)
	}
	if names, err := os.ReadDir(f.dir); err != nil || len(names) > 0 {
		t.Errorf("created %v, %v", names, err)
	}
}

// A directory around protected paths that did not exist is created again, and their
// absence is not reported as restored.
func TestRestoreEmptyParent(t *testing.T) {
	f := newFixture(t)
	f.run("mkdir -p no/such; chmod 750 no")
	f.wantTold(f.around(f.guard(), "rm -r no"))
	f.run("test -d no/such -a $(stat -c %a no) = 750")
}

// Entries in an entry, and in a writable directory in one, are restored after it.
func TestRestoreNested(t *testing.T) {
	f := newFixture(t)
	f.policy.Read = append(f.policy.Read, f.path("ro/rw/own"), f.path("ro/sub/a"))
	f.run("echo own >ro/rw/own")
	told := f.around(f.guard(), "echo evil >ro/rw/own; echo free >ro/rw/b; echo x >ro/x; chmod 755 ro/sub; rm -rf ro/sub")
	f.wantTold(told, "ro kept", "ro/rw/own kept", "ro/sub/a")
	f.run("test $(cat ro/rw/own ro/rw/b ro/sub/a | tr -d '\n') = ownfreea -a $(stat -c %a ro/sub) = 555 -a ! -e ro/x")
}

// What commands left is not changed, and nothing overwrites it.
func TestRestoreKeeps(t *testing.T) {
	f := newFixture(t)
	g := f.guard()
	for _, text := range []string{"one", "two"} {
		f.around(g, "printf "+text+" >.git/config")
	}
	found, _ := filepath.Glob(filepath.Join(f.aside, "left-*", "*", "*", ".git", "config"))
	var texts []string
	for _, path := range found {
		data, err := os.ReadFile(path)
		f.must(err)
		texts = append(texts, string(data))
	}
	if slices.Sort(texts); !slices.Equal(texts, []string{"one", "two"}) {
		t.Errorf("kept %q", texts)
	}
}

// A change in the same tick of the clock leaves a stamp as it was.
func TestStampsAreNotTrusted(t *testing.T) {
	f := newFixture(t)
	g := f.guard()
	before := f.state(true)
	f.must(g.enter())
	f.run("printf '[Core]\n' >.git/config")
	info, err := os.Lstat(f.path(".git/config"))
	f.must(err)
	for _, e := range g.entries {
		if e.Path == ".git/config" {
			e.Found[e.Path].Stamp = stampOf(info)
		}
	}
	restored, err := g.leave()
	f.must(err)
	f.wantTold(f.restoredPaths(restored), ".git/config kept")
	f.want("protected", f.state(true), before)
}

// What the user changed between two commands is not restored.
func TestRestoreKeepsTheUsersChanges(t *testing.T) {
	f := newFixture(t)
	g := f.guard()
	for i := range 3 {
		f.run(fmt.Sprintf("echo user %d >.git/config; echo mine >.git/hooks/%d", i, i))
		before := f.state(true)
		f.around(g, "echo evil >.git/config; rm -r .git/hooks")
		f.want("protected", f.state(true), before)
	}
}

func TestCommandsAtTheSameTime(t *testing.T) {
	f := newFixture(t)
	before := f.state(true)
	g := f.guard()
	f.wantTold(f.around(g, ""))
	result, err := g.Around(func() (sandbox.Result, error) {
		f.run("echo evil >.git/config")
		f.wantTold(f.around(g, "rm -r .git/hooks"), ".git/config kept", ".git/hooks")
		f.run("rm task.toml || echo evil >task.toml")
		return sandbox.Result{Exit: 3}, nil
	})
	f.must(err)
	if f.wantTold(f.restoredPaths(result.Restored), "task.toml kept"); result.Exit != 3 {
		t.Errorf("exit %d", result.Exit)
	}
	f.want("protected", f.state(true), before)
}

// After a change that could not be undone no other command starts. The next process
// undoes it.
func TestRestoreOwed(t *testing.T) {
	f := newFixture(t)
	before := f.state(true)
	g := f.guard()
	result, err := g.Around(func() (sandbox.Result, error) {
		f.run("echo evil >.git/config; mv ../aside ../aside2; : >../aside")
		return sandbox.Result{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), f.path(".git/config")) || len(result.Restored) != 1 || result.Restored[0].NotRestored == "" {
		t.Fatalf("%v, %v", result.Restored, err)
	}
	if _, err := g.Around(func() (sandbox.Result, error) { t.Error("the next command ran"); return sandbox.Result{}, nil }); err == nil {
		t.Error("no error")
	}
	f.run("rm ../aside; mv ../aside2 ../aside")
	restored, err := Recover(f.aside, f.dir)
	f.must(err)
	f.wantTold(f.restoredPaths(restored), ".git/config kept")
	f.want("protected", f.state(true), before)
}

// An owner is restored, or reported as lost; what is in a directory is restored
// whatever its owner is.
func TestRestoreOwner(t *testing.T) {
	const other = 12345
	f := newFixture(t)
	before := f.state(true)
	result, err := func() (sandbox.Result, error) {
		g := f.guard()
		return g.Around(func() (sandbox.Result, error) {
			for _, e := range g.entries {
				if e.Path == ".git/config" || e.Path == ".git/hooks" {
					e.Found[e.Path].Stamp.Owner.UID = other
				}
			}
			f.run("rm -r .git/hooks")
			return sandbox.Result{}, nil
		})
	}()
	f.must(err)
	f.want("protected", f.state(true), before)
	for _, path := range []string{".git/config", ".git/hooks"} {
		info, err := os.Lstat(f.path(path))
		f.must(err)
		if restored := os.Getuid() == 0; (stampOf(info).Owner.UID == other) != restored {
			t.Errorf("%s: %+v", path, stampOf(info))
		}
	}
	for i, r := range result.Restored {
		if (r.NotRestored == "") != (os.Getuid() == 0) || i > 1 {
			t.Errorf("reported %+v", r)
		}
	}
}

func TestBigFilesAreReported(t *testing.T) {
	f := newFixture(t)
	f.run(fmt.Sprintf("truncate -s %d ro/0; truncate -s 1000 ro/1", maxKept+1))
	g := f.guard()
	f.wantTold(f.around(g, "echo evil >ro/0; rm ro/1"), "ro LOST ro/0: "+tooBig)
	if data, err := os.ReadFile(f.path("ro/1")); len(data) != 1000 {
		t.Errorf("ro/1 contains %d bytes, %v", len(data), err)
	}
	f.wantTold(f.around(g, ""))
	f.wantTold(f.around(g, "rm ro/0"), "ro")
}

// An entry is reported once, and what was moved from it is together.
func TestManyChangesAreSummarized(t *testing.T) {
	const created = 300
	f := newFixture(t)
	g := f.guard()
	before := f.state(true)
	result, err := g.Around(func() (sandbox.Result, error) {
		f.run(fmt.Sprintf("cd .git/hooks; for i in $(seq %d); do echo x >x$i; done", created))
		return sandbox.Result{}, nil
	})
	f.must(err)
	f.wantTold(f.restoredPaths(result.Restored), ".git/hooks kept")
	if found, _ := filepath.Glob(filepath.Join(result.Restored[0].MovedTo, "*", ".git", "hooks", "x*")); len(found) != created {
		t.Errorf("kept %d files", len(found))
	}
	f.want("protected", f.state(true), before)
}

// Files that could not be restored are all named, unless they are very many.
func TestLostFilesAreNamed(t *testing.T) {
	f := newFixture(t)
	f.run(fmt.Sprintf("mkdir ro/s; cd ro/s; for i in $(seq %d); do truncate -s %d $i; done", 2*maxLost, maxKept+1))
	told := f.around(f.guard(), "for i in ro/s/*; do echo evil >$i; done")
	if n := strings.Count(strings.Join(told, " "), tooBig); len(told) != 1 || n != maxLost {
		t.Errorf("%d lines, %d named", len(told), n)
	}
}

// What is moved away may have to be copied to another file system.
func TestRestoreToAnotherFileSystem(t *testing.T) {
	f := newFixture(t)
	shm, err := os.MkdirTemp("/dev/shm", "aside")
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	if err := os.Rename(f.path("src"), filepath.Join(shm, "probe")); err == nil {
		t.Skip("SKIPPED: it is the same file system")
	}
	f.aside = shm
	before := f.state(true)
	g := f.guard()
	f.wantTold(f.around(g, `echo evil >.git/config; cd .git/hooks; mkdir -p new/deep; echo evil >new/deep/f; mkfifo new/fifo; ln -s /etc/passwd new/link; truncate -s 1T new/big
		echo no utf-8 >"$(printf 'new/\377')"; chmod 0 new/deep/f new/deep new`), ".git/config kept", ".git/hooks kept")
	f.want("protected", f.state(true), before)
	found, _ := filepath.Glob(filepath.Join(shm, "left-*", "*", "*", ".git", "hooks", "new", "*"))
	for i, path := range found {
		found[i] = filepath.Base(path)
	}
	if !slices.Equal(found, []string{"deep", "link", "\xff"}) {
		t.Errorf("kept %q", found)
	}
}

func TestFind(t *testing.T) {
	at := func(a sandbox.Access, paths ...string) (all []sandbox.Entry) {
		for _, p := range paths {
			all = append(all, sandbox.Entry{Path: p, Access: a})
		}
		return all
	}
	const write, read = sandbox.AccessWrite, sandbox.AccessRead
	for name, c := range map[string]struct {
		policy []sandbox.Entry
		want   string
	}{
		"nothing to write": {at(read, "/a", "/usr"), ""},
		"nothing to read":  {append(at(write, "/a"), at(read, "/usr", "/ab")...), ""},
		"one in the other": {slices.Concat(at(write, "/a"), at(read, "/a/b", "/usr"), at(sandbox.AccessNone, "/a/b/c")), "/a:b[/a/b]"},
		"and out again":    {slices.Concat(at(write, "/a"), at(read, "/a/b"), at(write, "/a/b/c"), at(read, "/a/b/c/d"), at(write, "/d")), "/a:b[/a/b /a/b/c /a/b/c/d] /a:b/c/d[/a/b/c/d]"},
		"a writable one":   {slices.Concat(at(write, "/a"), at(read, "/a/b"), at(write, "/a/b/x/c")), "/a:b[/a/b /a/b/x/c]"},
		"the root":         {append(at(write, "/"), at(read, "/a/b/c")...), "/:a/b/c[/a/b/c]"},
	} {
		var got []string
		g := &Guard{}
		g.find(c.policy, sandbox.Policy{Wall: sandbox.NoWall})
		for _, e := range g.entries {
			got = append(got, fmt.Sprint(e.Dir, ":", e.Path, slices.Sorted(maps.Keys(e.Apart))))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestGuardRefuses(t *testing.T) {
	f := newFixture(t)
	entries, err := f.policy.Entries()
	f.must(err)
	if _, _, err := New(entries, sandbox.Policy{Wall: sandbox.NoWall, Aside: f.path("src/aside")}); err == nil {
		t.Error("an aside that commands may write")
	}
	if _, _, err := New(entries, sandbox.Policy{Wall: sandbox.NoWall}); err == nil {
		t.Error("no aside")
	}
	g := f.guard()
	f.run("mv .git src/git; ln -s src/git .git")
	if _, err := g.Around(func() (sandbox.Result, error) { t.Error("the command ran"); return sandbox.Result{}, nil }); err == nil || !strings.Contains(err.Error(), f.path(".git")) {
		t.Errorf("a parent that is a symlink: %v", err)
	}
}

// BenchmarkAround is what a command costs that changes nothing.
func BenchmarkAround(b *testing.B) {
	for name, files := range map[string]int{"a usual repository": 14, "1000 files of 10 kB": 1000} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			hooks := filepath.Join(dir, "tree", ".git", "hooks")
			if err := os.MkdirAll(hooks, 0o755); err != nil {
				b.Fatal(err)
			}
			for i := range files {
				if err := os.WriteFile(filepath.Join(hooks, fmt.Sprint(i)), make([]byte, 10<<10), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			p := sandbox.Policy{Wall: sandbox.NoWall, Aside: filepath.Join(dir, "aside"), Write: []string{filepath.Join(dir, "tree")}, Read: []string{hooks, filepath.Join(dir, "tree/.git/config")}}
			entries, err := p.Entries()
			if err != nil {
				b.Fatal(err)
			}
			g, _, err := New(entries, p)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if r, err := g.Around(func() (sandbox.Result, error) { return sandbox.Result{}, nil }); err != nil || r.Restored != nil {
					b.Fatal(r, err)
				}
			}
		})
	}
}
