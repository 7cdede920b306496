//go:build !unix

package workspace

import (
	"io/fs"
	"os"
)

// openNonblock is nothing here: there are no FIFOs in a directory.
const openNonblock = 0

// syncDir does nothing: directories cannot be synced here.
func syncDir(*os.Root) error { return nil }

// mayWrite finds nothing: the permission bits of a directory do not tell here.
func mayWrite(*os.Root) error { return nil }

// chmodOpen changes the permission bits of a file by its name: it was opened
// for reading, which does not suffice here.
func chmodOpen(_ *os.File, dir *os.Root, name string, mode fs.FileMode) error {
	return dir.Chmod(name, mode)
}

// keepOwner does nothing: a new file has the owner of its directory's rules.
func keepOwner(*os.File, fs.FileInfo) {}
