package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

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

// Markdown returns what the run did as Markdown, for a summary of CI or a pull request. Texts of
// models and commands are code, in which nothing is markup, a link or a mention.
func (a Account) Markdown() string {
	var b strings.Builder
	b.WriteString("| | round | files | verdict | time | tokens | cost |\n|---|---|---|---|--:|--:|--:|\n")
	for _, r := range a.Rounds() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Outcome, r.Name(), code(r.FilesText(60)), code(r.Verdict), render.Duration(r.Took), r.Numbers().TokensText(), r.Numbers().CostText())
	}
	figures := a.figures(render.Short)
	if a.Numbers.Findings != nil {
		figures = append([]string{render.Count(*a.Numbers.Findings, "finding") + " left"}, figures...)
	}
	fmt.Fprintf(&b, "\n%s\n\n", strings.Join(figures, " · "))
	why, more := a.why()
	lines := []string{why}
	if more != "" {
		lines = append(lines, strings.Split(strings.TrimRight(more, "\n"), "\n")...)
	}
	if lines = append(lines, a.left(0)...); a.End.Said != "" {
		lines = append(lines, a.Said())
	}
	for _, line := range append(lines, a.Notes()...) {
		fmt.Fprintf(&b, "- %s\n", code(line))
	}
	return b.String()
}

// longestCode is where a text in a cell is cut, in columns.
const longestCode = 200

func code(text string) string {
	if text = render.Cut(render.Line(text), longestCode); text == "" {
		return ""
	}
	var b strings.Builder
	for _, c := range text {
		if c < unicode.MaxASCII && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			fmt.Fprintf(&b, "&#%d;", c)
		} else {
			b.WriteRune(c)
		}
	}
	return "<code>" + b.String() + "</code>"
}
