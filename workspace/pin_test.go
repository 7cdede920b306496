package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Any number of directories may be pinned, but few are open.
func TestPinsAreBounded(t *testing.T) {
	inMemory(t)
	tree := newTree(t, nil, Options{})
	s := pins{root: tree.root}
	defer s.close()
	for range 2 { // the second time they are reopened
		for i := range maxOpen + 50 {
			path := fmt.Sprintf("d%d/e", i)
			p, err := s.at(path, true)
			if err != nil {
				t.Fatal(err)
			}
			if p.path != path || !p.empty() {
				t.Fatalf("%s: got %+v", path, p)
			}
			open := 0
			for _, other := range s.byPath {
				if other.dir != nil {
					open++
				}
			}
			if open != s.open || open > maxOpen+2 {
				t.Fatalf("%d directories are open, %d by the count", open, s.open)
			}
		}
	}
	if err := errors.Join(s.checkAll(), s.removeCreated()); err != nil {
		t.Fatal(err)
	}
	if found := contents(t, tree.Dir()); len(found) > 0 {
		t.Errorf("%d directories are left", len(found))
	}
}

// A reopened directory must be the same one.
func TestPinsReopen(t *testing.T) {
	tree := newTree(t, map[string]string{"d/e/": "", "other/e/": ""}, Options{})
	s := pins{root: tree.root}
	defer s.close()
	p, err := s.at("d/e", false)
	if err != nil {
		t.Fatal(err)
	}
	s.release(p)
	dir := tree.Dir()
	if err := errors.Join(os.Rename(filepath.Join(dir, "d", "e"), filepath.Join(dir, "moved")), os.Rename(filepath.Join(dir, "other", "e"), filepath.Join(dir, "d", "e"))); err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if _, err := s.at("d/e", false); !errors.As(err, &refused) {
		t.Errorf("at = %v", err)
	}
}
