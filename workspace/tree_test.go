package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
)

// newTree returns a tree with the files of treetest.Dir.
func newTree(t testing.TB, files map[string]string, o Options) *Tree {
	t.Helper()
	tree, err := Open(treetest.Dir(t, files), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

// gitLister asks the git program, like package git.
func gitLister(t testing.TB) Lister {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	ask := func(ctx context.Context, dir string, args ...string) ([]string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false", "ls-files", "-z"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil && strings.Contains(stderr.String(), "not a git repository") {
			return nil, ErrNoRepository
		}
		if err != nil {
			return nil, fmt.Errorf("git ls-files: %w: %s", err, stderr.Bytes())
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
	}
	return func(ctx context.Context, dir string) (Listing, error) {
		tracked, err := ask(ctx, dir, "-c")
		if err != nil {
			return Listing{}, err
		}
		untracked, err := ask(ctx, dir, "-o", "--exclude-standard")
		l := Listing{Paths: append(tracked, untracked...), Untracked: map[string]bool{}}
		for _, name := range untracked {
			l.Untracked[name] = true
		}
		return l, err
	}
}

// summary formats listed files, one per line.
func summary(files []File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s %s %d", f.Path, f.Kind, f.Size)
		if f.Target != "" {
			fmt.Fprintf(&b, " -> %s", f.Target)
		}
		if f.Untracked {
			b.WriteString(" untracked")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Many names are divided among the processors. The result is the same as for each
// name alone.
func TestFilesInParts(t *testing.T) {
	var names []string
	contents := map[string]string{"nested/.git/": "", "nested/in": "1", "nested/deep/in": "1"}
	want := []string{}
	for i := range 2000 {
		name := fmt.Sprintf("d%d/f%04d", i/300, i)
		names, want = append(names, name), append(want, name)
		contents[name] = "1"
	}
	tree := newTree(t, contents, Options{List: func(_ context.Context, dir string) (Listing, error) {
		if filepath.Base(dir) == "nested" {
			return Listing{Paths: []string{"in", "deep"}}, nil
		}
		return Listing{Paths: append(names[:len(names):len(names)], "nested", "gone/file")}, nil
	}})
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff(append(want, "nested/deep/in", "nested/in"), got); diff != "" {
		t.Error(diff)
	}
}

func TestFilesWalked(t *testing.T) {
	tree := newTree(t, map[string]string{
		"b.txt":            "bb",
		"a/c":              "c",
		"a-b":              "1",
		"link":             "->/etc/passwd",
		"dirlink":          "->a",
		".git/config":      "x",
		"a/.git/config":    "x",
		"deep/.GIT":        "x",
		".hone/journal":    "x",
		"a/.hone/kept":     "x",
		".hone~0123":       "x",
		"a/.hone~0123":     "x",
		".github/ci.yml":   "x",
		"empty/":           "",
		"deep/er/and/er/f": "x",
	}, Options{})
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `.github/ci.yml file 1
a-b file 1
a/.hone/kept file 1
a/c file 1
b.txt file 2
deep/er/and/er/f file 1
dirlink symlink 0 -> a
link symlink 0 -> /etc/passwd
`
	if diff := cmp.Diff(want, summary(files)); diff != "" {
		t.Error(diff)
	}
}

// Configurations without contents are placeholders of hone's.
func TestPlaceholdersAreNotListed(t *testing.T) {
	tree := newTree(t, map[string]string{
		".config/hone.toml": "", ".config/bork.json": "{}", "sub/.config/hone.toml": "", "config/hone.toml": "", "hone.toml": "",
		"a/.config/hone.toml": "\n", "a/.config/bork.json": "{ }", ".config/other": "",
	}, Options{})
	files, err := tree.Files(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff([]string{".config/other", "a/.config/bork.json", "a/.config/hone.toml", "config/hone.toml", "hone.toml"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfRepositories(t *testing.T) {
	list := gitLister(t)
	tree := newTree(t, map[string]string{
		".gitignore":         "ignored/\n*.o\n",
		"tracked":            "1",
		"gone":               "1",
		"dir/file":           "1",
		"nested/.gitignore":  "secret\n",
		"nested/in":          "1",
		"nested/secret":      "1",
		"ignored/x":          "1",
		"ignored/repo/x":     "1",
		"sub/module":         "1",
		"nested/deeper/file": "1",
	}, Options{List: list})
	dir := tree.Dir()
	treetest.Git(t, dir, "init", "-q")
	for _, nested := range []string{"nested", "nested/deeper", "ignored/repo", "sub"} {
		treetest.Git(t, filepath.Join(dir, nested), "init", "-q")
	}
	treetest.Git(t, filepath.Join(dir, "sub"), "add", ".")
	treetest.Git(t, filepath.Join(dir, "sub"), "commit", "-q", "-m", "x")
	treetest.Git(t, dir, "add", ".gitignore", "tracked", "gone", "dir/file", "sub")
	treetest.Put(t, dir, "new", "1")
	treetest.Put(t, dir, "a.o", "1")
	treetest.Put(t, dir, "outside/file", "1")
	if err := errors.Join(os.Remove(filepath.Join(dir, "gone")), os.RemoveAll(filepath.Join(dir, "dir"))); err != nil {
		t.Fatal(err)
	}
	// dir/file is still tracked but now behind a symlink.
	treetest.Put(t, dir, "dir", "->outside")
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `.gitignore file 13
dir symlink 0 -> outside untracked
nested/.gitignore file 7 untracked
nested/deeper/file file 1 untracked
nested/in file 1 untracked
new file 1 untracked
outside/file file 1 untracked
sub/module file 1
tracked file 1
`
	if diff := cmp.Diff(want, summary(files)); diff != "" {
		t.Error(diff)
	}
}

func TestFilesTrustNoLister(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", ".git/x": "1", "d/e": "1"}, Options{
		List: func(context.Context, string) (Listing, error) {
			return Listing{Paths: []string{"a", "a", "./a", "../outside", "/etc/passwd", "", ".", "./", ".git/x", "d/../a", "d/"}}, nil
		},
	})
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a file 1\nd/e file 1\n", summary(files)); diff != "" {
		t.Error(diff)
	}
}

func TestFilesErrors(t *testing.T) {
	broken := errors.New("git is broken")
	tree := newTree(t, map[string]string{"a": "1"}, Options{
		List: func(context.Context, string) (Listing, error) { return Listing{}, broken },
	})
	if _, err := tree.Files(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Files = %v, want the lister's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newTree(t, map[string]string{"a": "1"}, Options{}).Files(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Files of a canceled context = %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nothing"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing directory = %v", err)
	}
}

func TestNamesThatAreNotUTF8(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this file system refuses such names")
	}
	name := "b\xff\n\"x"
	for _, o := range []Options{{}, {List: gitLister(t)}} {
		tree := newTree(t, map[string]string{name: "1", "a": "1"}, o)
		treetest.Git(t, tree.Dir(), "init", "-q")
		m, err := tree.Manifest(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(m) != 2 || m[1].Path != name || m[1].Digest != Digest([]byte("1")) {
			t.Errorf("manifest %+v", m)
		}
		if _, _, err := tree.Read(name); err != nil {
			t.Error(err)
		}
	}
}

func TestRead(t *testing.T) {
	tree := newTree(t, map[string]string{
		"a": "hello", "d/e": "x", "link": "->a", "dirlink": "->d", "dangling": "->nothing",
		"big": strings.Repeat("x", 101), ".git/config": "x", ".hone/j": "x", ".config/hone.toml": "x",
	}, Options{MaxFile: 100})
	content, image, err := tree.Read("./a")
	want := Image{Digest: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", Size: 5, Mode: 0o644}
	if err != nil || string(content) != "hello" || image != want {
		t.Errorf("Read = %q, %+v, %v", content, image, err)
	}
	if _, _, err := tree.Read(".config/hone.toml"); err != nil {
		t.Errorf("the configuration must be readable: %v", err)
	}
	for _, path := range []string{"link", "dirlink/e", "dangling", "d", "a/x", ".git/config", ".hone/j", "../a", ""} {
		var refused *treepath.RefusedError
		if _, _, err := tree.Read(path); !errors.As(err, &refused) {
			t.Errorf("Read(%q) = %v, want a refusal", path, err)
		}
	}
	for _, path := range []string{"nothing", "no/thing"} {
		if _, _, err := tree.Read(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Read(%q) = %v", path, err)
		}
	}
	var large *TooLargeError
	if _, _, err := tree.Read("big"); !errors.As(err, &large) || large.Size != 101 || large.Max != 100 {
		t.Errorf("Read of a large file = %v", err)
	}
}

// A copy lists what the tree lists, although it is not a repository itself.
func TestOpenCopy(t *testing.T) {
	tree := newTree(t, map[string]string{".gitignore": "ignored\n", "ignored": "1", "tracked": "1",
		"nested/.gitignore": "secret\n", "nested/secret": "1", "nested/in": "1"}, Options{List: gitLister(t)})
	for _, repository := range []string{".", "nested"} {
		treetest.Git(t, filepath.Join(tree.Dir(), repository), "init", "-q")
	}
	dir := t.TempDir()
	if err := errors.Join(os.CopyFS(dir, os.DirFS(tree.Dir())), os.RemoveAll(filepath.Join(dir, ".git"))); err != nil {
		t.Fatal(err)
	}
	copied, err := tree.OpenCopy(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	treetest.Put(t, dir, "tracked", "of the copy")
	files, err := copied.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `.gitignore file 8 untracked
nested/.gitignore file 7 untracked
nested/in file 1 untracked
tracked file 11 untracked
`
	if diff := cmp.Diff(want, summary(files)); diff != "" {
		t.Error(diff)
	}
}
