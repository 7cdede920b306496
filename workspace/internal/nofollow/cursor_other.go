//go:build !unix

package nofollow

import (
	"io/fs"
	"os"
	"slices"

	"hone/workspace/treepath"
)

// directory is an open directory. Names in it are single components of a path.
type directory struct {
	*os.Root
	keep bool // the root is the caller's to close
}

func openRoot(root *os.Root) (directory, error) { return directory{root, true}, nil }

func (d directory) close() {
	if !d.keep {
		d.Root.Close()
	}
}

func (d directory) enter(name string) (directory, error) {
	dir, err := openDir(d.Root, name, name)
	return directory{Root: dir}, err
}

func (d directory) lstat(name string) (Info, error) {
	info, err := d.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

// infoOf returns no change time and no inode, so that only size and modification
// time of a file are compared: a program that resets the latter hides its change.
func infoOf(info fs.FileInfo) Info {
	return Info{Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime().UnixNano()}
}

func (d directory) open(_, path string) (File, Info, error) {
	f, info, err := openRegular(d.Root, path)
	if err != nil {
		return File{}, Info{}, err
	}
	return File{f}, infoOf(info), nil
}

func (d directory) readlink(name string) (string, error) { return d.Readlink(name) }

func (d directory) names() ([]string, error) {
	f, err := d.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (d directory) isMount(string) bool { return false }

func (d directory) makeDir(name string) error { return d.Mkdir(name, 0o755) }

func (d directory) chmod(mode fs.FileMode) error { return d.Chmod(".", mode) }

// The file was opened for reading, which does not suffice on this system.
func (d directory) chmodFile(_ File, name string, mode fs.FileMode) error { return d.Chmod(name, mode) }

func (d directory) removeDir(name string) error {
	info, err := d.Root.Lstat(name)
	if err == nil {
		err = requireDir(name, info.Mode())
	}
	if err != nil {
		return err
	}
	return d.Remove(name)
}

func (d directory) remove(name string) error { return d.Remove(name) }

// The directory determines the owner of a new file.
func (d directory) create(name string, _ *Info) (*os.File, error) {
	return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d directory) openToWrite(name string) (*os.File, error) {
	return d.OpenFile(name, os.O_WRONLY, 0)
}

func (d directory) symlink(target, name string) error { return d.Symlink(target, name) }

// path is that of the new name in d.
func (d directory) rename(name string, _ directory, path, _ string) error {
	return d.Rename(name, path)
}

// isBusy is false: files are no mount points on this system.
func isBusy(error) bool { return false }

// sync does nothing: this system cannot sync directories.
func (d directory) sync() error { return nil }

// File is an open regular file.
type File struct{ *os.File }

// Std returns the file as the standard library has it, instead of it.
func (f File) Std(string) *os.File { return f.File }

// openDir opens the directory called name in parent. It refuses a symlink even
// if its target is inside the tree, and anything that replaces the directory
// while it is being opened. The path is used only in errors.
func openDir(parent *os.Root, name, path string) (*os.Root, error) {
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := requireDir(path, seen.Mode()); err != nil {
		return nil, err
	}
	// The dot makes the system open the name as a directory. Without it, a FIFO
	// that replaced the directory would block forever.
	dir, err := parent.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = treepath.Refuse(path, "%s was replaced while being opened", treepath.Display(path))
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// openRegular opens the regular file at path in its parent directory for
// reading. It opens nothing else, even if something replaces the file at the
// same time.
func openRegular(dir *os.Root, path string) (*os.File, fs.FileInfo, error) {
	name := treepath.Base(path)
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := requireRegular(path, seen.Mode()); err != nil {
		return nil, nil, err
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = treepath.Refuse(path, "it was replaced while being opened")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

// On this system permission bits do not keep owners from their directories.

func (d directory) force() *uint32 { return nil }

func (d directory) forceName(string) *uint32 { return nil }
