// Package artifact reads and writes the files that a loop shares with the user
// and with models: logs, reports, verdicts.
//
// [Write] replaces a file completely or not at all, [Read] reads one, [Remove]
// removes one, and [MakeDir] creates a directory. A model's commands may
// have left anything in the tree, so these functions follow no symbolic link
// and read only regular files.
//
// All names are relative to a root, with slashes. A model's own edits are not
// written here but with [workspace.Tree].
package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// checkParents returns an error if a parent of a file is not a directory. An
// [os.Root] alone would follow links that stay below it.
func checkParents(root *os.Root, name string) error {
	for at := path.Dir(name); at != "." && at != "/"; at = path.Dir(at) {
		switch info, err := root.Lstat(at); {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link: move it away", at)
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory: move it away", at)
		}
	}
	return nil
}

// MakeDir creates a directory below dir. It succeeds if the directory
// exists, and fails if anything else has that name.
func MakeDir(dir, name string) error {
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
		return fmt.Errorf("%s is not a directory, so hone cannot write to it", name)
	}
	return err
}

// Write writes content, read to its end, to the file at a name, and creates its
// parent directories. It replaces an existing file and can be repeated.
func Write(root *os.Root, name string, content io.Reader) error {
	if err := checkParents(root, name); err != nil {
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

// Remove removes the file or directory at a name. It succeeds if nothing is
// there.
func Remove(root *os.Root, name string) error {
	if err := checkParents(root, name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// Read reads a regular file of at most most bytes. The error wraps
// [fs.ErrNotExist] if it does not exist.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	if err := checkParents(root, name); err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > most:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A command may have replaced the file, for example with a link or a pipe,
	// before it was opened.
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, now) {
		return nil, fmt.Errorf("%s was replaced while being read", name)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
