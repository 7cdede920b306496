package listing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hone/workspace/secret"

	"github.com/google/go-cmp/cmp"

	"hone/internal/crashtest"
)

// secretToken looks like a secret to the guard, but opens nothing.
const secretToken = "ghp_" + "q7Zt2LmXw9KcVb4NfR8sHj3DyGp6TaEu1QoW"

// dirOf returns a new directory with these files, by contents.
func dirOf(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(crashtest.Workspace(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFindSecrets(t *testing.T) {
	root := dirOf(t, map[string]string{
		"a.go":                        "package a\n",
		".env":                        "",
		".env.example":                "KEY=",
		"deep/er/.env.local":          "KEY=x",
		"deep/key.txt":                "token: " + secretToken + "\npassword = hunter22\n",
		"deep/.npmrc":                 "_authToken=hunter22\n",
		"sent/.env":                   "PASSWORD=pass-of-sent-1",
		"deep/.envrc":                 "export A_PASSWORD=pass-of-sent-1 B_PASSWORD=hunter22",
		"deep/own.txt":                "the key of hone: key-of-hone-itself",
		"sent/key.txt":                secretToken,
		"node_modules/x/.env":         "KEY=x",
		"node_modules/x/lib/token.js": secretToken,
		"binary":                      "\x00\x01" + secretToken,
		"large":                       strings.Repeat("x", maxSecretFile) + secretToken,
		".git/config":                 secretToken,
		".hone/runs/x":                secretToken,
		".venv/bin/.env":              "KEY=x",
		".env.d/not-a-file":           "x",
	})
	guard := secret.NewGuard([]string{"sent/**"})
	guard.Known = []string{"key-of-hone-itself"}
	got, err := FindSecrets(t.Context(), root, guard)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range got.Files {
		got.Files[i].Path = filepath.ToSlash(strings.TrimPrefix(f.Path, root+string(filepath.Separator)))
	}
	slices.SortFunc(got.Files, func(a, b SecretFile) int { return strings.Compare(a.Path, b.Path) })
	const named = "an environment file"
	want := SecretFiles{Files: []SecretFile{{".env", named}, {".venv/bin/.env", named}, {"deep/.envrc", named},
		{"deep/.npmrc", "it contains a package registry token"}, {"deep/er/.env.local", named},
		{"deep/key.txt", "line 1 looks like a GitHub token"}, {"deep/own.txt", secret.OwnKeyReason}, {"node_modules/x/.env", named}},
		Values: []string{"pass-of-sent-1 B_PASSWORD=hunter22", "hunter22"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// If there is too much to read, the search judges files by their names, reads
// those near the top first, and counts the others.
func TestFindSecretsBounded(t *testing.T) {
	root := dirOf(t, map[string]string{"top": secretToken, "deep/key": secretToken, "deep/.env": secretToken})
	s := secretSearch{root: root, guard: secret.NewGuard(nil), budget: int64(len(secretToken))}
	for _, dir := range []string{".", "deep"} {
		if _, err := s.searchLevel(t.Context(), []string{dir}); err != nil {
			t.Fatal(err)
		}
	}
	want := SecretFiles{Files: []SecretFile{{filepath.Join(root, "top"), "line 1 looks like a GitHub token"}, {filepath.Join(root, "deep", ".env"), "an environment file"}}, Values: []string{secretToken}, Unread: 2}
	if diff := cmp.Diff(want, s.found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// There are not more values than the limit, and the others are counted.
func TestFindSecretsLimitsValues(t *testing.T) {
	var env strings.Builder
	for i := range maxValues + 7 {
		fmt.Fprintf(&env, "TOKEN_%d=value-x%05d\n", i, i)
	}
	root := dirOf(t, map[string]string{".env": env.String()})
	got, err := FindSecrets(t.Context(), root, secret.NewGuard(nil))
	if err != nil || len(got.Values) != maxValues || got.Omitted != 7 {
		t.Errorf("%d values, %d omitted, %v", len(got.Values), got.Omitted, err)
	}
}

// Git's configuration and the files that it includes may contain credentials.
func TestCredentials(t *testing.T) {
	root := dirOf(t, map[string]string{".gitconfig": "[http]\n\textraHeader = X-Gate: pass-of-include-1\n", "sub/a": ""})
	for _, args := range [][]string{{"init", "-q"}, {"config", "remote.origin.url", "https://me:hunter22@host/x"}, {"config", "include.path", "../.gitconfig"}} {
		git := exec.Command("git", args...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	global := filepath.Join(dirOf(t, map[string]string{"config": "[http \"https://host/\"]\n\textraHeader = X-Gate: pass-of-user-1\n"}), "config")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	for dir, want := range map[string][]string{
		root:                       {"pass-of-user-1", "hunter22", "pass-of-include-1"},
		filepath.Join(root, "sub"): {"pass-of-user-1", "hunter22", "pass-of-include-1"},
		t.TempDir():                {"pass-of-user-1"}, // in no repository
	} {
		got, err := Credentials(t.Context(), dir)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", dir, err, diff)
		}
	}
}

func TestFindSecretsFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FindSecrets(ctx, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := FindSecrets(t.Context(), filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// FindSecrets judges a symbolic link by its name and does not follow it.
func TestFindSecretsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need rights on Windows")
	}
	outside := dirOf(t, map[string]string{"key": secretToken})
	root := dirOf(t, map[string]string{"a": "a"})
	for name, target := range map[string]string{".env": "a", "key": filepath.Join(outside, "key"), "folder": outside} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := FindSecrets(t.Context(), root, secret.NewGuard(nil))
	if diff := cmp.Diff([]string{filepath.Join(root, ".env")}, got.Paths()); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Files are judged on all processors, and the results are in the same order each
// time.
func TestFindSecretsOfManyFiles(t *testing.T) {
	files := map[string]string{}
	var want []string
	for i := range 600 {
		name := fmt.Sprintf("d%02d/f%03d", i/20, i)
		files[name] = "x"
		if i%7 == 0 {
			files[name] = "token: " + secretToken[:len(secretToken)-3] + fmt.Sprintf("%03d", i)
			want = append(want, name)
		}
	}
	root := dirOf(t, files)
	got, err := FindSecrets(t.Context(), root, secret.NewGuard(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range want {
		want[i] = filepath.Join(root, filepath.FromSlash(name))
	}
	if diff := cmp.Diff(want, got.Paths()); diff != "" || len(got.Values) != len(want) || !slices.IsSorted(got.Values) {
		t.Errorf("%d values, sorted %v\n%s", len(got.Values), slices.IsSorted(got.Values), diff)
	}
}

// A file is not read again if nothing was found in it, unless its state changed
// or it changed so recently that another change might not show.
func TestFindSecretsRemembers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the change time is unknown")
	}
	root := dirOf(t, map[string]string{"a": strings.Repeat("x", len(secretToken)), "b": "b", "bin": "\x00"})
	crashtest.AwaitOldStamps()
	crashtest.WriteFile(root, "recent", "recent")
	guard := secret.NewGuard(nil)
	if got, err := FindSecrets(t.Context(), root, guard); err != nil || len(got.Files) > 0 {
		t.Fatal(got, err)
	}
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for name, want := range map[string]bool{"a": true, "b": true, "bin": true, "recent": false} {
		state, ok := stateIn(dir, name)
		if !ok {
			t.Fatal(name)
		}
		for _, g := range []*secret.Guard{guard, guard.WithSecrets([]string{"some-password"})} {
			if got := g.IsClean(state); got != want {
				t.Errorf("%s is remembered: %v", name, got)
			}
		}
		if secret.NewGuard(nil).IsClean(state) {
			t.Errorf("another guard remembers %s", name)
		}
	}
	a := filepath.Join(root, "a")
	old, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	crashtest.WriteFile(root, "a", secretToken)
	crashtest.WriteFile(root, "recent", secretToken)
	if err := os.Chtimes(a, old.ModTime(), old.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, err := FindSecrets(t.Context(), root, guard); err != nil || len(got.Files) != 2 {
		t.Errorf("after the change: %v, %v", got.Files, err)
	}
}

// BenchmarkFindSecretsAgain searches a tree in which the guard has found nothing.
func BenchmarkFindSecretsAgain(b *testing.B) {
	files := map[string]string{}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/f%d.go", i%50, i)] = strings.Repeat("package main // nothing to see\n", 200)
	}
	root := dirOf(b, files)
	crashtest.AwaitOldStamps()
	guard := secret.NewGuard(nil)
	for b.Loop() {
		if got, err := FindSecrets(b.Context(), root, guard); err != nil || len(got.Files) > 0 {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkFindSecrets(b *testing.B) {
	files := map[string]string{".env": "KEY=x"}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/f%d.go", i%50, i)] = strings.Repeat("package main // nothing to see\n", 200)
	}
	root := dirOf(b, files)
	for b.Loop() {
		if got, err := FindSecrets(b.Context(), root, secret.NewGuard(nil)); err != nil || len(got.Files) != 1 {
			b.Fatal(got, err)
		}
	}
}
