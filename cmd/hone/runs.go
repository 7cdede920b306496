package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/spf13/cobra"
	"golang.org/x/term"

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
		Short: "list the runs in this directory, newest first",
		Long: `runs lists the runs in this directory, the newest first. The first column identifies a run in other commands.
On a terminal, lines are cut to its width.

RESULT is running, died, or how the run ended, such as done, rounds (all are used up) or blocked. SUBJECT is
the run's check, query or task.

TOKENS are those that providers confirmed; +N are reserved for calls that were cut off, so nobody knows what
they used. AGE is the time since the run started.`,
		Args: noArgs,
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
	Run    string `json:"run"`
	Loop   string `json:"loop"`
	Model  string `json:"model"`
	Rounds int    `json:"rounds"`
	Result string `json:"result"` // "running" or "died" if it has no end
	Exit   *int   `json:"exit,omitempty"`
	Tokens int64  `json:"tokens"` // unconfirmed ones included
	// Unconfirmed is how many of the tokens are reserved for calls of which no use was
	// reported.
	Unconfirmed int64     `json:"unconfirmed,omitempty"`
	Cost        *float64  `json:"cost,omitempty"`
	When        time.Time `json:"when"`
	Subject     string    `json:"subject,omitempty"` // such as the task's words
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
		return usage("no runs found in "+home.Workspace(), "name the directory of the runs with -C DIR, or start one: hone help")
	}
	foreign := runs.Foreign(home.Workspace())
	var all []summary
	for _, id := range slices.Backward(ids) {
		all = append(all, summarize(home, id, foreign))
	}
	if asJSON {
		return printJSON(a.out, all)
	}
	return printTable(a.out, all, a.width())
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

// printTable prints a line for each run. width is where lines are cut; 0 means nowhere.
func printTable(out io.Writer, all []summary, width int) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tRESULT\tLOOP\tROUNDS\tTOKENS\tAGE\tSUBJECT")
	foreign := 0
	for _, s := range all {
		if s.Foreign {
			s.Result += ", foreign"
			foreign++
		}
		tokens := render.Tokens(s.Tokens - s.Unconfirmed)
		if s.Unconfirmed > 0 {
			tokens += " +" + render.Tokens(s.Unconfirmed)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", journal.ShortRun(s.Run), s.Result, s.Loop, s.Rounds, tokens,
			age(s.When, time.Now()), render.Line(s.Subject))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, cut(strings.TrimRight(line, " \n"), width)); err != nil {
			return err
		}
	}
	if foreign == 0 {
		return nil
	}
	_, err := fmt.Fprintln(out, "\nYou did not record the foreign runs on this machine. To see what one would do: hone trust RUN")
	return err
}

// width returns the columns of the terminal that stdout is; 0 if it is none.
func (a *app) width() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || !a.outTerminal {
		return 0
	}
	return columns
}

// cut shortens a line to columns of a terminal; 0 leaves it as it is.
func cut(line string, columns int) string {
	if columns == 0 {
		return line
	}
	return displaywidth.TruncateString(line, columns, "…")
}

// age words the time that has passed, in its largest unit; "-" if the beginning is zero
// or in the future.
func age(from, now time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(from); {
	case from.IsZero() || d < 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}

// summarize returns the summary of a run, even if its journal is unreadable.
func summarize(home *journal.Home, run string, foreign func(string, []journal.Event) int64) summary {
	s := summary{Run: run, Result: "died"}
	if works(home, run) {
		s.Result = "running"
	}
	events, err := home.Read(run)
	if err != nil || len(events) == 0 {
		s.Result = "damaged"
		return s
	}
	if start, err := runs.Started(events); err == nil {
		s.Loop, s.Model = start.Loop, start.Model
		l := recorded(start)
		s.role, s.second = second(l, start.Model)
		s.Subject = subject(l)
	}
	s.When = events[0].Time
	s.Foreign = foreign(run, events) != 0
	past := history.Read(events)
	spent := past.Ledger()
	s.Rounds, s.Tokens, s.Unconfirmed, s.Cost = past.State().Round, spent.Tokens, spent.Assumed, spent.Price()
	if end, ok := past.End(); ok {
		exit := exitStatus(end.Kind)
		s.Exit = &exit
		if s.Result != "running" {
			s.Result = string(end.Kind)
		}
	}
	return s
}
