//go:build !unix

package nofollow

import (
	"io/fs"
	"os"
)

// openNonblock is 0: this system has no FIFOs in directories.
const openNonblock = 0

// syncDir does nothing: this system cannot sync directories.
func syncDir(*os.Root) error { return nil }

// CheckDirWritable returns nil: on this system, the permission bits of a
// directory do not say whether it is writable.
func CheckDirWritable(*os.Root) error { return nil }

// ChmodOpen sets the permission bits of a file by name. It was opened for
// reading, which is not sufficient on this system.
func ChmodOpen(_ *os.File, dir *os.Root, name string, mode fs.FileMode) error {
	return dir.Chmod(name, mode)
}

// giveOwner does nothing: the directory determines the owner of a new file.
func giveOwner(*os.File, *os.Root, fs.FileInfo) {}

// isBusy is false: files are no mount points on this system.
func isBusy(error) bool { return false }
