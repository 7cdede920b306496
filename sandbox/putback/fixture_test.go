//go:build linux

package putback

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/sandbox"
)

// fixture is a tree with a repository, as a command finds it, and what of it is
// protected.
type fixture struct {
	*testing.T
	dir, aside string
	policy     sandbox.Policy
}

// protectedPaths are those of a fixture. Commands may write ro/rw.
var protectedPaths = []string{".git/config", ".git/hooks", ".git/config.worktree", "ro", "task.toml", "no/such/file"}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := fixtureIn(t, base)
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwX", base).Run() })
	f.must(os.Mkdir(f.dir, 0o755))
	f.run(`
		umask 022
		mkdir -p .git/hooks/deep/er src ro/sub ro/rw
		echo '[core]' >.git/config; echo 'ref: refs/heads/main' >.git/HEAD
		echo '#!/bin/sh' >.git/hooks/pre-commit.sample; chmod 755 .git/hooks/pre-commit.sample
		echo deep >.git/hooks/deep/er/file; chmod 600 .git/hooks/deep/er/file; : >.git/hooks/empty
		ln -s pre-commit.sample .git/hooks/link; ln -s /nowhere/at/all .git/hooks/broken
		echo 'int main;' >src/main.c; echo a >ro/sub/a; echo b >ro/rw/b; chmod 444 ro/sub/a; chmod 555 ro/sub`)
	return f
}

// fixtureIn returns the fixture of a directory in which one was made.
func fixtureIn(t *testing.T, base string) *fixture {
	f := &fixture{T: t, dir: filepath.Join(base, "tree"), aside: filepath.Join(base, "aside")}
	f.policy.Write = []string{f.dir, f.path("ro/rw")}
	for _, path := range protectedPaths {
		f.policy.Read = append(f.policy.Read, f.path(path))
	}
	return f
}

func (f *fixture) path(rel string) string { return filepath.Join(f.dir, rel) }

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// run runs a script in the tree.
func (f *fixture) run(script string) {
	f.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = f.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (f *fixture) guard() *Guard {
	f.Helper()
	entries, err := f.policy.Entries()
	f.must(err)
	g, _, err := New(entries, sandbox.Policy{Wall: sandbox.NoWall, Aside: f.aside})
	f.must(err)
	return g
}

// around runs a script between an inspection and a restoration.
func (f *fixture) around(g *Guard, script string) []string {
	f.Helper()
	result, err := g.Around(func() (sandbox.Result, error) { f.run(script); return sandbox.Result{}, nil })
	f.must(err)
	return f.restoredPaths(result.Restored)
}

// killed inspects as before a command, and ends as if the process were killed during it.
func (f *fixture) killed(command func()) {
	f.Helper()
	g := f.guard()
	f.must(g.enter())
	command()
	g.release()
}

func isProtected(rel string) bool {
	return !sandbox.Within("ro/rw", rel) && slices.ContainsFunc(protectedPaths, func(p string) bool { return sandbox.Within(p, rel) })
}

// state returns all that is protected, or all that is not, with its mode and contents.
// It also reads what cannot be read.
func (f *fixture) state(protected bool) map[string]string {
	f.Helper()
	all := map[string]string{}
	f.walk(".", func(rel string, info fs.FileInfo) {
		if rel == "." || isProtected(rel) != protected {
			return
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(f.path(rel))
			f.must(err)
			text += " -> " + target
		case info.Mode().IsRegular():
			defer os.Chmod(f.path(rel), info.Mode())
			f.must(os.Chmod(f.path(rel), 0o600))
			data, err := os.ReadFile(f.path(rel))
			f.must(err)
			text += " " + string(data)
		}
		all[rel] = text
	})
	return all
}

func (f *fixture) walk(rel string, do func(rel string, info fs.FileInfo)) {
	f.Helper()
	info, err := os.Lstat(f.path(rel))
	f.must(err)
	do(rel, info)
	if !info.IsDir() {
		return
	}
	if info.Mode()&0o700 != 0o700 {
		f.must(os.Chmod(f.path(rel), info.Mode()|0o700))
		defer os.Chmod(f.path(rel), info.Mode())
	}
	entries, err := os.ReadDir(f.path(rel))
	f.must(err)
	for _, e := range entries {
		f.walk(filepath.Join(rel, e.Name()), do)
	}
}

// want compares states.
func (f *fixture) want(what string, got, want map[string]string) {
	f.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			f.Errorf("%s: %s is %q, was %q", what, path, got[path], want[path])
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			f.Errorf("%s: %s was created: %q", what, path, got[path])
		}
	}
}

// restoredPaths returns the paths that were restored, relative to the tree, and marks those
// whose contents are kept or lost.
func (f *fixture) restoredPaths(restored []sandbox.Restored) []string {
	f.Helper()
	var all []string
	for _, r := range restored {
		rel, err := filepath.Rel(f.dir, r.Path)
		f.must(err)
		if r.MovedTo != "" {
			if _, err := os.Lstat(r.MovedTo); err != nil {
				f.Errorf("what was at %s is not kept: %v", rel, err)
			}
			rel += " kept"
		}
		if r.NotRestored != "" {
			rel += " LOST " + r.NotRestored
		}
		all = append(all, rel)
	}
	return all
}

// records returns what is recorded.
func (f *fixture) records() []string {
	found, err := filepath.Glob(filepath.Join(f.aside, recordPrefix+"*"))
	f.must(err)
	return found
}

func (f *fixture) wantTold(got []string, want ...string) {
	f.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		f.Errorf("reported %q, want %q", got, want)
	}
}
