package nofollow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
)

// Any number of directories may be pinned, but few are open.
func TestPinsAreBounded(t *testing.T) {
	treetest.InMemory(t)
	dir := treetest.Dir(t, nil)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := Pins{Root: root}
	defer s.Close()
	for range 2 { // the second time they are reopened
		for i := range MaxOpen + 50 {
			path := fmt.Sprintf("d%d/e", i)
			p, err := s.At(path, true)
			if err != nil {
				t.Fatal(err)
			}
			if empty, err := p.Empty(); p.Path != path || !empty || err != nil {
				t.Fatalf("%s: got %+v, %v", path, p, err)
			}
			open := 0
			for _, other := range s.byPath {
				if other.Root != nil {
					open++
				}
			}
			if open != s.open || open > MaxOpen+2 {
				t.Fatalf("%d directories are open, %d by the count", open, s.open)
			}
		}
	}
	if err := errors.Join(s.CheckAll(), s.RemoveCreated()); err != nil {
		t.Fatal(err)
	}
	if found := treetest.Contents(t, dir); len(found) > 0 {
		t.Errorf("%d directories are left", len(found))
	}
}

// A reopened directory must be the same one.
func TestPinsReopen(t *testing.T) {
	dir := treetest.Dir(t, map[string]string{"d/e/": "", "other/e/": ""})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := Pins{Root: root}
	defer s.Close()
	p, err := s.At("d/e", false)
	if err != nil {
		t.Fatal(err)
	}
	s.release(p)
	if err := errors.Join(os.Rename(filepath.Join(dir, "d", "e"), filepath.Join(dir, "moved")), os.Rename(filepath.Join(dir, "other", "e"), filepath.Join(dir, "d", "e"))); err != nil {
		t.Fatal(err)
	}
	var refused *treepath.RefusedError
	if _, err := s.At("d/e", false); !errors.As(err, &refused) {
		t.Errorf("at = %v", err)
	}
}
