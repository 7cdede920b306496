//go:build !linux

package nofollow

import "os"

// Only Linux keeps extended attributes.
func (f File) keepAttributes(*os.File) {}
