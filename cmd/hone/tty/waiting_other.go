//go:build !linux

package tty

import "os"

// Waiting returns 0: it is known only on Linux.
func Waiting(*os.File) int { return 0 }
