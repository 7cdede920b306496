package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"mvdan.cc/sh/v3/syntax"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/screen"
	"hone/internal/render"
)

// Print prints why the run stopped, what it changed and used, and what to type next. Columns
// are those of the terminal, on which it looks better; 0 if out is none.
func (a Account) Print(out io.Writer, c render.Colours, columns int) {
	if columns > 0 {
		a.printOnTerminal(out, c, columns)
		return
	}
	for _, note := range a.Notes() {
		fmt.Fprintf(out, "note: %s\n", render.Line(note))
	}
	why, more := a.why()
	fmt.Fprintf(out, "%s (%s)\n", why, strings.Join(a.figures(render.Tokens), ", "))
	printMore(out, more)
	for _, line := range append(a.left(0), a.fileLines("-", maxFiles)...) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if said := a.Said(); said != "" {
		fmt.Fprintf(out, "  %s\n", said)
	}
	if next := a.Next(); next != "" {
		fmt.Fprintf(out, "next: %s\n", render.Escape(next))
	}
}

func (a Account) printOnTerminal(out io.Writer, c render.Colours, columns int) {
	used := strings.Join(a.figures(render.Short), " · ")
	mark := a.Standing.Mark.Mark(c)
	why, more := a.why()
	why = strings.Replace(why, "done: ", "done  ", 1)
	gap := columns - 1 - displaywidth.String("x "+why+used)
	if gap < 2 {
		fmt.Fprintf(out, "%s %s\n  %s\n", mark, c.Bold(why), c.Dim(used))
	} else {
		fmt.Fprintf(out, "%s %s%s%s\n", mark, c.Bold(why), strings.Repeat(" ", min(gap, 8)), c.Dim(used))
	}
	printMore(out, more)
	for _, line := range append(a.left(columns-len("  ")), a.fileLines("−", maxFiles)...) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if said := a.Said(); said != "" {
		fmt.Fprintln(out, render.Wrap("  "+said, columns))
	}
	for _, note := range a.Notes() {
		fmt.Fprintln(out, render.Wrap("  "+c.Yellow("!")+" "+render.Line(note), columns))
	}
	for _, n := range a.commands() {
		line := fmt.Sprintf("  %s %s", c.Dim(fmt.Sprintf("%-7s", n[0])), render.Escape(n[1]))
		if n[0] == "next" && !strings.HasPrefix(n[1], "hone ") { // a command is copied whole
			line = render.Wrap(line, columns)
		}
		fmt.Fprintln(out, line)
	}
}

// The reason may say already what is in the way.
func (a Account) left(columns int) []string {
	if a.End.Kind == hone.KindDone || a.End.Kind == hone.KindBlocked {
		return nil
	}
	return screen.FindingLines(a.End.Findings, columns, "hone show "+a.name())
}

// Said quotes what the model said last; empty if it said nothing.
func (a Account) Said() string {
	switch {
	case a.End.Said == "":
		return ""
	case a.End.Kind == hone.KindDone:
		return "the model says: \"" + render.Line(a.End.Said) + "\""
	}
	return "the model's last words: \"" + render.Line(a.End.Said) + "\""
}

func printMore(out io.Writer, more string) {
	if more != "" {
		fmt.Fprintf(out, "  | %s\n", strings.ReplaceAll(strings.TrimRight(render.Escape(more), "\n"), "\n", "\n  | "))
	}
}

func (a Account) figures(number func(int64) string) []string {
	return append([]string{render.Count(a.Numbers.Rounds, "round"), render.Duration(a.Numbers.Active)}, a.Numbers.Parts(number)...)
}

// maxFiles limits how many files the summary names.
const maxFiles = 10

func (a Account) fileLines(minus string, most int) []string {
	named, rest := a.Files, File{}
	if len(named) > most {
		named = named[:most-1]
		for _, f := range a.Files[len(named):] {
			rest.Added, rest.Removed = rest.Added+f.Added, rest.Removed+f.Removed
		}
		rest.Path = render.Count(len(a.Files)-len(named), "more file")
		named = append(slices.Clone(named), rest)
	}
	longest := 0
	for _, f := range named {
		longest = max(longest, displaywidth.String(render.Line(f.Path)))
	}
	var lines []string
	for _, f := range named {
		path := render.Line(f.Path)
		line := path + strings.Repeat(" ", longest-displaywidth.String(path)+2) + render.StatText(f.Added, f.Removed, minus)
		if f.Judges {
			line += "  (part of the check)"
		}
		lines = append(lines, line)
	}
	return lines
}

func (a Account) commands() [][2]string {
	at, run, next := failure.Elsewhere(a.Home.Workspace()), a.name(), a.Next()
	diff := "hone show " + run + " --diff"
	var list [][2]string
	if next != "" && next != diff {
		list = append(list, [2]string{"next", next})
	}
	if len(a.Files) == 0 {
		return list
	}
	list = append(list, [2]string{"review", diff}, [2]string{"undo", "hone undo " + run})
	if _, err := os.Stat(filepath.Join(a.Home.Workspace(), ".git")); err == nil && a.End.Kind == hone.KindDone {
		list = append(list, [2]string{"keep", fmt.Sprintf("git%[1]s add %[2]s && git%[1]s commit", at, a.added(at == "" && !isHere(a.Home.Workspace())))})
	}
	return list
}

// maxAdded limits how many files the command names that keeps a change.
const maxAdded = 4

// They are the changed files if these are few, because -A also adds the loop's own files. below means that git runs in a
// subdirectory; there :/ is the root.
func (a Account) added(below bool) string {
	if len(a.Files) > maxAdded {
		return "-A"
	}
	var args []string
	for _, f := range a.Files {
		path := f.Path
		if below {
			path = ":/" + path
		}
		quoted, err := syntax.Quote(path, syntax.LangPOSIX)
		if err != nil || strings.HasPrefix(f.Path, "-") || strings.HasPrefix(f.Path, ":") {
			return "-A"
		}
		args = append(args, quoted)
	}
	return strings.Join(args, " ")
}

func isHere(dir string) bool {
	here, err := os.Stat(".")
	there, err2 := os.Stat(dir)
	return err == nil && err2 == nil && os.SameFile(here, there)
}
