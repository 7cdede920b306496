//go:build unix

package main

import (
	"os"
	"syscall"
)

// become replaces this process by a program. It returns only if that fails.
func become(program string, argv, environ []string) (int, error) {
	return 0, &os.PathError{Op: "run", Path: program, Err: syscall.Exec(program, argv, environ)}
}
