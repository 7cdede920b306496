package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
		ValidArgsFunction:  completeFleet,
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

func completeFleet(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	program, err := findFleet()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	out, err := exec.Command(program, slices.Concat([]string{cobra.ShellCompRequestCmd}, args, []string{word})...).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last, ok := strings.CutPrefix(lines[len(lines)-1], ":")
	directive, notNumber := strconv.Atoi(last)
	if err != nil || !ok || notNumber != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(directive)
}
