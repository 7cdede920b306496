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
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
)

// objects holds contents by digest.
type objects map[string]string

func (s objects) put(r io.Reader) (string, int64, error) {
	content, err := io.ReadAll(r)
	digest := Digest(content)
	s[digest] = string(content)
	return digest, int64(len(content)), err
}

// open is the function that Apply gets contents from.
func (s objects) open(digest string) (io.ReadCloser, error) {
	content, ok := s[digest]
	if !ok {
		return nil, fmt.Errorf("object %.8s: %w", digest, fs.ErrNotExist)
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// storeAll stores the contents of a tree and returns its manifest.
func (s objects) storeAll(t testing.TB, tree *Tree) Manifest {
	t.Helper()
	m, err := tree.Store(t.Context(), manifest(t, tree, nil), nil, s.put)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// changesBetween returns the list that turns one state into another.
func changesBetween(from, to Manifest) []Delta {
	var list []Delta
	for _, d := range from.Diff(to) {
		list = append(list, Delta{Path: d.Path, After: d.After, Before: d.Before})
	}
	return list
}

// rewrite replaces the contents of a directory with these files.
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
		treetest.Put(t, dir, name, content)
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
func twoStates(t testing.TB) (tree *Tree, s objects, one, two Manifest) {
	t.Helper()
	first, second := states()
	tree, s = newTree(t, second, Options{}), objects{}
	treetest.Chmod(t, tree.Dir(), "same", 0o700)
	two = s.storeAll(t, tree)
	rewrite(t, tree.Dir(), first)
	one = s.storeAll(t, tree)
	return tree, s, one, two
}

// checkRestored fails unless the tree is in the wanted state, without extra
// directories and without temporary files.
func checkRestored(t testing.TB, tree *Tree, want Manifest, files map[string]string) {
	t.Helper()
	if d := manifest(t, tree, nil).Diff(want); len(d) > 0 {
		t.Errorf("the tree differs: %+v", d)
	}
	all := map[string]string{}
	for path, content := range files {
		all[path] = content
		for dir := treepath.Parent(path); dir != ""; dir = treepath.Parent(dir) {
			all[dir+"/"] = ""
		}
	}
	if diff := cmp.Diff(all, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Errorf("the directory differs:\n%s", diff)
	}
}

func TestApply(t *testing.T) {
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
			changed, err := tree.Apply(t.Context(), list, s.open)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(paths, changed); diff != "" {
				t.Error(diff)
			}
			checkRestored(t, tree, step.to, step.files)
			if changed, err := tree.Apply(t.Context(), list, s.open); err != nil || len(changed) > 0 {
				t.Errorf("again: changed %q, %v", changed, err)
			}
			checkRestored(t, tree, step.to, step.files)
		}
	}
}

// entry returns the state of a file with these contents.
func (s objects) entry(content string) Entry {
	digest, size, _ := s.put(strings.NewReader(content))
	return Entry{Kind: Regular, Mode: 0o644, Size: size, Digest: digest}
}

func TestApplyConflicts(t *testing.T) {
	s := objects{}
	old, want := s.entry("old"), s.entry("want")
	files := map[string]string{
		"changed": "somebody's", "link": "->elsewhere", "mode": "old",
		"dir/mine": "ignored", "dir/listed": "old", "repo/.git/HEAD": "x", "repo/f": "old", "behind": "->dir", "file": "somebody's",
		"wanted": "want", "from": "old",
	}
	tree := newTree(t, files, Options{})
	treetest.Chmod(t, tree.Dir(), "mode", 0o600)
	list := []Delta{
		{Path: "changed", Before: old, After: want},
		{Path: "link", Before: Entry{Kind: Symlink, Target: "there"}},
		{Path: "mode", Before: old, After: want},
		{Path: "dir", After: want},
		{Path: "dir/listed", Before: old},
		{Path: "repo", After: want},
		{Path: "repo/f", Before: old},
		{Path: "behind/x", After: want},
		{Path: "file/x", After: want},
		{Path: "missing", Before: old, After: want},
		{Path: "other", After: Entry{Kind: Other}},
		{Path: "wanted", Before: old, After: want},
		{Path: "from", Before: old, After: want},
		{Path: "behind/y"}, {Path: "gone/y", Before: old},
	}
	before := treetest.Contents(t, tree.Dir())
	changed, err := tree.Apply(t.Context(), list, s.open)
	var conflict *ConflictError
	paths := []string{"behind/x", "changed", "dir", "file/x", "link", "missing", "mode", "other", "repo"}
	if !errors.As(err, &conflict) || len(changed) > 0 {
		t.Fatalf("Apply = %q, %v", changed, err)
	}
	if diff := cmp.Diff(paths, conflict.Paths); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestApplyRefuses(t *testing.T) {
	s := objects{}
	want := s.entry("want")
	tree := newTree(t, map[string]string{"a": "a", "d/.git/config": "x", ".hone/x": "x"}, Options{})
	before := treetest.Contents(t, tree.Dir())
	wrong := want
	wrong.Digest = Digest([]byte("other"))
	s[wrong.Digest] = "not other"
	unkept := want
	unkept.Digest = Digest([]byte("unkept"))
	for name, list := range map[string][]Delta{
		"git":       {{Path: "d/.git/config", After: want}},
		"git dir":   {{Path: "d/.GIT"}},
		"hone":      {{Path: ".hone/x"}},
		"temporary": {{Path: "d/.hone~12", After: want}},
		"settings":  {{Path: ".Config/hone.toml", After: want, Edit: true}},
		"up":        {{Path: "../x", After: want}},
		"absolute":  {{Path: "/x", After: want}},
		"root":      {{Path: ".", After: want}},
		"empty":     {{Path: "", After: want}},
		"unclean":   {{Path: "d//x", After: want}},
		"nul":       {{Path: "x\x00", After: want}},
		"twice":     {{Path: "x", After: want}, {Path: "x"}},
		"below":     {{Path: "x", After: want}, {Path: "x/y/z", After: want}},
		"unread":    {{Path: "x", After: Entry{Kind: Regular, Mode: 0o644, Note: "permission denied"}}},
		"wrong":     {{Path: "x", After: want}, {Path: "y/z/a", After: wrong}, {Path: "z"}},
		"unkept":    {{Path: "x", After: want}, {Path: "y/z/a", After: unkept}, {Path: "z"}},
	} {
		if changed, err := tree.Apply(t.Context(), list, s.open); err == nil || len(changed) > 0 {
			t.Errorf("%s: changed %q", name, changed)
		}
		if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestApplyCanceled(t *testing.T) {
	tree, s, one, two := twoStates(t)
	for _, at := range []string{"write deep", "write text"} {
		ctx, cancel := context.WithCancel(t.Context())
		tree.fault = func(step string) error {
			if step == at {
				cancel()
			}
			return nil
		}
		if _, err := tree.Apply(ctx, changesBetween(one, two), s.open); !errors.Is(err, context.Canceled) {
			t.Errorf("Apply = %v", err)
		}
		first, _ := states()
		checkRestored(t, tree, one, first)
	}
}

// If only the permission bits differ, the file itself is changed, so its other
// names change too.
func TestApplyBits(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a": "1"}, Options{}), objects{}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Link(filepath.Join(tree.Dir(), "a"), outside); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	want := s.storeAll(t, tree)
	want[0].Mode = 0o440
	list := []Delta{{Path: "a", Before: s.storeAll(t, tree)[0], After: want[0]}}
	s = nil // no contents are needed
	changed, err := tree.Apply(t.Context(), list, s.open)
	if err != nil || len(changed) != 1 {
		t.Fatalf("Apply = %q, %v", changed, err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o440 && runtime.GOOS != "windows" {
		t.Errorf("the file was replaced: %v, %v", info.Mode(), err)
	}
}

// Directories that were already empty stay, and so do those that contain paths
// not in the list.
func TestApplyRemovesEmptiedDirectories(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a/b/c/gone": "1", "d/e/gone": "1", "d/mine": "1", "empty/": "", "r/.git/HEAD": "h", "r/gone": "1"}, Options{}), objects{}
	one := s.entry("1")
	list := []Delta{{Path: "a/b/c/gone", Before: one}, {Path: "d/e/gone", Before: one}, {Path: "r/gone", Before: one}}
	if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d/": "", "d/mine": "1", "empty/": "", "r/": "", "r/.git/": "", "r/.git/HEAD": "h"}
	if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// A directory that contains only empty directories makes room for a file. A
// roll-back creates all of them again.
func TestApplyEmptyDirectoriesInTheWay(t *testing.T) {
	tree, s := newTree(t, map[string]string{"d/e/f/": "", "d/g/": "", "d/x": "1", "a": "1"}, Options{}), objects{}
	list := []Delta{{Path: "d", After: s.entry("file")}, {Path: "d/x", Before: s.entry("1")}, {Path: "a", Before: s.entry("1")}}
	if runtime.GOOS != "windows" {
		treetest.Chmod(t, tree.Dir(), "d/e/f", 0o710)
	}
	before := treetest.Contents(t, tree.Dir())
	tree.fault = func(step string) error {
		if step == "placed" {
			return errBroken
		}
		return nil
	}
	if _, err := tree.Apply(t.Context(), list, s.open); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(tree.Dir(), "d/e/f")); err != nil || info.Mode().Perm() != 0o710 && runtime.GOOS != "windows" {
		t.Errorf("d/e/f has mode %v, %v", info.Mode(), err)
	}
	tree.fault = nil
	if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"d": "file"}, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// In a scratch tree nothing is synced; otherwise every changed directory is.
func TestApplyInScratchTree(t *testing.T) {
	for _, scratch := range []bool{false, true} {
		tree, s := newTree(t, map[string]string{"a": "1"}, Options{Scratch: scratch}), objects{}
		syncs := 0
		tree.fault = func(step string) error {
			if strings.HasPrefix(step, "sync") {
				syncs++
			}
			return nil
		}
		list := []Delta{{Path: "a", Before: s.entry("1"), After: s.entry("2")}, {Path: "d/e/f", After: s.entry("3")}}
		if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
			t.Fatal(err)
		}
		checkRestored(t, tree, manifest(t, tree, nil), map[string]string{"a": "2", "d/e/f": "3"})
		if (syncs == 0) != scratch {
			t.Errorf("scratch %v: %d syncs", scratch, syncs)
		}
	}
}

func TestApplyNamesThatAreNotUTF8(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this file system refuses such names")
	}
	first := map[string]string{"b\xff\n/\xfe": "1", "l\xfd": "->b\xff", `x\..\.git`: "1", "\xc3\x28": "1"}
	tree, s := newTree(t, first, Options{}), objects{}
	one := s.storeAll(t, tree)
	rewrite(t, tree.Dir(), map[string]string{"b\xff\n": "2", "l\xfd": "2"})
	two := s.storeAll(t, tree)
	if _, err := tree.Apply(t.Context(), changesBetween(two, one), s.open); err != nil {
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

func TestApplyLargeFile(t *testing.T) {
	treetest.InMemory(t)
	tree := newTree(t, map[string]string{"large": ""}, Options{MaxFile: 10})
	tree.ReadUpTo(0)
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
	_, err := tree.Apply(t.Context(), changesBetween(two, one), open)
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

// A file that a command made 1 TB large is replaced or removed, but not read. It is not
// replaced if its size or time is not as expected.
func TestApplyInPlaceOfHugeFile(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a": "old", "new": ""}, Options{}), objects{}
	want := s.entry("old")
	for _, name := range []string{"a", "new"} {
		if err := os.Truncate(filepath.Join(tree.Dir(), name), 1<<40); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
	}
	m := manifest(t, tree, nil)
	list := []Delta{{Path: "a", After: want, Before: m[0]}, {Path: "new", Before: m[1]}}
	at := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(filepath.Join(tree.Dir(), "a"), at, at); err != nil {
		t.Fatal(err)
	}
	var conflict *ConflictError
	if _, err := tree.Apply(t.Context(), list, s.open); !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, []string{"a"}) {
		t.Fatalf("with another time: %v", err)
	}
	list[0].Before = manifest(t, tree, nil)[0]
	if changed, err := tree.Apply(t.Context(), list, s.open); err != nil || len(changed) != 2 {
		t.Fatal(changed, err)
	}
	if left := treetest.Contents(t, tree.Dir()); len(left) != 1 || !strings.Contains(left["a"], "old") {
		t.Errorf("left %v", left)
	}
}

func BenchmarkApply(b *testing.B) {
	tree, err := Open(treetest.ManyFiles(b, 50_000), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	m := manifest(b, tree, nil)
	s := objects{}
	var there, back []Delta
	for i := 0; i < len(m); i += len(m) / 100 {
		content := bytes.Repeat([]byte("x"), 2000)
		old, _, err := tree.Read(m[i].Path)
		if err != nil {
			b.Fatal(err)
		}
		was, want := s.entry(string(old)), s.entry(string(content))
		there = append(there, Delta{Path: m[i].Path, After: want, Before: was})
		back = append(back, Delta{Path: m[i].Path, After: was, Before: want})
	}
	for b.Loop() {
		if _, err := tree.Apply(b.Context(), there, s.open); err != nil {
			b.Fatal(err)
		}
		there, back = back, there
	}
}
