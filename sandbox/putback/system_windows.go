package putback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const (
	openAtOnce  = 0
	sharesModes = false
	// touchTells reports whether stamp.Touched changes with every change of a file.
	touchTells = false
)

// move renames the file at a name in an open directory.
func move(dir *os.Root, name, to string) error {
	return os.Rename(filepath.Join(dir.Name(), name), to)
}

// lockFile locks a file for this process until it is closed. It returns false if
// another process has locked it.
func lockFile(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// syncFolder does nothing: Windows has no such call.
func syncFolder(string) error { return nil }

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Changed: info.ModTime().UnixNano()}
	if info.Mode().IsRegular() {
		s.Size = info.Size()
	}
	return s
}
