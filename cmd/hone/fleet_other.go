//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

// become runs a program in place of this process, and returns its exit status.
func become(program string, argv, environ []string) (int, error) {
	c := &exec.Cmd{Path: program, Args: argv, Env: environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	err := c.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}
