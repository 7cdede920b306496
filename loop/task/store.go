package task

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"hone/internal/artifact"
	"hone/loop"
)

// The directories of the loop's own files, relative to the tree's root.
const (
	artifactsHome   = ".codescribe"
	artifactsFolder = artifactsHome + "/loop"
)

// Git ignores what is in a new directory, so that the user does not commit it by accident. A directory that exists stays as it
// is: CodeScribe's users may have theirs in git.
func makeHome(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, artifactsHome))
	if !errors.Is(err, fs.ErrNotExist) {
		return loop.MakeDir(dir, artifactsHome)
	}
	return artifact.Create(dir, artifactsHome+"/.gitignore", []byte("*\n"), 0o644)
}
