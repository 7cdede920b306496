package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone"
	"hone/internal/git"
	"hone/journal"
)

// exitStatus returns the exit status for the way that a run ended. Users'
// scripts depend on these numbers.
func exitStatus(kind hone.Kind) int {
	switch kind {
	case hone.KindDone:
		return 0
	case hone.KindRounds, hone.KindStuck, hone.KindUnreadable, kindDiffers:
		return 1
	case hone.KindUsage, hone.KindPrompt:
		return 2
	case hone.KindBudget, hone.KindContext:
		return 3
	case hone.KindBlocked:
		return 4
	case hone.KindInterrupted:
		return 130
	}
	return 5 // hone.KindFailed
}

// kindDiffers is the end of a replay that differs from the recorded run.
const kindDiffers hone.Kind = "differs"

// nextStep returns what to type after a run has ended; empty if there is
// nothing. The changes of a run that went in circles may be worth nothing.
func nextStep(home *journal.Home, run string, end hone.End) string {
	if _, err := os.Lstat(filepath.Join(home.Dir(), "runs", run+".jsonl")); errors.Is(err, fs.ErrNotExist) {
		return "start a new run: the journal of this one was removed while it ran, so it cannot be resumed (git clean -fdx removes .hone; git clean -fdx -e .hone does not)"
	}
	run = runName(home, run) + elsewhere(home.Workspace())
	line := nextLine(end.Next, run)
	if end.Kind == hone.KindStuck {
		line += "; or take all changes back: hone undo " + run
	}
	return line
}

// runName returns "last" for the last run, and the id of any other.
func runName(home *journal.Home, run string) string {
	if last, err := home.FindRun("last"); err == nil && last == run {
		return "last"
	}
	return run
}

// nextLine returns a next action as a command line. The run is an id or "last".
func nextLine(n hone.Next, run string) string {
	line, then := "", ", then run: "
	switch n.Verb {
	case "":
	case hone.NewRun:
		line, then = "start a new run", ", then "
	case hone.Doctor:
		line = "hone doctor"
	default:
		if n.Run != "" {
			_, at, _ := strings.Cut(run, " ")
			run = strings.TrimSpace(journal.ShortRun(n.Run) + " " + at)
		}
		line = fmt.Sprintf("hone %s %s", n.Verb, run)
	}
	for _, f := range n.Flags {
		line += strings.TrimRight(" --"+f.Name+" "+f.Value, " ")
	}
	switch {
	case n.First != "" && line != "":
		line = n.First + then + line
	case n.First != "":
		line = n.First
	}
	if n.Or != "" && line != "" {
		return line + "; or " + n.Or
	}
	return cmp.Or(line, n.Or)
}

// usage returns an error about a command line or a configuration, with the next
// thing to type.
func usage(why, hint string) error { return &hone.UsageError{Why: why, Hint: hint} }

// failure is why a command failed, and the next thing to type.
type failure struct {
	kind hone.Kind
	why  string
	hint string // may be empty
	err  error  // the cause; may be nil
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.why
	}
	return fmt.Sprintf("%s: %v", f.why, f.err)
}

func (f *failure) Unwrap() error { return f.err }

// failed returns err as a failure of the environment.
func failed(err error, hint string) error {
	return &failure{kind: hone.KindFailed, why: err.Error(), hint: hint}
}

// explained returns err as a failure if err itself determines how the program
// ends. at is empty, or the flag -C for the commands in the hint.
func explained(err error, at string) (f *failure, ok bool) {
	var stop *hone.Stop
	var usage *hone.UsageError
	var foreign *git.ForeignError
	switch {
	case errors.As(err, &stop):
		return &failure{kind: stop.Kind, why: stop.Error(), hint: nextLine(stop.Next, "last"+at)}, true
	case errors.As(err, &usage):
		return &failure{kind: hone.KindUsage, why: usage.Why, hint: usage.Hint}, true
	case errors.As(err, &foreign):
		return &failure{kind: hone.KindUsage, why: foreign.Error(), hint: foreign.Advice}, true
	}
	ok = errors.As(err, &f)
	return f, ok
}
