//go:build unix

package putback

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hone/sandbox"
)

// plotted is a tree with a repository, as a command finds it, and what of it is
// protected.
type plotted struct {
	*testing.T
	dir, aside string
	policy     sandbox.Policy
	protected  []string // relative to dir
}

func newPlotted(t *testing.T) *plotted {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &plotted{T: t, dir: filepath.Join(base, "tree"), aside: filepath.Join(base, "aside")}
	t.Cleanup(func() { unlockAll(base) })
	y.write(".git/config", "[core]\n", 0o644)
	y.write(".git/HEAD", "ref: refs/heads/main\n", 0o644)
	y.write(".git/hooks/pre-commit.sample", "#!/bin/sh\nexit 0\n", 0o755)
	y.write(".git/hooks/deep/er/file", "deep\n", 0o600)
	y.write(".git/hooks/empty", "", 0o644)
	y.write("src/main.c", "int main;\n", 0o644)
	y.write("ro/sub/a", "a\n", 0o444)
	y.write("ro/rw/b", "b\n", 0o644)
	y.must(os.Symlink("pre-commit.sample", y.path(".git/hooks/link")))
	y.must(os.Symlink("/nowhere/at/all", y.path(".git/hooks/broken")))
	y.must(os.Chmod(y.path("ro/sub"), 0o555))
	y.protect(".git/config", ".git/hooks", ".git/config.worktree", "ro", "task.toml", "no/such/file")
	y.policy.Write = append(y.policy.Write, y.path("ro/rw"))
	return y
}

// unlockAll lets the test's folder be removed.
func unlockAll(dir string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

func (y *plotted) protect(paths ...string) {
	y.policy.Write = []string{y.dir}
	for _, p := range paths {
		y.policy.Read = append(y.policy.Read, y.path(p))
	}
	y.protected = append(y.protected, paths...)
}

func (y *plotted) path(rel string) string { return filepath.Join(y.dir, rel) }

func (y *plotted) must(err error) {
	y.Helper()
	if err != nil {
		y.Fatal(err)
	}
}

func (y *plotted) write(rel, text string, mode fs.FileMode) {
	y.Helper()
	y.must(os.MkdirAll(filepath.Dir(y.path(rel)), 0o755))
	y.must(os.WriteFile(y.path(rel), []byte(text), mode))
}

func (y *plotted) mv(from, to string) { y.Helper(); y.must(os.Rename(y.path(from), y.path(to))) }
func (y *plotted) rm(rel string)      { y.Helper(); y.must(os.RemoveAll(y.path(rel))) }

func (y *plotted) guard() *Guard {
	y.Helper()
	entries, err := y.policy.Entries()
	y.must(err)
	g, err := New(entries, y.aside)
	y.must(err)
	y.Cleanup(func() { g.Close() })
	return g
}

// isProtected reports whether a path may only be read.
func (y *plotted) isProtected(rel string) bool {
	return !sandbox.Within("ro/rw", rel) && slices.ContainsFunc(y.protected, func(p string) bool { return sandbox.Within(p, rel) })
}

// state is all of the tree that is protected, or all that is not, with what
// folders that cannot be read hold.
func (y *plotted) state(protected bool) map[string]string {
	y.Helper()
	all := map[string]string{}
	y.walk(".", func(rel string, info fs.FileInfo) {
		if rel == "." || y.isProtected(rel) != protected {
			return
		}
		text, err := describe(y.path(rel), info)
		y.must(err)
		all[rel] = text
	})
	return all
}

func (y *plotted) walk(rel string, do func(rel string, info fs.FileInfo)) {
	y.Helper()
	info, err := os.Lstat(y.path(rel))
	y.must(err)
	do(rel, info)
	if !info.IsDir() {
		return
	}
	if info.Mode()&0o700 != 0o700 {
		y.must(os.Chmod(y.path(rel), info.Mode()|0o700))
		defer os.Chmod(y.path(rel), info.Mode())
	}
	entries, err := os.ReadDir(y.path(rel))
	y.must(err)
	for _, e := range entries {
		y.walk(filepath.Join(rel, e.Name()), do)
	}
}

func describe(path string, info fs.FileInfo) (string, error) {
	text := info.Mode().String()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return text + " -> " + target, err
	case info.Mode().IsRegular():
		if info.Mode()&0o400 == 0 {
			os.Chmod(path, 0o600)
			defer os.Chmod(path, info.Mode())
		}
		data, err := os.ReadFile(path)
		return text + " " + string(data), err
	}
	return text, nil
}

func diff(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s: %s is %q, was %q", what, path, got[path], want[path])
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: %s has come into being: %q", what, path, got[path])
		}
	}
}

// told are the paths of what was restored, relative to the tree; what was kept
// or lost is marked.
func (y *plotted) told(restored []sandbox.Restored) []string {
	var all []string
	for _, r := range restored {
		rel, err := filepath.Rel(y.dir, r.Path)
		y.must(err)
		if r.MovedTo != "" {
			if _, err := os.Lstat(r.MovedTo); err != nil {
				y.Errorf("what was at %s is not kept: %v", rel, err)
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

func mutations() map[string]struct {
	do   func(y *plotted)
	want []string
} {
	return map[string]struct {
		do   func(y *plotted)
		want []string
	}{
		"nothing":                {func(y *plotted) {}, nil},
		"what is not protected":  {func(y *plotted) { y.write("src/main.c", "x", 0o644); y.write("ro/rw/b", "x", 0o644); y.rm(".git/HEAD") }, nil},
		"a file's contents":      {func(y *plotted) { y.write(".git/config", "[evil]\n", 0o644) }, []string{".git/config kept"}},
		"a file's time set back": {sneak, []string{".git/config kept"}},
		"a file's mode":          {func(y *plotted) { y.must(os.Chmod(y.path(".git/config"), 0o777)) }, []string{".git/config"}},
		"a file that cannot be read": {func(y *plotted) {
			y.write(".git/config", "[evil]\n", 0o644)
			y.must(os.Chmod(y.path(".git/config"), 0))
		}, []string{".git/config kept"}},
		"a file's mode alone": {func(y *plotted) { y.must(os.Chmod(y.path(".git/config"), 0)) }, []string{".git/config"}},
		"a file removed":      {func(y *plotted) { y.rm(".git/config") }, []string{".git/config"}},
		"a file to folder":    {func(y *plotted) { y.rm(".git/config"); y.write(".git/config/x", "x", 0o644) }, []string{".git/config kept"}},
		"a file to symlink": {func(y *plotted) {
			y.mv(".git/config", ".git/config2")
			y.must(os.Symlink("config2", y.path(".git/config")))
		}, []string{".git/config kept"}},
		"a file to FIFO": {func(y *plotted) { y.rm(".git/config"); y.must(syscall.Mkfifo(y.path(".git/config"), 0o644)) }, []string{".git/config kept"}},
		"a file to socket": {func(y *plotted) {
			y.rm(".git/config")
			y.Chdir(y.path(".git")) // a socket's path is short
			l, err := net.Listen("unix", "config")
			y.must(err)
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}, []string{".git/config kept"}},
		"a second name": {func(y *plotted) { y.must(os.Link(y.path(".git/config"), y.path("src/config"))) }, []string{".git/config"}},
		"a second name written by": {func(y *plotted) {
			y.must(os.Link(y.path(".git/config"), y.path("src/config")))
			y.write("src/config", "[evil]\n", 0o644)
		}, []string{".git/config kept"}},
		"a folder added to": {func(y *plotted) { y.write(".git/hooks/pre-commit", "evil", 0o755) }, []string{".git/hooks/pre-commit kept"}},
		"a folder added to deep": {func(y *plotted) {
			y.write(".git/hooks/deep/er/new/x", "evil", 0o755)
			y.must(syscall.Mkfifo(y.path(".git/hooks/deep/fifo"), 0o644))
		}, []string{".git/hooks/deep/fifo kept", ".git/hooks/deep/er/new kept"}},
		"a folder taken from": {func(y *plotted) { y.rm(".git/hooks/deep") }, []string{".git/hooks/deep"}},
		"a folder's files swapped": {func(y *plotted) {
			y.mv(".git/hooks/empty", ".git/hooks/x")
			y.mv(".git/hooks/deep/er/file", ".git/hooks/empty")
			y.mv(".git/hooks/x", ".git/hooks/deep/er/file")
		}, []string{".git/hooks/deep/er/file kept", ".git/hooks/empty kept"}},
		"a folder to symlink": {func(y *plotted) {
			y.mv(".git/hooks", "src/hooks")
			y.must(os.Symlink("../src/hooks", y.path(".git/hooks")))
		}, []string{".git/hooks kept"}},
		"a folder to file": {func(y *plotted) { y.rm(".git/hooks"); y.write(".git/hooks", "x", 0o644) }, []string{".git/hooks kept"}},
		"a folder's mode":  {func(y *plotted) { y.must(os.Chmod(y.path(".git/hooks"), 0o777)) }, []string{".git/hooks"}},
		"a folder closed":  {func(y *plotted) { y.rm(".git/hooks/empty"); y.must(os.Chmod(y.path(".git/hooks"), 0)) }, []string{".git/hooks", ".git/hooks/empty"}},
		"a folder that is not writable": {func(y *plotted) {
			y.must(os.Chmod(y.path("ro/sub"), 0o755))
			y.write("ro/sub/new", "x", 0o644)
			y.rm("ro/sub/a")
			y.must(os.Chmod(y.path("ro/sub"), 0o555))
		}, []string{"ro/sub/new kept", "ro/sub/a"}},
		"a closed folder added": {func(y *plotted) {
			y.write(".git/hooks/x/y/z", "x", 0)
			y.must(os.Chmod(y.path(".git/hooks/x/y"), 0))
			y.must(os.Chmod(y.path(".git/hooks/x"), 0))
		}, []string{".git/hooks/x kept"}},
		"a symlink's target": {func(y *plotted) {
			y.rm(".git/hooks/link")
			y.must(os.Symlink("/etc/passwd", y.path(".git/hooks/link")))
		}, []string{".git/hooks/link kept"}},
		"a missing file made":   {func(y *plotted) { y.write("task.toml", "x", 0o644); y.write(".git/config.worktree/x", "x", 0o644) }, []string{".git/config.worktree kept", "task.toml kept"}},
		"a missing path made":   {func(y *plotted) { y.write("no/such/file", "x", 0o644); y.write("no/other", "x", 0o644) }, []string{"no/such/file kept"}},
		"a missing path begun":  {func(y *plotted) { y.write("no/such/other", "x", 0o644) }, nil},
		"a missing path linked": {func(y *plotted) { y.write("yes/such/file", "x", 0o644); y.must(os.Symlink("yes", y.path("no"))) }, []string{"no kept"}},
		"a dangling symlink":    {func(y *plotted) { y.must(os.Symlink("nowhere", y.path("task.toml"))) }, []string{"task.toml kept"}},
		"a parent renamed":      {func(y *plotted) { y.mv(".git", ".git2") }, []string{".git/config", ".git/hooks"}},
		"a parent replaced":     {func(y *plotted) { y.mv(".git", ".git2"); y.write(".git/config", "[evil]\n", 0o644) }, []string{".git/config kept", ".git/hooks"}},
		"a parent to symlink":   {func(y *plotted) { y.mv(".git", "src/git"); y.must(os.Symlink("src/git", y.path(".git"))) }, []string{".git kept", ".git/config", ".git/hooks"}},
		"a parent to file":      {func(y *plotted) { y.rm(".git"); y.write(".git", "gitdir: /tmp/evil\n", 0o644) }, []string{".git kept", ".git/config", ".git/hooks"}},
		"a parent closed":       {func(y *plotted) { y.write(".git/config", "[evil]\n", 0o644); y.must(os.Chmod(y.path(".git"), 0)) }, []string{".git", ".git/config kept"}},
		"a parent not writable": {func(y *plotted) { y.rm(".git/config"); y.must(os.Chmod(y.path(".git"), 0o555)) }, []string{".git", ".git/config"}},
		"the tree closed":       {func(y *plotted) { y.rm(".git/config"); y.must(os.Chmod(y.dir, 0)) }, []string{".", ".git/config"}},
		"the tree moved": {func(y *plotted) {
			y.rm(".git/config")
			y.must(os.Rename(y.dir, y.dir+"2"))
			y.must(os.Mkdir(y.dir, 0o755))
			y.Cleanup(func() { os.RemoveAll(y.dir + "2") })
		}, []string{".git/config"}},
		"everything removed": {func(y *plotted) {
			y.must(os.Chmod(y.path("ro/sub"), 0o755))
			for _, name := range []string{".git", "src", "ro"} {
				y.rm(name)
			}
		}, []string{".git/config", ".git/hooks", "ro"}},
		"a folder that holds one to write renamed": {func(y *plotted) { y.mv("ro", "src/ro") }, []string{"ro"}},
	}
}

// sneak changes a file, and sets all its times but one back.
func sneak(y *plotted) {
	info, err := os.Stat(y.path(".git/config"))
	y.must(err)
	y.write(".git/config", "[Core]\n", 0o644)
	y.must(os.Chtimes(y.path(".git/config"), info.ModTime(), info.ModTime()))
}

func TestRestore(t *testing.T) {
	for name, m := range mutations() {
		for _, aside := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", name, aside), func(t *testing.T) {
				y := newPlotted(t)
				if !aside {
					y.aside = ""
				}
				before := y.state(true)
				g := y.guard()
				p, err := g.protect()
				y.must(err)
				m.do(y)
				restored, err := p.restore()
				y.must(err)
				if name == "the tree moved" {
					y.must(os.Remove(y.dir))
					y.must(os.Rename(y.dir+"2", y.dir))
				}
				want := m.want
				if !aside {
					want = strings.Split(strings.TrimSpace(strings.ReplaceAll(strings.Join(want, "\n"), " kept", "")), "\n")
				}
				if got := y.told(restored); strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("told %q, want %q", got, want)
				}
				if name == "a folder that holds one to write renamed" || name == "everything removed" {
					delete(before, "ro/rw")
				}
				diff(t, "protected", y.state(true), before)
				y.must(g.Close())
				if forms, _ := filepath.Glob(filepath.Join(y.aside, formPrefix+"*")); len(forms) > 0 {
					t.Errorf("left in aside: %v", forms)
				}
			})
		}
	}
}

// BenchmarkProtect is what a command costs that changes nothing, in a usual
// repository.
func BenchmarkProtect(b *testing.B) {
	dir := b.TempDir()
	for i := range 14 {
		writeBench(b, filepath.Join(dir, "tree/.git/hooks", fmt.Sprintf("hook-%d.sample", i)), 2000)
	}
	writeBench(b, filepath.Join(dir, "tree/.git/config"), 300)
	writeBench(b, filepath.Join(dir, "tree/.git/info/exclude"), 240)
	p := sandbox.Policy{Write: []string{filepath.Join(dir, "tree")}}
	for _, name := range []string{"config", "config.worktree", "hooks", "info"} {
		p.Read = append(p.Read, filepath.Join(dir, "tree/.git", name))
	}
	entries, err := p.Entries()
	if err != nil {
		b.Fatal(err)
	}
	g, err := New(entries, filepath.Join(dir, "aside"))
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	time.Sleep(grain) // after which times of change are trusted, as in a tree that was not made just now
	for b.Loop() {
		p, err := g.protect()
		if err != nil {
			b.Fatal(err)
		}
		if restored, err := p.restore(); err != nil || restored != nil {
			b.Fatal(restored, err)
		}
	}
}

func writeBench(b *testing.B, path string, size int) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o644); err != nil {
		b.Fatal(err)
	}
}
