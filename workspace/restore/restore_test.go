package restore

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

	"hone/workspace"
	"hone/workspace/internal/nofollow"
	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
)

// testTree is a tree whose steps can fail.
type testTree struct {
	*workspace.Tree
	fault func(step string) error
}

func newTree(t testing.TB, files map[string]string) *testTree {
	t.Helper()
	return openTree(t, treetest.Dir(t, files), workspace.Options{})
}

func openTree(t testing.TB, dir string, o workspace.Options) *testTree {
	t.Helper()
	tree, err := workspace.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return &testTree{Tree: tree}
}

// Restore calls Paths with the tree's fault.
func (t *testTree) Restore(ctx context.Context, list []Target, open func(digest string) (io.ReadCloser, error)) ([]string, error) {
	r := &restorer{tree: t.Tree, open: open, fault: t.fault}
	return r.restore(ctx, list)
}

func manifest(t testing.TB, tree *workspace.Tree) workspace.Manifest {
	t.Helper()
	m, err := tree.Manifest(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// objects holds contents by digest.
type objects map[string]string

func (s objects) put(r io.Reader) (string, int64, error) {
	content, err := io.ReadAll(r)
	digest := workspace.Digest(content)
	s[digest] = string(content)
	return digest, int64(len(content)), err
}

// open is the function that Paths gets contents from.
func (s objects) open(digest string) (io.ReadCloser, error) {
	content, ok := s[digest]
	if !ok {
		return nil, fmt.Errorf("object %.8s: %w", digest, fs.ErrNotExist)
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// storeAll stores the contents of a tree and returns its manifest.
func (s objects) storeAll(t testing.TB, tree *testTree) workspace.Manifest {
	t.Helper()
	m, err := tree.Store(t.Context(), manifest(t, tree.Tree), nil, s.put)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// changesBetween returns the list that turns one state into another.
func changesBetween(from, to workspace.Manifest) []Target {
	var list []Target
	for _, d := range from.Diff(to) {
		list = append(list, Target{Path: d.Path, Want: d.After, From: []workspace.Entry{d.Before}})
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
func twoStates(t testing.TB) (tree *testTree, s objects, one, two workspace.Manifest) {
	t.Helper()
	first, second := states()
	tree, s = newTree(t, second), objects{}
	treetest.Chmod(t, tree.Dir(), "same", 0o700)
	two = s.storeAll(t, tree)
	rewrite(t, tree.Dir(), first)
	one = s.storeAll(t, tree)
	return tree, s, one, two
}

// checkRestored fails unless the tree is in the wanted state, without extra
// directories and without temporary files.
func checkRestored(t testing.TB, tree *testTree, want workspace.Manifest, files map[string]string) {
	t.Helper()
	if d := manifest(t, tree.Tree).Diff(want); len(d) > 0 {
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

func TestRestore(t *testing.T) {
	first, second := states()
	tree, s, one, two := twoStates(t)
	for range 2 {
		for _, step := range []struct {
			from, to workspace.Manifest
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
func (s objects) entry(content string) workspace.Entry {
	digest, size, _ := s.put(strings.NewReader(content))
	return workspace.Entry{Kind: workspace.Regular, Mode: 0o644, Size: size, Digest: digest}
}

func TestRestoreConflicts(t *testing.T) {
	s := objects{}
	old, want := s.entry("old"), s.entry("want")
	s.entry("kept")
	files := map[string]string{
		"changed": "somebody's", "unkept": "nobody keeps this", "kept": "kept", "link": "->elsewhere", "mode": "old",
		"dir/mine": "ignored", "dir/listed": "old", "repo/.git/HEAD": "x", "repo/f": "old", "behind": "->dir", "file": "somebody's",
		"wanted": "want", "from": "old",
	}
	tree := newTree(t, files)
	treetest.Chmod(t, tree.Dir(), "mode", 0o600)
	list := []Target{
		{Path: "changed", Want: want, From: []workspace.Entry{old, {}}},
		{Path: "unkept", Want: want},
		{Path: "kept", Want: want},
		{Path: "link", From: []workspace.Entry{{Kind: workspace.Symlink, Target: "there"}}},
		{Path: "mode", Want: want, From: []workspace.Entry{old}},
		{Path: "dir", Want: want, From: []workspace.Entry{{}}},
		{Path: "dir/listed", From: []workspace.Entry{old}},
		{Path: "repo", Want: want, From: []workspace.Entry{{}}},
		{Path: "repo/f", From: []workspace.Entry{old}},
		{Path: "behind/x", Want: want, From: []workspace.Entry{{}}},
		{Path: "file/x", Want: want, From: []workspace.Entry{{}}},
		{Path: "missing", Want: want, From: []workspace.Entry{old}},
		{Path: "other", Want: workspace.Entry{Kind: workspace.Other}},
		{Path: "wanted", Want: want, From: []workspace.Entry{}},
		{Path: "from", Want: want, From: []workspace.Entry{{}, old}},
		{Path: "behind/y"}, {Path: "gone/y", From: []workspace.Entry{old}},
	}
	before := treetest.Contents(t, tree.Dir())
	changed, err := tree.Restore(t.Context(), list, s.open)
	var conflict *workspace.ConflictError
	paths := []string{"behind/x", "changed", "dir", "file/x", "link", "missing", "mode", "other", "repo", "unkept"}
	if !errors.As(err, &conflict) || len(changed) > 0 {
		t.Fatalf("Restore = %q, %v", changed, err)
	}
	if diff := cmp.Diff(paths, conflict.Paths); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestRestoreRefuses(t *testing.T) {
	s := objects{}
	want := s.entry("want")
	tree := newTree(t, map[string]string{"a": "a", "d/.git/config": "x", ".hone/x": "x"})
	before := treetest.Contents(t, tree.Dir())
	wrong := want
	wrong.Digest = workspace.Digest([]byte("other"))
	s[wrong.Digest] = "not other"
	unkept := want
	unkept.Digest = workspace.Digest([]byte("unkept"))
	for name, list := range map[string][]Target{
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
		"unread":    {{Path: "x", Want: workspace.Entry{Kind: workspace.Regular, Mode: 0o644, Note: "permission denied"}}},
		"wrong":     {{Path: "x", Want: want}, {Path: "y/z/a", Want: wrong}, {Path: "z"}},
		"unkept":    {{Path: "x", Want: want}, {Path: "y/z/a", Want: unkept}, {Path: "z"}},
	} {
		if changed, err := tree.Restore(t.Context(), list, s.open); err == nil || len(changed) > 0 {
			t.Errorf("%s: changed %q", name, changed)
		}
		if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestRestoreCanceled(t *testing.T) {
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
	tree, s := newTree(t, map[string]string{"a": "1"}), objects{}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Link(filepath.Join(tree.Dir(), "a"), outside); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	want := s.storeAll(t, tree)
	want[0].Mode = 0o440
	list := []Target{{Path: "a", Want: want[0]}}
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
	tree, s := newTree(t, map[string]string{"a/b/c/gone": "1", "d/e/gone": "1", "d/mine": "1", "empty/": "", "r/.git/HEAD": "h", "r/gone": "1"}), objects{}
	one := s.entry("1")
	list := []Target{{Path: "a/b/c/gone", From: []workspace.Entry{one}}, {Path: "d/e/gone", From: []workspace.Entry{one}}, {Path: "r/gone", From: []workspace.Entry{one}}}
	if _, err := tree.Restore(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d/": "", "d/mine": "1", "empty/": "", "r/": "", "r/.git/": "", "r/.git/HEAD": "h"}
	if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// A directory that contains only empty directories makes room for a file. A
// roll-back creates all of them again.
func TestRestoreEmptyDirectoriesInTheWay(t *testing.T) {
	tree, s := newTree(t, map[string]string{"d/e/f/": "", "d/g/": "", "d/x": "1", "a": "1"}), objects{}
	list := []Target{{Path: "d", Want: s.entry("file"), From: []workspace.Entry{{}}}, {Path: "d/x"}, {Path: "a"}}
	s.entry("1")
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
	if _, err := tree.Restore(t.Context(), list, s.open); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(tree.Dir(), "d/e/f")); err != nil || info.Mode().Perm() != 0o710 && runtime.GOOS != "windows" {
		t.Errorf("d/e/f has mode %v, %v", info.Mode(), err)
	}
	tree.fault = nil
	if _, err := tree.Restore(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"d": "file"}, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// Paths can work in more directories than may be open at once.
func TestRestoreManyDirectories(t *testing.T) {
	treetest.InMemory(t)
	tree, s := newTree(t, nil), objects{}
	files := map[string]string{}
	for i := range 2*nofollow.MaxOpen + 50 {
		files[fmt.Sprintf("d%d/e/f", i)] = fmt.Sprint(i % 7)
	}
	for name, content := range files {
		treetest.Put(t, tree.Dir(), name, content)
	}
	one := s.storeAll(t, tree)
	for _, step := range [][2]workspace.Manifest{{one, nil}, {nil, one}} {
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
		if d := manifest(t, tree.Tree).Diff(step[0]); len(d) > 0 {
			t.Fatalf("%d paths were not restored", len(d))
		}
		if changed, err := tree.Restore(t.Context(), list, s.open); err != nil || len(changed) != len(files) {
			t.Fatalf("changed %d paths: %v", len(changed), err)
		}
	}
	checkRestored(t, tree, one, files)
}

// In a scratch tree nothing is synced; otherwise every changed directory is.
func TestRestoreInScratchTree(t *testing.T) {
	for _, scratch := range []bool{false, true} {
		tree, s := openTree(t, treetest.Dir(t, map[string]string{"a": "1"}), workspace.Options{Scratch: scratch}), objects{}
		syncs := 0
		tree.fault = func(step string) error {
			if strings.HasPrefix(step, "sync") {
				syncs++
			}
			return nil
		}
		s.entry("1")
		list := []Target{{Path: "a", Want: s.entry("2")}, {Path: "d/e/f", Want: s.entry("3")}}
		if _, err := tree.Restore(t.Context(), list, s.open); err != nil {
			t.Fatal(err)
		}
		checkRestored(t, tree, manifest(t, tree.Tree), map[string]string{"a": "2", "d/e/f": "3"})
		if (syncs == 0) != scratch {
			t.Errorf("scratch %v: %d syncs", scratch, syncs)
		}
	}
}

func TestRestoreNamesThatAreNotUTF8(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this file system refuses such names")
	}
	first := map[string]string{"b\xff\n/\xfe": "1", "l\xfd": "->b\xff", `x\..\.git`: "1", "\xc3\x28": "1"}
	tree, s := newTree(t, first), objects{}
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
	treetest.InMemory(t)
	tree := openTree(t, treetest.Dir(t, map[string]string{"large": ""}), workspace.Options{MaxFile: 10})
	tree.ReadUpTo(0)
	const size = 64 << 20
	file := filepath.Join(tree.Dir(), "large")
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	one := manifest(t, tree.Tree)
	if err := os.Truncate(file, size+1); err != nil {
		t.Fatal(err)
	}
	two := manifest(t, tree.Tree)
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
	if d := manifest(t, tree.Tree).Diff(one); len(d) > 0 {
		t.Errorf("%+v", d)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > size/16 {
		t.Errorf("%d bytes were allocated for a file of %d", used, size)
	}
}

// A file that a command made 1 TB large is replaced or removed, but not read. It is not
// replaced if its size or time is not as expected.
func TestRestoreInPlaceOfHugeFile(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a": "old", "new": ""}), objects{}
	want := s.entry("old")
	for _, name := range []string{"a", "new"} {
		if err := os.Truncate(filepath.Join(tree.Dir(), name), 1<<40); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
	}
	m := manifest(t, tree.Tree)
	list := []Target{{Path: "a", Want: want, From: []workspace.Entry{m[0]}}, {Path: "new", From: []workspace.Entry{m[1]}}}
	at := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(filepath.Join(tree.Dir(), "a"), at, at); err != nil {
		t.Fatal(err)
	}
	var conflict *workspace.ConflictError
	if _, err := tree.Restore(t.Context(), list, s.open); !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, []string{"a"}) {
		t.Fatalf("with another time: %v", err)
	}
	list[0].From = []workspace.Entry{manifest(t, tree.Tree)[0]}
	if changed, err := tree.Restore(t.Context(), list, s.open); err != nil || len(changed) != 2 {
		t.Fatal(changed, err)
	}
	if left := treetest.Contents(t, tree.Dir()); len(left) != 1 || !strings.Contains(left["a"], "old") {
		t.Errorf("left %v", left)
	}
}

// Apply and Paths use the same names for temporary files, so each removes
// what the other left for the same contents.
func TestApplyRemovesLeftoversOfRestore(t *testing.T) {
	tree, s := newTree(t, map[string]string{"a": "old"}), objects{}
	list := []Target{{Path: "a", Want: s.entry("new"), From: []workspace.Entry{s.entry("old")}}}
	if at := crash(tree, list, s, func(step string, _ int) bool { return step == "staged" }); at == "" {
		t.Fatal("no crash")
	}
	if len(treetest.Contents(t, tree.Dir())) != 2 {
		t.Fatal("the crash left nothing")
	}
	ch := workspace.Change{Edits: []workspace.Edit{{Path: "a", Content: []byte("new")}}}
	verdicts, err := tree.Review(ch, workspace.Rules{})
	if err == nil {
		err = tree.Apply(t.Context(), ch, verdicts)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "new"}, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkRestore(b *testing.B) {
	tree := openTree(b, treetest.ManyFiles(b, 50_000), workspace.Options{})
	m := manifest(b, tree.Tree)
	s := objects{}
	var there, back []Target
	for i := 0; i < len(m); i += len(m) / 100 {
		content := bytes.Repeat([]byte("x"), 2000)
		old, _, err := tree.Read(m[i].Path)
		if err != nil {
			b.Fatal(err)
		}
		was, want := s.entry(string(old)), s.entry(string(content))
		there = append(there, Target{Path: m[i].Path, Want: want, From: []workspace.Entry{was}})
		back = append(back, Target{Path: m[i].Path, Want: was, From: []workspace.Entry{want}})
	}
	for b.Loop() {
		if _, err := tree.Restore(b.Context(), there, s.open); err != nil {
			b.Fatal(err)
		}
		there, back = back, there
	}
}
