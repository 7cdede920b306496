package objects_test

import (
	"os"
	"path/filepath"
	"testing"

	"hone/journal/internal/dir"
	"hone/journal/objects"
)

// stored is a store and the path of its directory.
type stored struct {
	*objects.Store
	in *dir.Dir
}

// open opens the store in a directory of its own below another.
func open(parent string) (*stored, error) {
	path := filepath.Join(parent, "store")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	s := &stored{in: &dir.Dir{Root: root, Path: path}}
	s.Store = objects.In(s.in)
	s.WithoutLog()
	return s, s.Create()
}

func (s *stored) Dir() string { return s.in.Path }

func (s *stored) Close() error { return s.in.Root.Close() }

func home(t testing.TB) *stored {
	t.Helper()
	h, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}
