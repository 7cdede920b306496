//go:build !linux

package tty

import "os"

// Waiting returns 0: only Linux knows the number.
func Waiting(*os.File) int { return 0 }
