package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
)

func (a *app) runsCommand() *cobra.Command {
	var dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "runs",
		Short: "list the runs in this directory",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.runs(dir, asJSON)
		},
	}
	registerDir(c, &dir)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return c
}

// summary is one run in the list.
type summary struct {
	Run    string    `json:"run"`
	Loop   string    `json:"loop"`
	Model  string    `json:"model"`
	Rounds int       `json:"rounds"`
	Result string    `json:"result"` // "running" or "died" if it has no end
	Exit   *int      `json:"exit,omitempty"`
	Tokens int64     `json:"tokens"`
	Cost   *float64  `json:"cost,omitempty"`
	When   time.Time `json:"when"`
	// Foreign means that the user recorded the run neither here nor accepted it.
	Foreign bool `json:"foreign,omitempty"`

	role, second string // of the second model; empty if there is none
}

// MarshalJSON adds the second model, with its role as the key.
func (s summary) MarshalJSON() ([]byte, error) {
	type plain summary
	b, err := json.Marshal(plain(s))
	if err != nil || s.second == "" {
		return b, err
	}
	name, err := json.Marshal(map[string]string{s.role: s.second})
	first, rest, _ := bytes.Cut(b, []byte(`,"rounds":`))
	return slices.Concat(first, []byte{','}, name[1:len(name)-1], []byte(`,"rounds":`), rest), err
}

func (a *app) runs(dir string, asJSON bool) error {
	home, err := runs.Open(dir)
	if err != nil {
		return err
	}
	defer home.Close()
	ids, err := home.Runs()
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return usage("no runs found in "+home.Workspace(), "hone demo, or: hone help")
	}
	foreign := runs.Foreign(home.Workspace())
	var all []summary
	for _, id := range ids {
		all = append(all, summarize(home, id, foreign))
	}
	if asJSON {
		return printJSON(a.out, all)
	}
	return printTable(a.out, all)
}

func printJSON(out io.Writer, all []summary) error {
	enc := json.NewEncoder(out)
	for _, s := range all {
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

func printTable(out io.Writer, all []summary) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tLOOP\tMODEL\tROUNDS\tRESULT\tTOKENS\tCOST\tWHEN")
	foreign := 0
	for _, s := range all {
		if s.Foreign {
			s.Result += ", foreign"
			foreign++
		}
		cost := "-"
		if s.Cost != nil {
			cost = fmt.Sprintf("$%.4f", *s.Cost)
		}
		when := "-"
		if !s.When.IsZero() {
			when = s.When.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", s.Run, s.Loop, render.Line(s.models()), s.Rounds, s.Result,
			render.Tokens(s.Tokens), cost, when)
	}
	if err := w.Flush(); err != nil || foreign == 0 {
		return err
	}
	_, err := fmt.Fprintln(out, "\nYou did not record the foreign runs on this machine. To see what one would do: hone trust RUN")
	return err
}

// summarize returns the summary of a run, even if its journal is unreadable.
func summarize(home *journal.Home, run string, foreign func(string, []journal.Event) int64) summary {
	s := summary{Run: run, Result: "died"}
	if holder, ok := home.LockedRun(); ok && holder == run {
		s.Result = "running"
	}
	events, err := home.Read(run)
	if err != nil || len(events) == 0 {
		s.Result = "damaged"
		return s
	}
	if start, err := runs.Started(events); err == nil {
		s.Loop, s.Model = start.Loop, start.Model
		s.role, s.second = second(start)
	}
	s.When = events[0].Time
	s.Foreign = foreign(run, events) != 0
	past := history.Read(events)
	spent := past.Reported()
	s.Rounds, s.Tokens, s.Cost = past.State().Round, spent.Tokens, spent.Cost
	if end, ok := past.End(); ok {
		exit := exitStatus(end.Kind)
		s.Exit = &exit
		if s.Result != "running" {
			s.Result = string(end.Kind)
		}
	}
	return s
}

// models returns the names of the models that a run asks.
func (s summary) models() string {
	if s.second != "" {
		return s.Model + " + " + s.second
	}
	return s.Model
}
