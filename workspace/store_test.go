package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hone/workspace/internal/treetest"
)

// store holds contents by digest, like a caller of Store.
type store map[string]string

func (s store) keep(r io.Reader) (string, int64, error) {
	content, err := io.ReadAll(r)
	digest := Digest(content)
	s[digest] = string(content)
	return digest, int64(len(content)), err
}

func TestKeep(t *testing.T) {
	tree := newTree(t, map[string]string{
		"a": "1", "changed": "1", "d/gone": "1", "dir": "1", "link": "1", "mode": "1", "old": "->x", "skipped": "1", "swapped/x": "1",
	}, Options{})
	dir := tree.Dir()
	m := manifest(t, tree, nil)
	for i := range m {
		m[i].stamp = stamp{1, 2, 3}
	}
	before := append(Manifest(nil), m...)
	for _, path := range []string{"d", "dir", "link", "swapped"} {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	treetest.Put(t, dir, "changed", "22")
	treetest.Put(t, dir, "dir/x", "1")
	treetest.Put(t, dir, "link", "->a")
	treetest.Put(t, dir, "swapped", "->dir")
	treetest.Chmod(t, tree.Dir(), "mode", 0o755)
	s := store{}
	got, err := tree.Store(t.Context(), m, func(e Entry) bool { return e.Path != "skipped" }, s.keep)
	if err != nil {
		t.Fatal(err)
	}
	one, two := Digest([]byte("1")), Digest([]byte("22"))
	want := Manifest{
		{Path: "a", Kind: Regular, Mode: 0o644, Size: 1, Digest: one, stamp: stamp{1, 2, 3}},
		{Path: "changed", Kind: Regular, Mode: 0o644, Size: 2, Digest: two},
		{Path: "link", Kind: Symlink, Target: "a"},
		{Path: "mode", Kind: Regular, Mode: 0o755, Size: 1, Digest: one},
		{Path: "old", Kind: Symlink, Target: "x", stamp: stamp{1, 2, 3}},
		{Path: "skipped", Kind: Regular, Mode: 0o644, Size: 1, Digest: one, stamp: stamp{1, 2, 3}},
	}
	same := cmp.Comparer(func(a, b stamp) bool { return a == b })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Entry{}), same); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(store{one: "1", two: "22"}, s); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, m, cmp.AllowUnexported(Entry{}), same); diff != "" {
		t.Errorf("the manifest was changed in place:\n%s", diff)
	}
}

func TestKeepWithoutDifference(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "b": "->a"}, Options{})
	tree.ReadUpTo(0)
	m := manifest(t, tree, nil)
	got, err := tree.Store(t.Context(), m, nil, store{}.keep)
	if err != nil || len(got) != 2 || &got[0] != &m[0] {
		t.Errorf("Keep = %+v, %v", got, err)
	}
}

func TestKeepEnds(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "b": "1"}, Options{})
	m := manifest(t, tree, nil)
	full := errors.New("full")
	if _, err := tree.Store(t.Context(), m, nil, func(io.Reader) (string, int64, error) { return "", 0, full }); !errors.Is(err, full) {
		t.Errorf("Keep = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := store{}
	_, err := tree.Store(ctx, m, nil, func(r io.Reader) (string, int64, error) {
		cancel()
		return s.keep(r)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Keep of a canceled context = %v", err)
	}
}

// Store stores a file of any size, even one too large for Read.
func TestKeepLargeFile(t *testing.T) {
	tree := newTree(t, map[string]string{"large": ""}, Options{MaxFile: 10})
	if err := os.Truncate(filepath.Join(tree.Dir(), "large"), 64<<20); err != nil {
		t.Fatal(err)
	}
	m := manifest(t, tree, nil)
	got, err := tree.Store(t.Context(), m, nil, func(r io.Reader) (string, int64, error) {
		sum := sha256.New()
		n, err := io.Copy(sum, r)
		return hex.EncodeToString(sum.Sum(nil)), n, err
	})
	if diff := cmp.Diff(m, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Ignored files that the user included are in manifests but not in Files.
func TestIgnored(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "env": "1", "out/x": "1", "nested/.git/HEAD": "x", "nested/y": "1"}, Options{
		List: func(_ context.Context, dir string) (Listing, error) {
			if filepath.Base(dir) == "nested" {
				return Listing{Paths: []string{"y"}, Untracked: map[string]bool{"y": true}}, nil
			}
			return Listing{Paths: []string{"a", "env", "out/", "nested/"}, Ignored: map[string]bool{"env": true, "out/": true, "nested/": true}}, nil
		},
	})
	files, err := tree.Files(t.Context())
	if diff := cmp.Diff("a file 1\n", summary(files)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	m := manifest(t, tree, nil)
	var kept []string
	for i, e := range m {
		kept = append(kept, e.Path)
		if e.Ignored != (e.Path != "a") {
			t.Errorf("%s: ignored %t", e.Path, e.Ignored)
		}
		m[i].Ignored = false
	}
	if diff := cmp.Diff([]string{"a", "env", "nested/y", "out/x"}, kept); diff != "" {
		t.Error(diff)
	}
	if d := m.Diff(manifest(t, tree, m)); len(d) > 0 || m.Digest() != manifest(t, tree, nil).Digest() {
		t.Errorf("ignored files differ: %v", d)
	}
}
