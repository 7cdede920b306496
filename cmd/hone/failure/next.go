package failure

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"hone"
	"hone/journal"
	"hone/sandbox"
)

// NextLine returns a next action as a command line. The run is an id or "last".
func NextLine(n hone.Next, run string) string {
	line, then := "", ", then run: "
	if n.Verb == hone.Accept {
		then = ": "
	}
	switch n.Verb {
	case "":
	case hone.NewRun:
		line, then = "start a new run", ", then "
	case hone.Doctor:
		line = "hone doctor"
	case hone.Runs:
		_, at, _ := strings.Cut(run, " ")
		line = strings.TrimSpace("hone runs " + at)
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

// RunName returns the name of a run for a command line: "last" for the last run, and the id
// of any other.
func RunName(home *journal.Home, run string) string {
	if last, err := home.FindRun("last"); err == nil && last == run {
		return "last"
	}
	return run
}

// Elsewhere returns the flag -C with a directory that the working directory is not in;
// empty if it is. The flag names the directory as the user does who stands above it.
func Elsewhere(dir string) string {
	at, err := os.Getwd()
	if err == nil && sandbox.Within(dir, at) {
		return ""
	}
	if rel, err := filepath.Rel(at, dir); err == nil && filepath.IsLocal(rel) {
		dir = rel
	}
	quoted, err := syntax.Quote(dir, syntax.LangPOSIX)
	if err != nil {
		return ""
	}
	return " -C " + quoted
}
