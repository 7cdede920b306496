package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/harness/runs"
	"hone/internal/render"
)

func (a *app) runsCommand() *cobra.Command {
	var dir string
	var asJSON bool
	c := helped("runs", &cobra.Command{
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.runs(dir, asJSON)
		},
	})
	registerDir(c, &dir)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return c
}

func (a *app) runs(dir string, asJSON bool) error {
	home, err := runs.Open(dir)
	if errors.Is(err, runs.ErrNone) && asJSON {
		return nil
	}
	if err != nil {
		return err
	}
	defer home.Close()
	ids, err := home.Runs()
	if err != nil {
		return err
	}
	if len(ids) == 0 && asJSON {
		return nil
	}
	if len(ids) == 0 {
		return failure.Usage("no runs found in "+home.Workspace(), "cd to the directory in which the run was started, or name it with -C DIR")
	}
	foreign := runs.Foreign(home)
	working, _ := home.LockedRun()
	var all []report.Summary
	for _, id := range slices.Backward(ids) {
		s := report.Summarize(home, id, id == working, foreign)
		if s.Result == "died" {
			r := report.Run{Home: home, ID: id, Past: s.Past}
			a.say("note", r.Incomplete())
		}
		s.Past = nil // a list of many runs does not need them all
		all = append(all, s)
	}
	use, useErr := report.UseOf(home) // another user's home may be unreadable in part
	if asJSON {
		out := json.NewEncoder(a.out)
		for _, s := range all {
			if err := out.Encode(s); err != nil {
				return err
			}
		}
		if useErr != nil {
			return nil
		}
		return out.Encode(use)
	}
	columns, _ := a.outExtent()
	for _, line := range append(report.Table(all, a.outColour), use.String()) {
		if columns > 0 {
			line = render.Cut(line, columns)
		}
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(all, func(s report.Summary) bool { return s.Foreign }) {
		return nil
	}
	_, err = fmt.Fprintln(a.out, "\nYou did not record the foreign runs on this machine. To see what one would do: hone trust RUN"+failure.Elsewhere(home.Workspace()))
	return err
}
