// Package dir is one directory below which everything is done.
package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Dir is an open directory and its path, which may change if it is moved. All access
// goes through Root, so a symlink in it leads nowhere.
type Dir struct {
	Root *os.Root
	Path string
}

// At returns the path of a name in the directory.
func (d *Dir) At(name string) string { return filepath.Join(d.Path, filepath.FromSlash(name)) }

// Make creates a directory, unless it exists.
func Make(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Open opens a regular file for reading. Anything else is an error: opening a pipe
// would wait for a writer.
func (d *Dir) Open(name string) (*os.File, error) {
	if err := d.CheckRegular(name); err != nil {
		return nil, err
	}
	return d.Root.Open(name)
}

// CheckRegular returns an error unless the name is that of a regular file.
func (d *Dir) CheckRegular(name string) error {
	info, err := d.Root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = NotRegular(d.At(name))
	}
	return err
}

// NotRegular returns the error about something in the place of a file.
func NotRegular(path string) error {
	return fmt.Errorf("%s is not a regular file: move it away", path)
}

// Sync makes the names in a directory durable. Windows has no such call; its file
// systems journal names.
func (d *Dir) Sync(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.Root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
