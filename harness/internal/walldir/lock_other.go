//go:build !unix

package walldir

import "os"

// There are no walls on this system, so nothing needs the lock.
func tryLock(string) (*os.File, bool) { return nil, false }
