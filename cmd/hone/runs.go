package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/screen"
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
On a terminal, lines are cut to its width, and a narrow one has fewer columns. With --json nothing is printed if
there are no runs.

The attempts of a run are listed below it; they work in copies of the directory.

RESULT is running, died, or how the run ended, such as done, rounds (all are used up) or blocked; undone if hone undo
has restored the files since. TASK is the run's check, query or task.

TOKENS counts the tokens that providers reported. +N is reserved for interrupted calls, whose use is unknown.
AGE is the time since the run started. The last line shows how much disk space the runs need; hone gc deletes old
runs.`,
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
	// Attempts are the runs that it started in copies of the directory; nil if it is no run
	// of attempts.
	Attempts []history.Attempt `json:"attempts,omitempty"`
	// Foreign means that the user recorded the run neither here nor accepted it.
	Foreign bool `json:"foreign,omitempty"`

	mark         rounds.Outcome
	standing     string        // Result, or that the run was undone since
	past         *history.Past // nil if the journal is unreadable, or if it is not needed
	models       []string      // as [modelNames] words them
	role, second string        // of the second model; empty if there is none
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
	var all []summary
	for _, id := range slices.Backward(ids) {
		all = append(all, summarize(home, id, id == working, foreign))
	}
	for _, s := range all {
		if s.Result == "died" {
			a.sayIncomplete(s.Run, failure.Elsewhere(home.Workspace()), s.past)
		}
	}
	use, useErr := report.UseOf(home) // another user's home may be unreadable in part
	if !asJSON {
		return a.printRuns(all, use, failure.Elsewhere(home.Workspace()))
	}
	if err := printJSON(a.out, all); err != nil || useErr != nil {
		return err
	}
	return json.NewEncoder(a.out).Encode(use)
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

// printRuns prints a line for each run and one about all of them, cut to the terminal's
// width. at is empty, or the flag -C for the command that it names.
func (a *app) printRuns(all []summary, use report.Use, at string) error {
	lines := [][]string{{"ID", "RESULT", "LOOP", "ROUNDS", "TOKENS", "AGE", "TASK"}}
	foreign := false
	for _, s := range all {
		foreign = foreign || s.Foreign
		lines = append(append(lines, s.cells(a.outColour)), s.attemptCells(a.outColour)...)
	}
	columns := 0
	if a.outSize != nil {
		columns, _ = a.outSize()
	}
	for _, line := range append(fittingTable(lines, columns), use.String()) {
		if columns > 0 {
			line = render.Cut(line, columns)
		}
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	if !foreign {
		return nil
	}
	_, err := fmt.Fprintln(a.out, "\nYou did not record the foreign runs on this machine. To see what one would do: hone trust RUN"+at)
	return err
}

// leastTask is the number of columns of a task's words for which others are left out.
const leastTask = 12

// fittingTable returns the lines of a table of runs. If a terminal has too few columns for
// the words of the tasks, it leaves out tokens, then rounds, then the loop. Zero columns
// mean that nothing is left out.
func fittingTable(rows [][]string, columns int) []string {
	right := []bool{false, false, false, true, true, true}
	for _, name := range []string{"TOKENS", "ROUNDS", "LOOP"} {
		var fixed [][]string
		for _, row := range rows {
			fixed = append(fixed, row[:len(row)-1])
		}
		widest := 0
		for _, line := range render.Aligned(fixed, right...) {
			widest = max(widest, render.Width(line))
		}
		if columns == 0 || widest+len("  ")+leastTask <= columns {
			break
		}
		i := slices.Index(rows[0], name)
		for n, row := range rows {
			rows[n] = slices.Concat(row[:i], row[i+1:])
		}
		right = slices.Delete(right, i, i+1)
	}
	return render.Aligned(rows, right...)
}

// cells returns the columns of a run in the list.
func (s summary) cells(c render.Colours) []string {
	result := s.mark.Mark(c) + " " + render.Line(s.standing)
	if s.Foreign {
		result += ", foreign"
	}
	tokens := render.Short(s.Tokens - s.Unconfirmed)
	if s.Unconfirmed > 0 {
		tokens += " +" + render.Short(s.Unconfirmed)
	}
	return []string{render.Line(journal.ShortRun(s.Run)), result, render.Line(s.Loop), fmt.Sprint(s.Rounds), tokens, age(s.When, time.Now()), render.Line(s.Subject)}
}

// attemptCells returns the columns of the run's attempts, whose runs are in copies. They
// are of the run's age.
func (s summary) attemptCells(c render.Colours) (rows [][]string) {
	for _, one := range s.Attempts {
		result := rounds.Running.Mark(c) + " running"
		switch {
		case one.Result != "":
			result = resultMark(one.Result).Mark(c) + " " + render.Line(string(one.Result))
		case s.Result != "running":
			result = rounds.Failed.Mark(c) + " died"
		}
		rows = append(rows, []string{" " + render.Line(journal.ShortRun(one.Run)), result, fmt.Sprintf("attempt %d", one.Number),
			fmt.Sprint(one.Rounds), render.Short(one.Tokens), "", render.Line(screen.ModelName(one.Model))})
	}
	return rows
}

// age words the time that has passed, in its largest unit; "-" if the beginning is zero
// or in the future.
func age(from, now time.Time) string {
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

// summarize returns the summary of a run, even if its journal is unreadable. working
// means that a process works on the run.
func summarize(home *journal.Home, run string, working bool, foreign func(string, []journal.Event) int64) summary {
	s, events := readSummary(home, run, working)
	s.Foreign = len(events) > 0 && foreign(run, events) != 0
	if s.Result != "died" {
		s.past = nil // a list of many runs does not need them all
	}
	return s
}

// readSummary returns the summary of a run without whether it is foreign, and its events;
// none if its journal is unreadable.
func readSummary(home *journal.Home, run string, working bool) (summary, []journal.Event) {
	s := summary{Run: run, Result: "damaged", mark: rounds.Failed}
	events, err := home.Read(run)
	if runs.OtherVersion(err) != "" {
		s.Result = "other version"
	}
	s.standing = s.Result
	if err != nil || len(events) == 0 {
		return s, nil
	}
	if start, err := runs.Started(events); err == nil {
		s.Loop, s.Model = start.Loop, start.Model
		l := kinds.Recorded(start)
		s.role, s.second = kinds.Second(l, start.Model)
		s.Subject, s.models = kinds.Subject(l), kinds.ModelNames(l, start)
	}
	s.When = events[0].Time
	s.past = history.Read(events)
	spent := attempts.Spent(home, run, s.past)
	s.Rounds, s.Tokens, s.Unconfirmed, s.Cost = s.past.State().Round, spent.Tokens, spent.Assumed, spent.Price()
	_, s.Result = runResult(s.past, working)
	s.mark, s.standing = standing(s.past, working)
	s.Attempts = s.past.Attempts()
	if end, ok := s.past.End(); ok {
		exit := failure.ExitStatus(end.Kind)
		s.Exit = &exit
	}
	return s, events
}
