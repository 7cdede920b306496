package failure

import (
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"hone"
	"hone/journal"
	"hone/sandbox"
)

// NextLine returns a next action as a command line. The run is an id or "last", and -C may
// follow.
func NextLine(n hone.Next, run string) string {
	line := n.First
	if action := actionText(n, run); action != "" {
		line = lead(n) + action
	}
	if n.Remark != "" {
		line += ", " + n.Remark
	}
	if n.Or == nil {
		return line
	}
	or := NextLine(*n.Or, run)
	if line == "" {
		return or
	}
	return line + "; or " + or
}

func lead(n hone.Next) string {
	switch {
	case n.First == "" && n.Verb == "":
		return "use"
	case n.First == "":
		return ""
	case n.Verb == "":
		return n.First + " with"
	case n.Verb == hone.NewRun:
		return n.First + ", then "
	case n.Verb == hone.Accept, n.Verb == hone.Watch:
		return n.First + ": "
	}
	return n.First + ", then run: "
}

func actionText(n hone.Next, run string) string {
	flags := ""
	for _, f := range n.Flags {
		flags += " --" + f.Name
		switch {
		case f.Value == "":
		case f.Name == "prove": // which needs no value
			flags += "=" + f.Value
		default:
			flags += " " + f.Value
		}
	}
	switch {
	case n.Verb == "":
		return flags
	case n.Verb != hone.NewRun:
		return "hone " + string(n.Verb) + object(n, run) + flags
	case flags != "":
		return "start a new run with" + flags
	}
	return "start a new run"
}

func object(n hone.Next, run string) string {
	name, at, elsewhere := strings.Cut(run, " ")
	if elsewhere {
		at = " " + at
	}
	if n.Dir != "" {
		at = Elsewhere(n.Dir)
	}
	switch {
	case n.Verb == hone.Doctor:
		return ""
	case n.Verb == hone.Runs, n.Verb == hone.Watch:
		return at
	case n.Verb == hone.Accept && n.Dir != "":
		return " " + Quoted(n.Dir)
	case n.Run != "":
		name = journal.ShortRun(n.Run)
	}
	return " " + name + at
}

// Quoted returns a path as a word of a command line.
func Quoted(path string) string {
	word, err := syntax.Quote(path, syntax.LangPOSIX)
	if err != nil {
		return "DIR"
	}
	return word
}

// NoticeText returns a notice about the last run with what to do about it.
func NoticeText(n hone.Notice) string {
	if next := NextLine(n.Next, "last"); next != "" {
		return n.Text + "; " + next
	}
	return n.Text
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
