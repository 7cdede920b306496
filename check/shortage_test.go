//go:build unix

package check

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"hone/internal/transient"
	"hone/sandbox"
)

// failing is a runner that starts nothing.
type failing struct {
	sandbox.Runner
	err error
}

func (f failing) Run(context.Context, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{}, f.err
}

// TestShortMachine: a check that does not start because the machine is short of something, or
// because its walls fail, has no findings, but an error that says why. Another program or file is a finding.
func TestShortMachine(t *testing.T) {
	checks := map[string]func(sandbox.Runner) Func{
		"command": func(r sandbox.Runner) Func { return Command(r, command(t, "true")) },
		"build": func(r sandbox.Runner) Func {
			return Build(r, BuildConfig{Script: "build.sh", Program: Program{Dir: t.TempDir()}})
		},
		"checker": func(r sandbox.Runner) Func {
			return Bork(r, BorkConfig{Checker: "bork", Program: Program{Dir: t.TempDir()}})
		},
	}
	for name, check := range checks {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
			cause := &sandbox.StartError{Program: "sh", Err: fmt.Errorf("protect files: %w", errno)}
			found, err := check(failing{err: cause})(context.Background())
			if found != nil || !errors.Is(err, errno) || transient.Remedy(err) == "" {
				t.Errorf("%s, %v: %+v, %v", name, errno, found, err)
			}
		}
		walls := errors.New("walls")
		if found, err := check(failing{err: fmt.Errorf("protect files: %w", walls)})(context.Background()); found != nil || !errors.Is(err, walls) {
			t.Errorf("%s: without walls: %+v, %v", name, found, err)
		}
		for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.E2BIG} {
			found, err := check(failing{err: &sandbox.StartError{Program: "sh", Err: errno}})(context.Background())
			if err != nil || len(found) != 1 || !found[0].Broken {
				t.Errorf("%s, %v: %+v, %v", name, errno, found, err)
			}
		}
	}
}
