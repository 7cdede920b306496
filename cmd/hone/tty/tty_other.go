//go:build !unix

package tty

import (
	"io"
	"os"
)

// Foreground reports true: only Unix has terminals with a background.
func Foreground(*os.File) bool { return true }

// Input returns a reader of what the user types on a terminal.
func Input(terminal *os.File) io.Reader { return terminal }
