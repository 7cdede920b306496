//go:build !linux

package nofollow

import "os"

// IsMount is false: only Linux says which files are mount points.
func IsMount(*os.Root, string) bool { return false }
