package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hone/workspace/internal/treetest"
)

func manifest(t testing.TB, tree *Tree, prev Manifest) Manifest {
	t.Helper()
	m, err := tree.Manifest(t.Context(), prev)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManifest(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "d/b": "22", "link": "->nowhere", ".git/x": "x", ".hone/x": "x"}, Options{})
	treetest.Chmod(t, tree.Dir(), "d/b", 0o755)
	want := Manifest{
		{Path: "a", Kind: Regular, Mode: 0o644, Size: 1, Digest: Digest([]byte("1"))},
		{Path: "d/b", Kind: Regular, Mode: 0o755, Size: 2, Digest: Digest([]byte("22"))},
		{Path: "link", Kind: Symlink, Target: "nowhere"},
	}
	got := manifest(t, tree, nil)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		t.Error(diff)
	}
	if got.Digest() != want.Digest() {
		t.Error("the stamps are part of the digest")
	}
}

func TestManifestDigest(t *testing.T) {
	base := Manifest{{Path: "a", Kind: Regular, Mode: 0o644, Digest: Digest(nil)}, {Path: "b", Kind: Symlink, Target: "x"}}
	seen := map[string]string{base.Digest(): "base", Manifest(nil).Digest(): "nil"}
	for name, change := range map[string]func(*Entry){
		"path":   func(e *Entry) { e.Path = "a2" },
		"kind":   func(e *Entry) { e.Kind = Other },
		"mode":   func(e *Entry) { e.Mode = 0o755 },
		"digest": func(e *Entry) { e.Digest = Digest([]byte("x")) },
		"target": func(e *Entry) { e.Target = "y" },
	} {
		m := append(Manifest(nil), base...)
		change(&m[0])
		if other, ok := seen[m.Digest()]; ok {
			t.Errorf("another %s has the digest of %s", name, other)
		}
		seen[m.Digest()] = name
	}
	m := append(Manifest(nil), base...)
	m[0].Size, m[0].Note, m[0].stamp = 7, "x", stamp{1, 2, 3}
	if m.Digest() != base.Digest() {
		t.Error("size, note and stamp are part of the digest")
	}
}

// TestUntrackedIsNotEncoded: the encoding leaves out Untracked.
func TestUntrackedIsNotEncoded(t *testing.T) {
	m := Manifest{{Path: "new", Kind: Regular, Mode: 0o644, Size: 1, Digest: Digest([]byte("x")), Untracked: true}}
	back, err := DecodeManifest(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if d := back.Diff(m); len(d) > 0 || back.Digest() != m.Digest() {
		t.Errorf("%v", d)
	}
}

func TestManifestDiff(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "->1", "f": "1"}, Options{})
	before := manifest(t, tree, nil)
	if deltas := before.Diff(before); deltas != nil {
		t.Errorf("the difference of equal manifests is %v", deltas)
	}
	dir := tree.Dir()
	for _, gone := range []string{"b", "e"} {
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	treetest.Put(t, dir, "c", "2")
	treetest.Put(t, dir, "e", "->2")
	treetest.Put(t, dir, "0", "new")
	treetest.Put(t, dir, "z", "new")
	treetest.Chmod(t, tree.Dir(), "f", 0o600)
	var got []string
	for _, d := range before.Diff(manifest(t, tree, before)) {
		got = append(got, fmt.Sprint(d.Op(), " ", d.Path, " ", d.Before.Path != "", " ", d.After.Path != ""))
	}
	want := []string{"added 0 false true", "removed b true false", "changed c true true", "changed e true true", "changed f true true", "added z false true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A manifest reuses a digest of prev if and only if the stamp is equal.
func TestManifestReusesDigests(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "b": "1", "c": "1"}, Options{})
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mark := strings.Repeat("f", 64)
	prev := Manifest{}
	for _, f := range files {
		prev = append(prev, Entry{Path: f.Path, Kind: f.Kind, Mode: f.Mode, Size: f.Size, Digest: mark, stamp: f.stamp})
	}
	prev[1].stamp.modified++
	prev[2].stamp = stamp{}
	real := Digest([]byte("1"))
	got := manifest(t, tree, prev)
	for i, want := range []string{mark, real, real} {
		if got[i].Digest != want {
			t.Errorf("%s has digest %s, want %s", got[i].Path, got[i].Digest, want)
		}
		if got[i].stamp != (stamp{}) {
			t.Errorf("%s changed just now, but its stamp is trusted", got[i].Path)
		}
	}
	treetest.Put(t, tree.Dir(), "a", "22")
	if got := manifest(t, tree, prev); got[0].Digest != Digest([]byte("22")) {
		t.Error("a changed file was not read again")
	}
}

// A file of 1 TB is not read: its size and modification time tell its states apart, also in a
// copy of the tree.
func TestManifestOfHugeFile(t *testing.T) {
	const size = 1 << 40
	at := time.Unix(1_700_000_000, 123)
	huge := func(t *testing.T, size int64, at time.Time) *Tree {
		tree := newTree(t, map[string]string{"huge": "", "small": "1"}, Options{})
		name := filepath.Join(tree.Dir(), "huge")
		if err := errors.Join(os.Truncate(name, size), os.Chtimes(name, at, at)); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
		return tree
	}
	tree := huge(t, size, at)
	prev := Manifest{{Path: "huge", Kind: Regular, Mode: 0o644, Size: size, Digest: Digest(nil)}}
	if files, err := tree.Files(t.Context()); err == nil {
		prev[0].Mode, prev[0].stamp = files[0].Mode, files[0].stamp
	}
	m := manifest(t, tree, prev) // whose digest comes from a tree without a limit
	if !m[0].IsUnread() || m[1].IsUnread() || m[0].Size != size || m[0].Note != "" {
		t.Fatalf("the manifest is %+v", m)
	}
	rewritten := huge(t, size, at)
	name := filepath.Join(rewritten.Dir(), "huge")
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("x")
	if err := errors.Join(err, f.Close(), os.Chtimes(name, at, at)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		tree *Tree
		same bool
	}{
		{"copy", huge(t, size, at), true},
		{"other contents, and the time set back", rewritten, true}, // which nobody sees
		{"another size", huge(t, size+1, at), false},
		{"another time", huge(t, size, at.Add(1)), false},
	} {
		if other := manifest(t, c.tree, m); m[0].SameState(other[0]) != c.same || (m.Digest() == other.Digest()) != c.same {
			t.Errorf("%s: %+v, not %+v", c.name, other[0], m[0])
		}
	}
	if again, err := DecodeManifest(m.Encode()); err != nil || !again[0].IsUnread() || !again[0].SameState(m[0]) {
		t.Errorf("read back: %+v, %v", again, err)
	}
	put := func(r io.Reader) (string, int64, error) {
		text, err := io.ReadAll(r)
		return Digest(text), int64(len(text)), err
	}
	earlier := Manifest{{Path: "huge", Kind: Regular, Mode: m[0].Mode, Digest: Digest(nil)}} // before it grew
	if stored, err := tree.Store(t.Context(), earlier, nil, put); err != nil || !stored[0].SameState(m[0]) || stored[0].Size != size {
		t.Errorf("stored as %+v, %v", stored, err)
	}
}

// The limit is that of the run, but not below what models may change. A digest from a tree
// with another limit is not reused.
func TestReadUpTo(t *testing.T) {
	tree := newTree(t, map[string]string{"a": strings.Repeat("x", 100), "b": strings.Repeat("x", 101)}, Options{MaxFile: 10})
	prev := Manifest(nil)
	for _, c := range []struct {
		limit int64
		want  []bool // unread
	}{{100, []bool{false, true}}, {0, []bool{false, false}}, {5, []bool{true, true}}, {101, []bool{false, false}}} {
		tree.ReadUpTo(c.limit)
		m := manifest(t, tree, prev)
		if got := []bool{m[0].IsUnread(), m[1].IsUnread()}; !slices.Equal(got, c.want) {
			t.Errorf("with the limit %d: %v, want %v", c.limit, got, c.want)
		}
		copied, err := tree.OpenCopy(tree.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if other := manifest(t, copied, nil); other.Digest() != m.Digest() {
			t.Errorf("with the limit %d, a copy has %+v", c.limit, other)
		}
		copied.Close()
		prev = m
	}
	if m := manifest(t, newTree(t, map[string]string{"a": strings.Repeat("x", 11)}, Options{MaxFile: 10}), nil); !m[0].IsUnread() {
		t.Errorf("without ReadUpTo: %+v", m)
	}
}

func TestManifestReading(t *testing.T) {
	long, edge := strings.Repeat("x", wholeFile), strings.Repeat("x", wholeFile-1)
	files := map[string]string{"a": "1", "empty": "", "edge": edge, "long": long, "d/b": "2", "link": "->a"}
	for i := range 600 { // enough for several goroutines
		files[fmt.Sprintf("many/%d", i)] = fmt.Sprint(i)
	}
	tree := newTree(t, files, Options{})
	listed, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unchanged := Manifest{}
	for _, f := range listed {
		if f.Path == "d/b" {
			unchanged = Manifest{{Path: f.Path, Kind: f.Kind, Mode: f.Mode, Size: f.Size, Digest: Digest([]byte("2")), stamp: f.stamp}}
		}
	}
	got := map[string]string{}
	m, err := tree.ManifestReading(t.Context(), unchanged, func(e Entry, contents []byte) error {
		if e.Digest != Digest(contents) || e.Size != int64(len(contents)) {
			t.Errorf("%s: the entry is of other contents", e.Path)
		}
		got[e.Path] = string(contents)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest(t, tree, nil), m, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"long", "d/b", "link"} { // too long; as before; not a file
		delete(files, path)
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("contents: %s", diff)
	}
	calls, full := 0, errors.New("no space")
	_, err = tree.ManifestReading(t.Context(), nil, func(Entry, []byte) error { calls++; return full })
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestStampSettles(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).UnixNano() }
	for _, c := range []struct {
		stamp stamp
		want  bool
	}{
		{stamp{modified: at(-3 * time.Second)}, true},
		{stamp{modified: at(-time.Second)}, false},
		{stamp{modified: at(time.Hour)}, false},
		{stamp{modified: at(time.Hour), changed: at(-3 * time.Second)}, true},
		{stamp{modified: at(-time.Hour), changed: at(-time.Second)}, false},
	} {
		if got := (&hasher{taken: now}).trusted(Entry{stamp: c.stamp}).stamp != (stamp{}); got != c.want {
			t.Errorf("%+v: settled %v, want %v", c.stamp, got, c.want)
		}
	}
}

func TestManifestText(t *testing.T) {
	tree := newTree(t, map[string]string{"a b": "1", "l": "-> x\ty"}, Options{})
	m := manifest(t, tree, nil)
	m = append(m, Entry{Path: "z\n\xff\"", Kind: Other, Note: "ä", stamp: stamp{-1, 2, 1<<64 - 1}})
	again, err := DecodeManifest(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again, cmp.AllowUnexported(Entry{}, stamp{})); diff != "" {
		t.Error(diff)
	}
	if empty, err := DecodeManifest(Manifest(nil).Encode()); err != nil || empty != nil {
		t.Errorf("nil is decoded as %v, %v", empty, err)
	}
	text := string(m.Encode())
	for name, bad := range map[string]string{
		"nothing":     "",
		"version":     strings.Replace(text, "manifest 1", "manifest 2", 1),
		"cut":         text[:len(text)-1],
		"cut more":    text[:len(text)-9],
		"kind":        strings.Replace(text, "file ", "fine ", 1),
		"mode":        strings.Replace(text, "file 644", "file 8644", 1),
		"large mode":  strings.Replace(text, "file 644", "file 40000644", 1),
		"zeros":       strings.Replace(text, "file 644", "file 0644", 1),
		"digest":      strings.Replace(text, Digest([]byte("1")), "abc", 1),
		"quoting":     strings.Replace(text, `"a b"`, "`a b`", 1),
		"more fields": strings.Replace(text, "\n", " \"\"\n", 2),
		"order":       manifestHead + text[strings.LastIndex(text[:len(text)-1], "\n")+1:] + text[len(manifestHead):],
		"twice":       text + text[strings.LastIndex(text[:len(text)-1], "\n")+1:],
		"no path":     strings.Replace(text, `"a b"`, `""`, 1),
	} {
		if _, err := DecodeManifest([]byte(bad)); err == nil {
			t.Errorf("%s: no error for %q", name, bad)
		}
		if _, err := decodeAfter([]byte(bad), m, []byte(text)); err == nil {
			t.Errorf("%s: no error for %q after %q", name, bad, text)
		}
	}
}

func FuzzManifestText(f *testing.F) {
	f.Add("a\n\xff", "x y", "", int64(3), int64(-1), uint32(0o644))
	f.Fuzz(func(t *testing.T, path, target, note string, size, modified int64, mode uint32) {
		if path == "" || size < 0 {
			return
		}
		m := Manifest{{
			Path: path, Kind: Symlink, Mode: fs.FileMode(mode).Perm(), Size: size, Digest: Digest([]byte(path)),
			Target: target, Note: note, stamp: stamp{modified, ^modified, uint64(modified)},
		}}
		again, err := DecodeManifest(m.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmp.AllowUnexported(Entry{}, stamp{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	m := Manifest{{Path: "a b", Kind: Regular, Mode: 0o644, Size: 1, Digest: Digest([]byte("1")), stamp: stamp{1, 2, 3}}, {Path: "l\xff", Kind: Symlink, Target: "x"}}
	f.Add(m.Encode())
	f.Add([]byte(manifestHead))
	f.Fuzz(func(t *testing.T, text []byte) {
		alone, err := DecodeManifest(text)
		if err == nil && string(alone.Encode()) != string(text) {
			t.Fatalf("%q is decoded, but encoded as %q", text, alone.Encode())
		}
		after, afterErr := decodeAfter(text, m, m.Encode())
		if (err == nil) != (afterErr == nil) || err == nil && !slices.Equal(alone, after) {
			t.Fatalf("%q is %v (%v) alone and %v (%v) after another", text, alone, err, after, afterErr)
		}
	})
}

func BenchmarkTree50k(b *testing.B) {
	list := gitLister(b)
	dir := treetest.ManyFiles(b, 50_000)
	// Stamps of files written just now are not trusted.
	time.Sleep(raceWindow + 100*time.Millisecond)
	walked, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer walked.Close()
	listed, err := Open(dir, Options{List: list})
	if err != nil {
		b.Fatal(err)
	}
	defer listed.Close()
	b.Run("git ls-files alone", func(b *testing.B) {
		for b.Loop() {
			if _, err := list(b.Context(), dir); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, tree := range map[string]*Tree{"walked": walked, "listed": listed} {
		b.Run("Files "+name, func(b *testing.B) {
			for b.Loop() {
				if files, err := tree.Files(b.Context()); err != nil || len(files) != 50_000 {
					b.Fatal(len(files), err)
				}
			}
		})
	}
	prev := manifest(b, listed, nil)
	for name, prev := range map[string]Manifest{"cold": nil, "with prev": prev} {
		b.Run("Manifest "+name, func(b *testing.B) {
			for b.Loop() {
				manifest(b, listed, prev)
			}
		})
	}
	text := prev.Encode()
	b.Run("Encode", func(b *testing.B) {
		for b.Loop() {
			prev.Encode()
		}
	})
	b.Run("DecodeManifest", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeManifest(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
