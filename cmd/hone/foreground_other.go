//go:build !unix

package main

import (
	"io"
	"os"
)

// foreground reports true: only Unix has terminals with a background.
func foreground(*os.File) bool { return true }

// input returns a reader of what the user types on a terminal.
func input(terminal *os.File) io.Reader { return terminal }
