//go:build unix

package main

import (
	"os"
	"syscall"
)

// It returns only if that fails.
func become(program string, argv, environ []string) (int, error) {
	return 0, &os.PathError{Op: "run", Path: program, Err: syscall.Exec(program, argv, environ)}
}
