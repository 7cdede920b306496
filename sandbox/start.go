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

	"hone/sandbox/internal/environ"
)

// StartError says that a command could not be started.
type StartError struct {
	Program string // as it was asked for
	Reason  string // for a person; empty where Err says it all
	Err     error  // what the operating system said, such as fs.ErrNotExist; never nil
}

// Error names the program and the reason.
func (e *StartError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("start %s: %v", e.Program, e.Err)
	}
	return fmt.Sprintf("start %s: %s", e.Program, e.Reason)
}

// Unwrap is the operating system's error.
func (e *StartError) Unwrap() error { return e.Err }

// Check says why a command cannot be started before anything is looked up: the
// context is over, or it has no program or no working directory. Its error is a
// [*StartError], or wraps the context's.
func (c Command) Check(ctx context.Context) error {
	program := "a command"
	if len(c.Argv) > 0 {
		program = c.Argv[0]
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("start %s: %w", program, context.Cause(ctx))
	case program == "" || len(c.Argv) == 0:
		return &StartError{Program: "a command", Err: errNoProgram}
	case c.Dir == "":
		return &StartError{Program: program, Err: errNoDir}
	}
	return nil
}

// errNoProgram is for a Command without Argv, errNoDir for one without Dir.
var (
	errNoProgram = errors.New("the command is empty")
	errNoDir     = errors.New("no working directory was given")
)

// Exec is the command with its program found, ready to be given its streams and
// started. Its error is a [*StartError].
func (c Command) Exec() (*exec.Cmd, error) {
	path, err := c.program()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: append([]string{}, c.Env...)}, nil
}

// program is the file to run, found and looked at.
func (c Command) program() (string, error) {
	if err := c.Check(context.Background()); err != nil {
		return "", err
	}
	if err := c.checkDir(); err != nil {
		return "", &StartError{Program: c.Argv[0], Err: err}
	}
	path, err := c.find()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &StartError{Program: c.Argv[0], Reason: "there is no such file", Err: err}
	case err != nil:
		return "", &StartError{Program: c.Argv[0], Err: err}
	case info.IsDir():
		return "", &StartError{Program: c.Argv[0], Reason: "it is a directory", Err: syscall.EISDIR}
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return "", &StartError{Program: c.Argv[0], Reason: "it is not executable (chmod +x makes it so)", Err: fs.ErrPermission}
	}
	return path, nil
}

func (c Command) checkDir() error {
	info, err := os.Stat(c.Dir)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("working directory %s: %w", c.Dir, syscall.ENOTDIR)
	}
	return nil
}

// find is the file that Argv names: in the command's own PATH where it has no
// slash, else relative to Dir. Entries of PATH that are not absolute are passed
// over, because what they find depends on what lies in Dir.
func (c Command) find() (string, error) {
	name := c.Argv[0]
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.ContainsRune(name, '/') {
		return filepath.Abs(filepath.Join(c.Dir, name))
	}
	for _, dir := range filepath.SplitList(environ.Value(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, ending := range endings(c.Env) {
			path := filepath.Join(dir, name+ending)
			if isProgram(path) {
				return path, nil
			}
		}
	}
	return "", &StartError{Program: name, Reason: "it is not on the PATH that it would run with", Err: fs.ErrNotExist}
}

// isProgram reports whether PATH's search ends at a file.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}

// endings are what may follow a program's name.
func endings(env []string) []string {
	if runtime.GOOS != "windows" {
		return []string{""}
	}
	list := environ.Value(env, "PATHEXT")
	if list == "" {
		list = ".COM;.EXE;.BAT;.CMD"
	}
	return append([]string{""}, strings.Split(list, ";")...)
}

// NewStartError words what the operating system said when a program was
// started whose file was there and executable.
func NewStartError(program, path string, err error) *StartError {
	e := &StartError{Program: program, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Reason = "the interpreter that its first line names does not exist"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = "it is neither a program for this machine nor a script whose first line begins with #!"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = fmt.Sprintf("the system does not permit to run %s", path)
	}
	return e
}
