package failure

import (
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
		if len(n.Flags) > 0 {
			line, then = "use", ", then "
		}
	case hone.NewRun:
		line, then = "start a new run", ", then "
		if len(n.Flags) > 0 {
			line += " with"
		}
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
		line += flagText(f)
	}
	switch {
	case n.First != "" && line != "":
		line = n.First + then + line
	case n.First != "":
		line = n.First
	}
	if n.Remark != "" {
		line += ", " + n.Remark
	}
	if n.Or == nil {
		return line
	}
	or := NextLine(*n.Or, run)
	if line != "" {
		return line + "; or " + or
	}
	return or
}

// NoticeText returns a notice about the last run with what to do about it.
func NoticeText(n hone.Notice) string {
	if next := NextLine(n.Next, "last"); next != "" {
		return n.Text + "; " + next
	}
	return n.Text
}

// flagText returns a flag after a space.
func flagText(f hone.Flag) string {
	switch {
	case f.Value == "":
		return " --" + f.Name
	case f.Name == "prove": // which needs no value
		return " --" + f.Name + "=" + f.Value
	}
	return " --" + f.Name + " " + f.Value
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
