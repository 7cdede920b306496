// Package artifact reads and writes the files that a loop shares with the user
// and with models: logs, reports, verdicts.
//
// [Write] replaces a file completely or not at all, [Create] writes a new one,
// [OpenAppend] opens one to append to it, [Read] reads one, [Remove] removes one,
// and [MakeDir] creates a directory. The repository may be hostile, and a model's
// commands may have left anything in the tree, so these functions follow no
// symbolic link, read and append to regular files only, and append to none that
// has another name.
//
// [Input] reads a file that the user has named, wherever it is.
//
// All other names are relative to a directory, with slashes. A model's own edits are not
// written here but with [workspace.Tree].
package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Check returns an error if Read would refuse the file at a name, or, with toAppend, if OpenAppend
// would: for example, because it or a parent is a link. It returns nil if the file does not exist.
func Check(dir, name string, toAppend bool) error {
	return in(dir, func(root *os.Root) error { return check(root, name, toAppend) })
}

// CheckParents returns an error if a parent of a file exists and is not a
// directory. An [os.Root] alone would follow links that stay below it.
func CheckParents(dir, name string) error {
	return in(dir, func(root *os.Root) error { return checkParents(root, name) })
}

// within calls do with a directory out of which no link leads.
func within[T any](dir string, do func(*os.Root) (T, error)) (T, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return *new(T), err
	}
	defer root.Close()
	return do(root)
}

func in(dir string, do func(*os.Root) error) error {
	_, err := within(dir, func(root *os.Root) (struct{}, error) { return struct{}{}, do(root) })
	return err
}

// With alone, the file must have no other name. A file that does not exist is fine.
func check(root *os.Root, name string, alone bool) error {
	if err := checkParents(root, name); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link: move it away", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: move it away", name)
	case alone && hasOtherNames(info):
		return fmt.Errorf("%s has another name (a hard link), under which it would change too: move it away", name)
	}
	return nil
}

// A command may replace the file before it is opened, for example with a link or a pipe.
func open(root *os.Root, name string, flag int, alone bool) (*os.File, error) {
	if err := check(root, name, alone); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, flag|nonblock, 0o644)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	named, err2 := root.Lstat(name)
	if err = errors.Join(err, err2, check(root, name, alone)); err == nil && !os.SameFile(named, opened) {
		err = fmt.Errorf("%s was replaced while being opened", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

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
	return in(dir, func(root *os.Root) error {
		err := root.Mkdir(name, 0o755)
		info, statErr := root.Lstat(name)
		switch {
		case statErr == nil && info.IsDir():
			return nil
		case statErr == nil:
			return fmt.Errorf("%s is not a directory, so hone cannot write to it", name)
		}
		return err
	})
}

// Write writes content, read to its end, to the file at a name, and creates its
// parent directories. It replaces an existing file and can be repeated.
func Write(dir, name string, content io.Reader) error {
	err := in(dir, func(root *os.Root) error {
		if err := makeParents(root, name); err != nil {
			return err
		}
		temp := name + ".hone-tmp"
		if err := root.RemoveAll(temp); err != nil {
			return err
		}
		err := create(root, temp, content, 0o644)
		if err == nil {
			err = root.Rename(temp, name)
		}
		if err != nil {
			err = errors.Join(err, root.RemoveAll(temp))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Create writes a new file, and creates its parent directories. The error wraps
// [fs.ErrExist] if anything has the name, also a link that leads nowhere.
func Create(dir, name string, content []byte, mode fs.FileMode) error {
	return in(dir, func(root *os.Root) error {
		if err := makeParents(root, name); err != nil {
			return err
		}
		return create(root, name, bytes.NewReader(content), mode)
	})
}

func makeParents(root *os.Root, name string) error {
	if err := checkParents(root, name); err != nil {
		return err
	}
	return root.MkdirAll(path.Dir(name), 0o755)
}

func create(root *os.Root, name string, content io.Reader, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// OpenAppend opens the file at a name to read it and to append to it. It creates
// the file and its parent directories if they do not exist.
func OpenAppend(dir, name string) (*os.File, error) {
	return within(dir, func(root *os.Root) (*os.File, error) {
		if err := makeParents(root, name); err != nil {
			return nil, err
		}
		return open(root, name, os.O_RDWR|os.O_CREATE|os.O_APPEND, true)
	})
}

// Remove removes the file or directory at a name. It succeeds if nothing is
// there.
func Remove(dir, name string) error {
	err := in(dir, func(root *os.Root) error {
		if err := checkParents(root, name); err != nil {
			return err
		}
		return root.RemoveAll(name)
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// maxInput is how many bytes of a file that the user names are read.
const maxInput = 64 << 20

// Input reads a file that the user has named: a regular file, also through links, or a pipe
// that something writes to. It refuses what would never end.
func Input(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s is neither a file nor a pipe", name)
	case info.Size() > maxInput:
		return nil, tooLong(name)
	}
	text, err := InputFrom(f, name)
	if err == nil && len(text) == 0 && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a pipe that nothing writes to", name)
	}
	return text, err
}

// InputFrom reads an input of the user's that is open, such as standard input, without the byte
// order mark that editors may put before a text. Name is for errors.
func InputFrom(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(text) > maxInput {
		return nil, tooLong(name)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

func tooLong(name string) error { return fmt.Errorf("%s is larger than %d MiB", name, maxInput>>20) }

// Read reads a regular file of at most most bytes. The error wraps
// [fs.ErrNotExist] if it does not exist.
func Read(dir, name string, most int64) ([]byte, error) {
	return within(dir, func(root *os.Root) ([]byte, error) {
		f, err := open(root, name, os.O_RDONLY, false)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, most+1))
		if err == nil && int64(len(text)) > most {
			return nil, fmt.Errorf("%s is longer than %d bytes", name, most)
		}
		return text, err
	})
}
