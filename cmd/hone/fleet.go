package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/sandbox"
)

// fleetProgram is built from a module of its own, so that hone does not contain the client
// of Temporal.
const fleetProgram = "hone-fleet"

func (a *app) fleetCommand() *cobra.Command {
	return helped("fleet", &cobra.Command{
		DisableFlagParsing: true,
		RunE:               a.fleet,
	})
}

// It returns only if that fails, or on systems where a process cannot do that.
func (a *app) fleet(c *cobra.Command, args []string) error {
	program, err := findFleet()
	switch {
	case err == nil:
	case len(args) == 0, slices.Contains(args, "--help"), slices.Contains(args, "-h"):
		return c.Help()
	default:
		return &failure.Error{Kind: hone.KindFailed, Why: fleetProgram + " is neither on your PATH nor beside hone",
			Hint: "run make install in a clone of hone"}
	}
	a.exit, err = become(program, append([]string{fleetProgram}, args...), a.environ)
	return err
}

func findFleet() (string, error) {
	found, err := sandbox.FindProgram(fleetProgram, os.Environ(), ".")
	if err == nil {
		return found, nil
	}
	self, failed := os.Executable()
	if failed != nil {
		return "", errors.Join(err, failed)
	}
	return exec.LookPath(filepath.Join(filepath.Dir(self), fleetProgram))
}
