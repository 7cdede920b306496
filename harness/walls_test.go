package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/internal/config"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace"
)

// aToken is what a scanner takes for a secret; it is none.
const aToken = "ghp_" + "q7Zt2LmXw9KcVb4NfR8sHj3DyGp6TaEu1QoW"

// plant writes files below a new folder.
func plant(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFindSecrets(t *testing.T) {
	root := plant(t, map[string]string{
		"a.go":                        "package a\n",
		".env":                        "",
		".env.example":                "KEY=",
		"deep/er/.env.local":          "KEY=x",
		"deep/key.txt":                "token: " + aToken,
		"deep/own.txt":                "the key of hone: key-of-hone-itself",
		"sent/key.txt":                aToken,
		"node_modules/x/.env":         "KEY=x",
		"node_modules/x/lib/token.js": aToken,
		"binary":                      "\x00\x01" + aToken,
		"large":                       strings.Repeat("x", mostSecret) + aToken,
		".git/config":                 aToken,
		".hone/runs/x":                aToken,
		".venv/bin/.env":              "KEY=x",
		".env.d/not-a-file":           "x",
	})
	guard := workspace.NewGuard([]string{"sent/**"})
	guard.Known = []string{"key-of-hone-itself"}
	got, err := findSecrets(t.Context(), root, guard)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range got.paths {
		got.paths[i] = filepath.ToSlash(strings.TrimPrefix(p, root+string(filepath.Separator)))
	}
	slices.Sort(got.paths)
	want := []string{".env", ".venv/bin/.env", "deep/er/.env.local", "deep/key.txt", "deep/own.txt", "node_modules/x/.env"}
	if diff := cmp.Diff(want, got.paths); diff != "" || got.unread != 0 {
		t.Errorf("%d unread; -want +got:\n%s", got.unread, diff)
	}
}

// TestFindSecretsBounded: what there is too much of is looked at by name, what
// lies near the top before what lies below, and that is told.
func TestFindSecretsBounded(t *testing.T) {
	root := plant(t, map[string]string{"top": aToken, "deep/key": aToken, "deep/.env": aToken})
	s := search{root: root, guard: workspace.NewGuard(nil), left: int64(len(aToken))}
	for _, folder := range []string{".", "deep"} {
		if _, err := s.folder(folder); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(root, "top"), filepath.Join(root, "deep", ".env")}
	if diff := cmp.Diff(want, s.found.paths); diff != "" || s.found.unread != 1 {
		t.Errorf("%d unread; -want +got:\n%s", s.found.unread, diff)
	}
	if said := s.found.note(sandbox.Hidden); !strings.Contains(said, "2 secret files hidden") || !strings.Contains(said, "1 file checked for secrets only by name") {
		t.Errorf("said %q", said)
	}
}

func TestFindSecretsIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := findSecrets(ctx, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := findSecrets(t.Context(), filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestSecretLinks: a symlink is judged by its name and not followed, and no
// pipe is opened.
func TestSecretLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symlinks need rights there")
	}
	outside := plant(t, map[string]string{"key": aToken})
	root := plant(t, map[string]string{"a": "a"})
	for name, target := range map[string]string{".env": "a", "key": filepath.Join(outside, "key"), "folder": outside} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := findSecrets(t.Context(), root, workspace.NewGuard(nil))
	if diff := cmp.Diff([]string{filepath.Join(root, ".env")}, got.paths); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func BenchmarkFindSecrets(b *testing.B) {
	files := map[string]string{".env": "KEY=x"}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/f%d.go", i%50, i)] = strings.Repeat("package main // nothing to see\n", 200)
	}
	root := plant(b, files)
	for b.Loop() {
		if got, err := findSecrets(b.Context(), root, workspace.NewGuard(nil)); err != nil || len(got.paths) != 1 {
			b.Fatal(got, err)
		}
	}
}

func TestResolveWalls(t *testing.T) {
	root := plant(t, map[string]string{"out/x": ""})
	t.Setenv("HOME", root)
	t.Setenv("USERPROFILE", root)
	file := config.Sandbox{Wall: "bwrap", Write: []string{"out", "~/out"}, Read: []string{"lib/../lib"}, Hide: []string{filepath.Join(root, "x")},
		Env: []string{"A"}, Memory: 5, Processes: 6}
	got, err := ResolveWalls(loop.Flags{Wall: "landlock", Net: true}, file, root, "auto")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "out")
	want := loop.WallSettings{Wall: "landlock", Net: true, Write: []string{out, out}, Read: []string{filepath.Join(root, "lib")},
		Hide: []string{filepath.Join(root, "x")}, Env: []string{"A"}, Memory: 5, Processes: 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		flag, file, want string
		none             bool
	}{{"", "", "auto", false}, {"", "bwrap", "bwrap", false}, {"none", "bwrap", "none", true}} {
		got, err := ResolveWalls(loop.Flags{Wall: tt.flag}, config.Sandbox{Wall: tt.file}, root, "auto")
		if err != nil || got.Wall != tt.want || got.None() != tt.none {
			t.Errorf("flag %q and file %q: %+v, %v", tt.flag, tt.file, got, err)
		}
	}
	if !(loop.WallSettings{}).None() {
		t.Error("nothing is taken for a wall")
	}
}

func TestAftermath(t *testing.T) {
	const missed = "curl: (6) Could not resolve host: x"
	restoredOne := []sandbox.Restored{{Path: "/w/.git/config", Kept: "/aside/config"}}
	for _, tt := range []struct {
		r    sandbox.Result
		net  bool
		want []string
	}{
		{r: sandbox.Result{}},
		{r: sandbox.Result{Stderr: []byte(missed)}},
		{r: sandbox.Result{Exit: 6, Stderr: []byte(missed)}, want: []string{WantsNet}},
		{r: sandbox.Result{Exit: 6, Stdout: []byte(missed)}, want: []string{WantsNet}},
		{r: sandbox.Result{Exit: 6, Stdout: []byte(missed)}, net: true},
		{r: sandbox.Result{Exit: -1, TimedOut: true, Stdout: []byte(missed)}, want: []string{WantsNet}},
		{r: sandbox.Result{Exit: -1, OverLimit: "memory"}, want: []string{"a command exceeded its limit of memory"}},
		{r: sandbox.Result{Restored: restoredOne}, want: []string{Restored(restoredOne[0])}},
	} {
		if diff := cmp.Diff(tt.want, aftermath(tt.r, tt.net)); diff != "" {
			t.Errorf("%+v:\n%s", tt.r, diff)
		}
	}
}

func TestRestored(t *testing.T) {
	for want, r := range map[string]sandbox.Restored{
		"/a is protected: a command changed it, and it was restored":                                           {Path: "/a"},
		"/a is protected: a command changed it, and it was restored; the command's version is in /k":           {Path: "/a", Kept: "/k"},
		"/a is protected: a command changed it, and it was NOT restored: gone; the command's version is in /k": {Path: "/a", Kept: "/k", Lost: "gone"},
	} {
		if got := Restored(r); got != want {
			t.Errorf("%+v: %s", r, got)
		}
	}
}

func TestRemoveTree(t *testing.T) {
	root := plant(t, map[string]string{"a/b/c": "x", "outside": "x"})
	if runtime.GOOS != "windows" {
		if err := os.Symlink("../outside", filepath.Join(root, "a", "link")); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(root, dir), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTree(filepath.Join(root, "a")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(root, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "outside")); err != nil {
		t.Error(err)
	}
}

// TestWallFolder: a process has a folder of its own, and what others left is
// cleared away when they are gone, and not before.
func TestWallFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("walls are Linux's")
	}
	cache, root := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	first, err := newWallFolder(root, "x")
	if err != nil {
		t.Fatal(err)
	}
	second, err := newWallFolder(root, "x")
	if err != nil {
		t.Fatal(err)
	}
	if first.dir == second.dir || first.aside == second.aside {
		t.Errorf("two have the same: %+v %+v", first, second)
	}
	if info, err := os.Stat(first.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	dead := filepath.Join(cache, "hone", runPrefix+"dead")
	if err := os.MkdirAll(filepath.Join(dead, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * young)
	for _, dir := range []string{dead, first.dir, second.dir} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	second.remove()
	third, err := newWallFolder(root, "x")
	if err != nil {
		t.Fatal(err)
	}
	if third.aside != second.aside {
		t.Errorf("what the second put aside is not found: %s, %s", second.aside, third.aside)
	}
	for dir, want := range map[string]bool{dead: false, second.dir: false, first.dir: true, third.dir: true, first.aside: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	first.remove()
	third.remove()
}

// TestNoWalls: without walls to be had, the user is told how to go without.
func TestNoWalls(t *testing.T) {
	var stop *hone.Stop
	err := NoWalls(t.Context(), &sandbox.WallError{Wall: sandbox.Auto, Reason: "none", Next: "hone doctor"})
	if !errors.As(err, &stop) || stop.Kind != hone.KindFailed || !strings.Contains(stop.Next.Or, "--sandbox none") {
		t.Errorf("%+v", err)
	}
	err = NoWalls(t.Context(), &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: "none", Next: "install it"})
	if !errors.As(err, &stop) || stop.Next.First != "install it" {
		t.Errorf("%+v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NoWalls(cancelled, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestReadOnly(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	link := filepath.Join(outside, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(root, "in"), 0o755), os.Symlink(filepath.Join(root, "in"), link)); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	p := sandbox.Policy{Write: []string{root, filepath.Join(root, "in"), link, outside, root + "-beside"}, Read: []string{"/usr"}}
	readOnlyTree(&p, root)
	if diff := cmp.Diff(sandbox.Policy{Write: []string{outside, root + "-beside"}, Read: []string{"/usr", root}}, p); diff != "" {
		t.Error(diff)
	}
}
