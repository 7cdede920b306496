//go:build !unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
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

// There is no umask.
func ensureOwnerAccess() {}

func ownSession() *syscall.SysProcAttr { return nil }

// inForeground reports true: only Unix has terminals with a background.
func inForeground(*os.File) bool { return true }

func inputOf(terminal *os.File) io.Reader { return terminal }
