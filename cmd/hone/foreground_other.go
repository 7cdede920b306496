//go:build !unix

package main

import "os"

// foreground reports true: only Unix has terminals with a background.
func foreground(*os.File) bool { return true }
