package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// StartError means that a command could not be started.
type StartError struct {
	Program string // the first element of Command.Argv
	Reason  string // for the user; empty if Err is enough
	Err     error  // the cause, such as fs.ErrNotExist; never nil
}

// Error names the program and the reason.
func (e *StartError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("start %s: %v", e.Program, e.Err)
	}
	return fmt.Sprintf("start %s: %s", e.Program, e.Reason)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Check returns an error if the context is done, or if the command has no program
// or no working directory. It looks nothing up. Its error is a [*StartError], or
// wraps the context's.
func (c Command) Check(ctx context.Context) error {
	program := "a command"
	if len(c.Argv) > 0 {
		program = c.Argv[0]
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("start %s: %w", program, context.Cause(ctx))
	case program == "" || len(c.Argv) == 0:
		return &StartError{Program: "a command", Err: errors.New("the command is empty")}
	case c.Dir == "":
		return &StartError{Program: program, Err: errors.New("no working directory was given")}
	}
	return nil
}

// Exec looks up the command's program and returns a command without streams: a name without a
// slash in the PATH of Env, another one from Dir. Its error is a [*StartError].
func (c Command) Exec() (*exec.Cmd, error) {
	if err := c.Check(context.Background()); err != nil {
		return nil, err
	}
	path := c.Argv[0]
	wrong := func(reason string, err error) (*exec.Cmd, error) {
		return nil, &StartError{Program: c.Argv[0], Reason: reason, Err: err}
	}
	info, err := os.Stat(c.Dir)
	switch {
	case err != nil:
		return wrong("", fmt.Errorf("working directory: %w", err))
	case !info.IsDir():
		return wrong("", fmt.Errorf("working directory %s: %w", c.Dir, syscall.ENOTDIR))
	case filepath.IsAbs(path):
	case strings.ContainsRune(path, filepath.Separator) || strings.ContainsRune(path, '/'):
		if path, err = filepath.Abs(filepath.Join(c.Dir, path)); err != nil {
			return wrong("", err)
		}
	default:
		if path, err = FindProgram(path, c.Env); err != nil {
			return wrong("it is not on the PATH of the command's environment", fs.ErrNotExist)
		}
	}
	info, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wrong("there is no such file", err)
	case err != nil:
		return wrong("", err)
	case info.IsDir():
		return wrong("it is a directory", syscall.EISDIR)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return wrong("it is not executable (chmod +x makes it so)", fs.ErrPermission)
	}
	return &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: append([]string{}, c.Env...)}, nil
}

// NewStartError explains the error of the operating system for a program whose
// file exists and is executable.
func NewStartError(program, path string, err error) *StartError {
	e := &StartError{Program: program, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Reason = "the interpreter that its first line names does not exist"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = "it is neither a program for this machine nor a script whose first line starts with #!"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = fmt.Sprintf("the system does not allow %s to run", path)
	}
	return e
}
