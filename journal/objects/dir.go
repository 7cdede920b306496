package objects

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
)

// Dir is an open directory and its path, which may change if it is moved. All access
// goes through Root, so a symlink in it leads nowhere.
type Dir struct {
	Root *os.Root
	Path string
	// Synced, unless nil, is called with the name of each file and directory in it that
	// became durable. Tests use it.
	Synced func(name string)
}

// At returns the path of a name in the directory.
func (d *Dir) At(name string) string { return filepath.Join(d.Path, filepath.FromSlash(name)) }

// MakeDir creates a directory, unless it exists.
func MakeDir(root *os.Root, name string) error {
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

// MakeDurable creates a directory below this one, unless it exists, and makes its name
// durable.
func (d *Dir) MakeDurable(name string) error {
	err := d.Root.Mkdir(name, 0o700)
	switch {
	case err == nil:
		return d.Sync(path.Dir(name))
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}

// SyncFile makes the contents of an open file durable.
func (d *Dir) SyncFile(name string, f *os.File) error {
	err := f.Sync()
	if err == nil && d.Synced != nil {
		d.Synced(name)
	}
	return err
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
	return errors.Join(d.SyncFile(name, f), f.Close())
}
