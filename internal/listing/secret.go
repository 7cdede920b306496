package listing

import (
	"bytes"
	"context"
	"errors"
	"hone/workspace/secret"
	"io"
	"os"
	"path"
	"path/filepath"
)

// SecretFiles are the files of a directory that contain secrets.
type SecretFiles struct {
	Paths  []string // absolute; nil if there are none
	Unread int      // number of files judged only by their names, because there was too much to read
}

// Limits on what FindSecrets reads. Keys and settings are small files, and lie
// near the top.
const (
	maxSecretFile = 1 << 20   // bytes of one file
	maxScanned    = 128 << 20 // bytes of all files
)

// FindSecrets returns the files below root that are secret by their name or
// contents. It searches level by level, and also looks at files that git
// ignores, because secrets usually are. In directories of dependencies and of
// build products it judges files only by their names: they are many, and not
// the user's. It does not follow symbolic links.
//
// If a directory below root cannot be read, FindSecrets skips it.
func FindSecrets(ctx context.Context, root string, guard *secret.Guard) (SecretFiles, error) {
	s := secretSearch{root: root, guard: guard, budget: maxScanned}
	for dirs := []string{"."}; len(dirs) > 0; dirs = dirs[1:] {
		if ctx.Err() != nil {
			return s.found, context.Cause(ctx)
		}
		below, err := s.searchDir(dirs[0])
		if err != nil {
			return s.found, err
		}
		dirs = append(dirs, below...)
	}
	return s.found, nil
}

type secretSearch struct {
	root   string
	guard  *secret.Guard
	budget int64 // bytes that may still be read
	found  SecretFiles
}

// searchDir judges the files of a directory and returns its subdirectories. It
// skips a directory that it cannot read: commands cannot read it either.
func (s *secretSearch) searchDir(dir string) (below []string, err error) {
	entries, err := os.ReadDir(s.abs(dir))
	if err != nil && dir == "." {
		return nil, err
	}
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".hone"):
		case e.IsDir():
			below = append(below, at)
		case s.isSecret(at, e):
			s.found.Paths = append(s.found.Paths, s.abs(at))
		}
	}
	return below, nil
}

func (s *secretSearch) abs(at string) string {
	return filepath.Join(s.root, filepath.FromSlash(at))
}

// isSecret reports whether a file is secret. It judges a symbolic link only by
// its name: the search finds the target where it lies.
func (s *secretSearch) isSecret(at string, e os.DirEntry) bool {
	if _, secret := s.guard.WithheldName(at); secret {
		return true
	}
	if !e.Type().IsRegular() || isThirdParty(at) {
		return false
	}
	info, err := e.Info()
	switch {
	case err != nil || info.Size() == 0 || info.Size() > maxSecretFile:
		return false
	case info.Size() > s.budget:
		s.found.Unread++
		return false
	}
	s.budget -= info.Size()
	content, err := readPrefix(s.abs(at), info.Size())
	if err != nil || bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0 {
		return false
	}
	_, secret := s.guard.Withheld(at, content)
	return secret
}

// isThirdParty reports whether a file is in a directory of dependencies or of
// build products.
func isThirdParty(at string) bool {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		switch path.Base(dir) {
		case "node_modules", ".venv", "venv", "target", "__pycache__", "vendor", ".tox":
			return true
		}
	}
	return false
}

// readPrefix reads at most size bytes of a file, which may have grown or shrunk
// since its size was read.
func readPrefix(name string, size int64) ([]byte, error) {
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
