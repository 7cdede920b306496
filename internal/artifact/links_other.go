//go:build !unix

package artifact

import "io/fs"

// nonblock is 0: this system has no FIFOs in directories.
const nonblock = 0

// This system does not say.
func hasOtherNames(fs.FileInfo) bool { return false }
