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

// keepOwner does nothing: a new file has the owner of its directory's rules.
func keepOwner(*os.File, fs.FileInfo) {}
