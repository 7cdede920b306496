// Package artifact reads and writes the files that a loop shares with people
// and with models: logs, reports, verdicts. They lie in a tree in which a
// model's commands may have left anything, so that no link is followed, nothing
// but regular files is read, and a file is written whole or not at all.
//
// All names are relative to a root, with slashes. What is written here is
// nobody's edit: a model's own changes go through [workspace.Tree].
package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// straight is an error where the way to a file leads through anything but
// folders: a root follows links to anywhere below it.
func straight(root *os.Root, name string) error {
	for at := path.Dir(name); at != "." && at != "/"; at = path.Dir(at) {
		switch info, err := root.Lstat(at); {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link: move it away", at)
		case !info.IsDir():
			return fmt.Errorf("%s is no folder: move it away", at)
		}
	}
	return nil
}

// MakeFolder makes a folder below another, where nothing else is in its
// place; one that is there stays.
func MakeFolder(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = root.Mkdir(name, 0o755)
	info, statErr := root.Lstat(name)
	switch {
	case statErr == nil && info.IsDir():
		return nil
	case statErr == nil:
		return fmt.Errorf("%s is no folder that hone could write to", name)
	}
	return err
}

// Write puts a text, read to its end, in the place of what is at a name, with
// the folders above it. It can be done twice.
func Write(root *os.Root, name string, content io.Reader) error {
	if err := straight(root, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temp := name + ".hone-tmp"
	if err := Remove(root, temp); err != nil {
		return err
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, Remove(root, temp)))
	}
	return nil
}

// Remove removes what is at a name, be it a folder; nothing there is fine.
func Remove(root *os.Root, name string) error {
	if err := straight(root, name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// Read reads a regular file of so many bytes at most. The error wraps
// [fs.ErrNotExist] where there is none.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	if err := straight(root, name); err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	case info.Size() > most:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Between the look and the opening a command may have put something else
	// there, such as a link or a pipe.
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, now) {
		return nil, fmt.Errorf("%s was changed while it was read", name)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
