package harness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"

	"hone/workspace"
)

// secretFiles are the files of a tree that commands behind walls do not see.
type secretFiles struct {
	paths  []string // absolute
	unread int      // files that were judged by their names alone, for there is too much to read
}

// Bounds of what is read to find secrets: keys and settings are small files,
// and near the top.
const (
	mostSecret  = 1 << 20   // bytes of one file
	mostScanned = 128 << 20 // bytes of all
)

// findSecrets looks for files that are secret by their name or contents, level
// by level. What git ignores is looked at as well: secrets are what one
// ignores. Folders of dependencies and build products are many files of other
// people's; there only names count.
func findSecrets(ctx context.Context, root string, guard *workspace.Guard) (secretFiles, error) {
	s := search{root: root, guard: guard, left: mostScanned}
	for folders := []string{"."}; len(folders) > 0; folders = folders[1:] {
		if ctx.Err() != nil {
			return s.found, context.Cause(ctx)
		}
		below, err := s.folder(folders[0])
		if err != nil {
			return s.found, err
		}
		folders = append(folders, below...)
	}
	return s.found, nil
}

type search struct {
	root  string
	guard *workspace.Guard
	left  int64 // bytes that may still be read
	found secretFiles
}

// folder judges a folder's files and returns the folders in it. One that
// cannot be read is passed over: a command cannot read it either.
func (s *search) folder(rel string) (below []string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.root, filepath.FromSlash(rel)))
	if err != nil && rel == "." {
		return nil, err
	}
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		switch {
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".hone"):
		case e.IsDir():
			below = append(below, at)
		case s.secret(at, e):
			s.found.paths = append(s.found.paths, filepath.Join(s.root, filepath.FromSlash(at)))
		}
	}
	return below, nil
}

// secret judges one file. A symlink is judged by its name, and what it leads
// to where that lies.
func (s *search) secret(at string, e os.DirEntry) bool {
	if _, yes := s.guard.WithheldName(at); yes {
		return true
	}
	if !e.Type().IsRegular() || foreign(at) {
		return false
	}
	info, err := e.Info()
	switch {
	case err != nil || info.Size() == 0 || info.Size() > mostSecret:
		return false
	case info.Size() > s.left:
		s.found.unread++
		return false
	}
	s.left -= info.Size()
	content, err := readSome(filepath.Join(s.root, filepath.FromSlash(at)), info.Size())
	if err != nil || bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0 {
		return false
	}
	_, yes := s.guard.Withheld(at, content)
	return yes
}

// foreign reports whether a file lies in a folder of dependencies or of build
// products.
func foreign(at string) bool {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		switch path.Base(dir) {
		case "node_modules", ".venv", "venv", "target", "__pycache__", "vendor", ".tox":
			return true
		}
	}
	return false
}

// readSome reads a file as far as it was long when it was looked at.
func readSome(name string, size int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := make([]byte, size)
	n, err := io.ReadFull(f, content)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return content[:n], err
}
