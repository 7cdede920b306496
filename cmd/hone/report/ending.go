package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"hone"
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
	for _, line := range a.told(more, 0) {
		fmt.Fprintln(out, line)
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
	for _, line := range append(a.told(more, columns), a.noteLines(c, columns)...) {
		fmt.Fprintln(out, line)
	}
	run, next := a.name(), a.Next()
	diff := "hone show " + run + " --diff"
	if next != "" && next != diff {
		fmt.Fprintln(out, strings.Join(nextLines(c.Dim("next   "), next, columns), "\n"))
	}
	if len(a.Files) > 0 {
		fmt.Fprintf(out, "  %s %s\n  %s hone undo %s\n", c.Dim("review "), render.Escape(diff), c.Dim("undo   "), render.Escape(run))
	}
}

// told returns what follows the reason of the end: the rest of it, the findings that are left, the files, and what the model said.
// Zero columns mean that there is no terminal.
func (a Account) told(more string, columns int) (lines []string) {
	for line := range strings.Lines(more) {
		lines = append(lines, "  | "+render.Line(strings.TrimSuffix(line, "\n")))
	}
	if a.Ended {
		for _, line := range a.left(max(0, columns-len("  "))) {
			lines = append(lines, "  "+line)
		}
	}
	for _, line := range a.fileLines(columns > 0) {
		lines = append(lines, "  "+line)
	}
	if said := a.Said(); said != "" && a.Ended {
		lines = append(lines, wrapped("  "+said, columns)...)
	}
	return lines
}

func (a Account) noteLines(c render.Colours, columns int) (lines []string) {
	for _, note := range a.Notes() {
		lines = append(lines, wrapped("  "+c.Yellow("!")+" "+render.Line(note), columns)...)
	}
	return lines
}

func nextLines(word, next string, columns int) []string {
	if strings.HasPrefix(next, "hone ") { // a command is copied whole
		columns = 0
	}
	return wrapped("  "+word+" "+render.Escape(next), columns)
}

func wrapped(line string, columns int) []string {
	if columns == 0 {
		return []string{line}
	}
	return strings.Split(render.Wrap(line, columns), "\n")
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

func (a Account) figures(number func(int64) string) []string {
	return append([]string{render.Count(a.Numbers.Rounds, "round"), render.Duration(a.Numbers.Active)}, a.Numbers.Parts(number)...)
}

// maxFiles limits how many files the summary names.
const maxFiles = 10

func (a Account) fileLines(onTerminal bool) []string {
	named, rest, minus := a.Files, File{}, "-"
	if onTerminal {
		minus = "−"
	}
	if len(named) > maxFiles {
		named = named[:maxFiles-1]
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
