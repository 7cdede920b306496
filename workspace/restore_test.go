package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// open is the function that Restore gets contents from.
func (s store) open(digest string) (io.ReadCloser, error) {
	content, ok := s[digest]
	if !ok {
		return nil, fmt.Errorf("object %.8s: %w", digest, fs.ErrNotExist)
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// storeAll stores the contents of a tree and returns its manifest.
func (s store) storeAll(t testing.TB, tree *Tree) Manifest {
	t.Helper()
	m, err := tree.Keep(t.Context(), manifest(t, tree, nil), nil, s.keep)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// changesBetween returns the list that turns one state into another.
func changesBetween(from, to Manifest) []Restoration {
	var list []Restoration
	for _, d := range from.Diff(to) {
		list = append(list, Restoration{Path: d.Path, Want: d.After, From: []Entry{d.Before}})
	}
	return list
}

// rewrite makes a directory contain exactly these files.
func rewrite(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		put(t, dir, name, content)
	}
}

// states returns two states of a tree between which every kind of path becomes
// every other.
func states() (one, two map[string]string) {
	one = map[string]string{
		"same": "s", "text": "one", "gone": "one", "d/e/gone": "one", "d/stays": "s",
		"file-link": "one", "link-file": "->text", "link-link": "->one",
		"file-dir": "one", "dir-file/a": "one", "dir-file/b/c": "one", "dir-file/b/l": "->x",
		"link-dir": "->d", "dir-link/a": "one", "dir-link/b/c": "one",
		"deep/er/f": "one", "deep/er/g": "->f", "deep/most/x/y/z": "one",
	}
	two = map[string]string{
		"same": "s", "text": "two", "new": "two", "n/e/w": "two", "n/l": "->w", "d/stays": "s",
		"file-link": "->text", "link-file": "two", "link-link": "->two",
		"file-dir/a": "two", "file-dir/b/c": "two", "dir-file": "two",
		"link-dir/a": "two", "dir-link": "->d",
		"deep": "two",
	}
	return one, two
}

// twoStates returns a tree in its first state, and both states.
func twoStates(t testing.TB) (tree *Tree, s store, one, two Manifest) {
	t.Helper()
	first, second := states()
	tree, s = newTree(t, second, Options{}), store{}
	chmod(t, tree, "same", 0o700)
	two = s.storeAll(t, tree)
	rewrite(t, tree.Dir(), first)
	one = s.storeAll(t, tree)
	return tree, s, one, two
}

// checkRestored fails unless the tree is in a state, without extra directories
// and without temporary files.
func checkRestored(t testing.TB, tree *Tree, want Manifest, files map[string]string) {
	t.Helper()
	if d := manifest(t, tree, nil).Diff(want); len(d) > 0 {
		t.Errorf("the tree differs: %+v", d)
	}
	all := map[string]string{}
	for path, content := range files {
		all[path] = content
		for dir := parentOf(path); dir != ""; dir = parentOf(dir) {
			all[dir+"/"] = ""
		}
	}
	if diff := cmp.Diff(all, contents(t, tree.Dir())); diff != "" {
		t.Errorf("the directory differs:\n%s", diff)
	}
}

func TestRestore(t *testing.T) {
	first, second := states()
	tree, s, one, two := twoStates(t)
	for range 2 {
		for _, step := range []struct {
			from, to Manifest
			files    map[string]string
		}{{one, two, second}, {two, one, first}} {
			list := changesBetween(step.from, step.to)
			var paths []string
			for _, l := range list {
				paths = append(paths, l.Path)
			}
			slices.Reverse(list) // the order does not matter
			changed, err := tree.Restore(t.Context(), list, s.open)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(paths, changed); diff != "" {
				t.Error(diff)
			}
			checkRestored(t, tree, step.to, step.files)
			if changed, err := tree.Restore(t.Context(), list, s.open); err != nil || len(changed) > 0 {
				t.Errorf("again: changed %q, %v", changed, err)
			}
			checkRestored(t, tree, step.to, step.files)
		}
	}
}

// entry returns the state of a file with these contents.
func (s store) entry(content string) Entry {
	digest, size, _ := s.keep(strings.NewReader(content))
	return Entry{Kind: Regular, Mode: 0o644, Size: size, Digest: digest}
}

func TestRestoreConflicts(t *testing.T) {
	s := store{}
	old, want := s.entry("old"), s.entry("want")
	s.entry("kept")
	files := map[string]string{
		"changed": "somebody's", "unkept": "nobody keeps this", "kept": "kept", "link": "->elsewhere", "mode": "old",
		"dir/mine": "ignored", "dir/listed": "old", "repo/.git/HEAD": "x", "repo/f": "old", "behind": "->dir", "file": "somebody's",
		"wanted": "want", "from": "old",
	}
	tree := newTree(t, files, Options{})
	chmod(t, tree, "mode", 0o600)
	list := []Restoration{
		{Path: "changed", Want: want, From: []Entry{old, {}}},
		{Path: "unkept", Want: want},
		{Path: "kept", Want: want},
		{Path: "link", From: []Entry{{Kind: Symlink, Target: "there"}}},
		{Path: "mode", Want: want, From: []Entry{old}},
		{Path: "dir", Want: want, From: []Entry{{}}},
		{Path: "dir/listed", From: []Entry{old}},
		{Path: "repo", Want: want, From: []Entry{{}}},
		{Path: "repo/f", From: []Entry{old}},
		{Path: "behind/x", Want: want, From: []Entry{{}}},
		{Path: "file/x", Want: want, From: []Entry{{}}},
		{Path: "missing", Want: want, From: []Entry{old}},
		{Path: "other", Want: Entry{Kind: Other}},
		{Path: "wanted", Want: want, From: []Entry{}},
		{Path: "from", Want: want, From: []Entry{{}, old}},
		{Path: "behind/y"}, {Path: "gone/y", From: []Entry{old}},
	}
	before := contents(t, tree.Dir())
	changed, err := tree.Restore(t.Context(), list, s.open)
	var conflict *ConflictError
	paths := []string{"behind/x", "changed", "dir", "file/x", "link", "missing", "mode", "other", "repo", "unkept"}
	if !errors.As(err, &conflict) || len(changed) > 0 {
		t.Fatalf("Restore = %q, %v", changed, err)
	}
	if diff := cmp.Diff(paths, conflict.Paths); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestRestoreRefuses(t *testing.T) {
	s := store{}
	want := s.entry("want")
	tree := newTree(t, map[string]string{"a": "a", "d/.git/config": "x", ".hone/x": "x"}, Options{})
	before := contents(t, tree.Dir())
	wrong := want
	wrong.Digest = Digest([]byte("other"))
	s[wrong.Digest] = "not other"
	unkept := want
	unkept.Digest = Digest([]byte("unkept"))
	for name, list := range map[string][]Restoration{
		"git":       {{Path: "d/.git/config", Want: want}},
		"git dir":   {{Path: "d/.GIT"}},
		"hone":      {{Path: ".hone/x"}},
		"temporary": {{Path: "d/.hone~12", Want: want}},
		"up":        {{Path: "../x", Want: want}},
		"absolute":  {{Path: "/x", Want: want}},
		"root":      {{Path: ".", Want: want}},
		"empty":     {{Path: "", Want: want}},
		"unclean":   {{Path: "d//x", Want: want}},
		"nul":       {{Path: "x\x00", Want: want}},
		"twice":     {{Path: "x", Want: want}, {Path: "x"}},
		"below":     {{Path: "x", Want: want}, {Path: "x/y/z", Want: want}},
		"unread":    {{Path: "x", Want: Entry{Kind: Regular, Mode: 0o644, Note: "permission denied"}}},
		"wrong":     {{Path: "x", Want: want}, {Path: "y/z/a", Want: wrong}, {Path: "z"}},
		"unkept":    {{Path: "x", Want: want}, {Path: "y/z/a", Want: unkept}, {Path: "z"}},
	} {
		if changed, err := tree.Restore(t.Context(), list, s.open); err == nil || len(changed) > 0 {
			t.Errorf("%s: changed %q", name, changed)
		}
		if diff := cmp.Diff(before, contents(t, tree.Dir())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestRestoreCancelled(t *testing.T) {
	tree, s, one, two := twoStates(t)
	for _, at := range []string{"write deep", "write text"} {
		ctx, cancel := context.WithCancel(t.Context())
		tree.fault = func(step string) error {
			if step == at {
				cancel()
			}
			return nil
		}
		if _, err := tree.Restore(ctx, changesBetween(one, two), s.open); !errors.Is(err, context.Canceled) {
			t.Errorf("Restore = %v", err)
		}
		first, _ := states()
		checkRestored(t, tree, one, first)
	}
}

// If only the permission bits differ, the file itself is changed, so its other
// names change too.
func TestRestoreBits(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a": "1"}, Options{}), store{}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Link(filepath.Join(tree.Dir(), "a"), outside); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	want := s.storeAll(t, tree)
	want[0].Mode = 0o440
	list := []Restoration{{Path: "a", Want: want[0]}}
	s = nil // no contents are needed
	changed, err := tree.Restore(t.Context(), list, s.open)
	if err != nil || len(changed) != 1 {
		t.Fatalf("Restore = %q, %v", changed, err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o440 && runtime.GOOS != "windows" {
		t.Errorf("the file was replaced: %v, %v", info.Mode(), err)
	}
}

// Directories that were already empty stay, and so do those that contain paths
// not in the list.
func TestRestoreRemovesEmptiedDirectories(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a/b/c/gone": "1", "d/e/gone": "1", "d/mine": "1", "empty/": "", "r/.git/HEAD": "h", "r/gone": "1"}, Options{}), store{}
	one := s.entry("1")
	list := []Restoration{{Path: "a/b/c/gone", From: []Entry{one}}, {Path: "d/e/gone", From: []Entry{one}}, {Path: "r/gone", From: []Entry{one}}}
	if _, err := tree.Restore(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d/": "", "d/mine": "1", "empty/": "", "r/": "", "r/.git/": "", "r/.git/HEAD": "h"}
	if diff := cmp.Diff(want, contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// Empty directories inside a directory are removed with it, and come back when
// it is restored.
func TestRestoreEmptyDirectoriesInTheWay(t *testing.T) {
	tree, s := newTree(t, map[string]string{"d/e/f/": "", "d/g/": "", "d/x": "1", "a": "1"}, Options{}), store{}
	list := []Restoration{{Path: "d", Want: s.entry("file"), From: []Entry{{}}}, {Path: "d/x"}, {Path: "a"}}
	s.entry("1")
	if runtime.GOOS != "windows" {
		chmod(t, tree, "d/e/f", 0o710)
	}
	before := contents(t, tree.Dir())
	tree.fault = func(step string) error {
		if step == "placed" {
			return errBroken
		}
		return nil
	}
	if _, err := tree.Restore(t.Context(), list, s.open); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(tree.Dir(), "d/e/f")); err != nil || info.Mode().Perm() != 0o710 && runtime.GOOS != "windows" {
		t.Errorf("d/e/f has mode %v, %v", info.Mode(), err)
	}
	tree.fault = nil
	if _, err := tree.Restore(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"d": "file"}, contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// More directories than may be open at once.
func TestRestoreManyDirectories(t *testing.T) {
	inMemory(t)
	tree, s := newTree(t, nil, Options{}), store{}
	files := map[string]string{}
	for i := range 2*maxOpen + 50 {
		files[fmt.Sprintf("d%d/e/f", i)] = fmt.Sprint(i % 7)
	}
	for name, content := range files {
		put(t, tree.Dir(), name, content)
	}
	one := s.storeAll(t, tree)
	for _, step := range [][2]Manifest{{one, nil}, {nil, one}} {
		list := changesBetween(step[0], step[1])
		calls := 0
		tree.fault = func(step string) error {
			if calls++; calls == len(list) {
				return errBroken
			}
			return nil
		}
		if _, err := tree.Restore(t.Context(), list, s.open); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		tree.fault = nil
		if d := manifest(t, tree, nil).Diff(step[0]); len(d) > 0 {
			t.Fatalf("%d paths were not restored", len(d))
		}
		if changed, err := tree.Restore(t.Context(), list, s.open); err != nil || len(changed) != len(files) {
			t.Fatalf("changed %d paths: %v", len(changed), err)
		}
	}
	checkRestored(t, tree, one, files)
}

func TestRestoreNamesThatAreNotUTF8(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this file system refuses such names")
	}
	first := map[string]string{"b\xff\n/\xfe": "1", "l\xfd": "->b\xff", `x\..\.git`: "1", "\xc3\x28": "1"}
	tree, s := newTree(t, first, Options{}), store{}
	one := s.storeAll(t, tree)
	rewrite(t, tree.Dir(), map[string]string{"b\xff\n": "2", "l\xfd": "2"})
	two := s.storeAll(t, tree)
	if _, err := tree.Restore(t.Context(), changesBetween(two, one), s.open); err != nil {
		t.Fatal(err)
	}
	checkRestored(t, tree, one, first)
}

// zeros reads as a file of any size without holding it in memory.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

func TestRestoreLargeFile(t *testing.T) {
	inMemory(t)
	tree := newTree(t, map[string]string{"large": ""}, Options{MaxFile: 10})
	const size = 64 << 20
	file := filepath.Join(tree.Dir(), "large")
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	one := manifest(t, tree, nil)
	if err := os.Truncate(file, size+1); err != nil {
		t.Fatal(err)
	}
	two := manifest(t, tree, nil)
	open := func(digest string) (io.ReadCloser, error) {
		if digest != one[0].Digest {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(&zeros{size}), nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tree.Restore(t.Context(), changesBetween(two, one), open)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if d := manifest(t, tree, nil).Diff(one); len(d) > 0 {
		t.Errorf("%+v", d)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > size/16 {
		t.Errorf("%d bytes were allocated for a file of %d", used, size)
	}
}

// Apply and Restore use the same names for temporary files, so each removes
// what the other left for the same contents.
func TestApplyRemovesLeftoversOfRestore(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a": "old"}, Options{}), store{}
	list := []Restoration{{Path: "a", Want: s.entry("new"), From: []Entry{s.entry("old")}}}
	if at := crash(tree, list, s, func(step string, _ int) bool { return step == "staged" }); at == "" {
		t.Fatal("no crash")
	}
	if len(contents(t, tree.Dir())) != 2 {
		t.Fatal("the crash left nothing")
	}
	ch := Change{Edits: []Edit{write("a", "new")}}
	if err := tree.Apply(t.Context(), ch, allowedVerdicts(t, tree, ch)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "new"}, contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkRestore(b *testing.B) {
	tree, err := Open(manyFiles(b, 50_000), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	m := manifest(b, tree, nil)
	s := store{}
	var there, back []Restoration
	for i := 0; i < len(m); i += len(m) / 100 {
		content := bytes.Repeat([]byte("x"), 2000)
		old, _, err := tree.Read(m[i].Path)
		if err != nil {
			b.Fatal(err)
		}
		was, want := s.entry(string(old)), s.entry(string(content))
		there = append(there, Restoration{Path: m[i].Path, Want: want, From: []Entry{was}})
		back = append(back, Restoration{Path: m[i].Path, Want: was, From: []Entry{want}})
	}
	for b.Loop() {
		if _, err := tree.Restore(b.Context(), there, s.open); err != nil {
			b.Fatal(err)
		}
		there, back = back, there
	}
}
