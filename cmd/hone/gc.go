package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"hone/internal/lazyregexp"

	"github.com/spf13/cobra"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
)

type gcFlags struct {
	dir        string
	olderThan  string
	keep       int
	maxSize    string
	unfinished bool
	dryRun     bool
	json       bool
}

// defaultAge is the age from which gc deletes runs if the user sets no limit.
const defaultAge = 30 * day

const day = 24 * time.Hour

func (a *app) gcCommand() *cobra.Command {
	var f gcFlags
	c := helped("gc", &cobra.Command{
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.collection(c.Flags().Changed)
			if err != nil {
				return err
			}
			return a.gc(c.Context(), f, o)
		},
	})
	registerDir(c, &f.dir)
	c.Flags().StringVar(&f.olderThan, "older-than", "", "delete runs that ended longer ago than `AGE`, such as 7d, 12h or 0 (default 30d without other limits)")
	c.Flags().IntVar(&f.keep, "keep", 0, "delete all but the newest N runs")
	config.SetRule(c.Flags(), "natural", "keep")
	c.Flags().StringVar(&f.maxSize, "max-size", "", "delete the oldest runs until the others need no more than `SIZE`, such as 1GB")
	config.SetRule(c.Flags(), "size>0", "max-size")
	c.Flags().BoolVar(&f.unfinished, "unfinished", false, "also delete runs that died, were interrupted, wait for an answer, used up their budget, failed or cannot be read")
	c.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "print what would be deleted, and delete nothing")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f gcFlags) collection(changed func(string) bool) (runs.Collection, error) {
	o := runs.Collection{Keep: -1, OlderThan: -1, MaxSize: -1, Unfinished: f.unfinished, DryRun: f.dryRun}
	var err error
	if changed("keep") {
		o.Keep = f.keep
	}
	if changed("max-size") {
		o.MaxSize, _ = config.ParseSize(f.maxSize) // its rule has been checked
	}
	switch {
	case changed("older-than"):
		if o.OlderThan, err = parseAge(f.olderThan); err != nil {
			return o, failure.Usage("--older-than: "+err.Error(), "write a number with its unit, such as 30d, 2w or 12h")
		}
	case o.Keep < 0 && o.MaxSize < 0:
		o.OlderThan = defaultAge
	}
	return o, nil
}

var daysOrWeeks = lazyregexp.New(`^([0-9]{1,5})([dw])$`)

func parseAge(s string) (time.Duration, error) {
	if m := daysOrWeeks.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most five digits
		return time.Duration(n) * map[string]time.Duration{"d": day, "w": 7 * day}[m[2]], nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not an age", s)
	}
	return d, nil
}

func (a *app) gc(ctx context.Context, f gcFlags, o runs.Collection) error {
	done, err := runs.Collect(ctx, f.dir, o)
	if err != nil {
		return err
	}
	home, err := journal.FindHomeAt(done.Workspace, done.Home)
	if err != nil {
		return err
	}
	defer home.Close()
	copies, err := attempts.Collect(home, done.Deleted, o.DryRun) // in which attempts of deleted runs worked
	if err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(a.out).Encode(struct {
			runs.Collected
			Copies []string `json:"copies,omitempty"` // runs whose copies were removed
		}{done, copies})
	}
	deleted, freed := "deleted", "freed"
	if o.DryRun {
		deleted, freed = "would delete", "would free"
	}
	for _, run := range done.Deleted {
		a.printLine(deleted + " " + render.Line(run))
	}
	for _, run := range copies {
		a.printLine(deleted + " the copies of the attempts of " + render.Line(run))
	}
	a.printLine(fmt.Sprintf("%s %s, %s %s; %s left, %s in %s", deleted, render.Count(len(done.Deleted), "run"), freed, render.Bytes(done.Freed),
		render.Count(done.Kept, "run"), render.Bytes(done.Size), report.HomeText(done.Home)))
	if done.Open > 0 {
		a.say("note", fmt.Sprintf("%s can be resumed and %s kept; --unfinished deletes such runs too",
			render.Count(done.Open, "older run"), map[bool]string{true: "is", false: "are"}[done.Open == 1]))
	}
	return nil
}
