package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"hone"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
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

// leastRounds is how many rounds are shown on the lowest terminal.
const leastRounds = 5

// Lines returns the account and its rounds as the lines of a terminal with so many columns and rows. Rounds in
// the middle are left out if there are too many for it. Zero columns and rows mean that there is no
// terminal: nothing is cut or left out.
func (a Account) Lines(rounds []story.Round, c render.Colours, columns, rows int) []string {
	cut := func(line string) string {
		if columns == 0 {
			return line
		}
		return render.Cut(line, columns-1)
	}
	result := a.Standing.Text
	if a.foreign {
		result += ", foreign"
	}
	head := fmt.Sprintf("%s  %s  %s %s  %s ago", c.Bold(render.Line(journal.ShortRun(a.ID))), render.Line(a.Start.Loop), a.Standing.Mark.Mark(c), c.Bold(render.Line(result)),
		render.Age(a.Past.First().Time, time.Now()))
	if about := kinds.Subject(a.Loop); about != "" {
		head += "  " + render.Line(about)
	}
	lines := []string{cut(head)}
	if models := strings.Join(kinds.ModelNames(a.Loop, a.Start), " · "); models != "" {
		lines = append(lines, cut(c.Dim("  "+render.Line(models))))
	}
	rest := a.below(rounds, c, columns)
	for _, s := range a.Past.Attempts() {
		rest = append(rest, cut("  "+story.AttemptText(s, c)), cut("    "+c.Dim(render.Line(s.Dir))))
	}
	used := append(a.Numbers.Parts(render.Short), render.Duration(a.Numbers.Active), fmt.Sprintf("journal intact (%.12s)", a.Hash())) // else it would not have been read
	for _, line := range wrapped("  "+strings.Join(used, " · "), columns) {
		rest = append(rest, c.Dim(line))
	}
	rest = append(rest, a.commands(rounds, columns)...)

	var shown [][]string
	for _, r := range rounds {
		shown = append(shown, screen.RoundLines(r, c, columns, rounds[len(rounds)-1].Number))
	}
	if rows > 0 {
		all, room := shown, rows-len(lines)-len(rest)-2
		for most := min(len(all), max(leastRounds, room)); ; most-- {
			if more := len(all) - most; more > 0 {
				left := []string{cut(c.Dim(fmt.Sprintf("  … %s", render.Count(more, "more round"))))}
				shown = slices.Concat(all[:most/3], [][]string{left}, all[most/3+more:])
			}
			if most <= leastRounds || len(slices.Concat(shown...)) <= room {
				break
			}
		}
	}
	return slices.Concat(lines, slices.Concat(shown...), rest)
}

// The reason is left out if the last round says the same.
func (a Account) below(rounds []story.Round, c render.Colours, columns int) []string {
	why, more := a.why()
	var lines []string
	switch {
	case a.Working:
		lines, more = []string{"  the run is not finished"}, ""
	case !a.Ended:
		lines, more = []string{"  died: the process of the run ended without a result"}, ""
	case len(rounds) == 0 || a.End.Why != rounds[len(rounds)-1].Verdict && a.End.Why != history.CheckPasses:
		lines = wrapped("  "+render.Line(why), columns)
	default:
		more = ""
	}
	return slices.Concat(lines, a.told(more, columns), a.noteLines(c, columns))
}

func (a Account) commands(rounds []story.Round, columns int) []string {
	if a.Start.Redacted {
		return []string{"  the texts were replaced by hone export --redacted; more: --json"}
	}
	more, telling := "  more:", 0 // the last round that failed, or else the last
	for _, r := range slices.Backward(rounds) {
		if telling = max(telling, r.Number); r.Number > 0 && r.Outcome == story.Failed {
			telling = r.Number
			break
		}
	}
	if telling > 0 { // else only the check before the first round ran
		more += fmt.Sprintf(" --round %d  ", telling)
	}
	if len(a.Files) > 0 {
		more += " --diff  "
	}
	lines := wrapped(more+" --full   --html FILE", columns)
	if next := a.Next(); next != "" {
		lines = append(lines, nextLines("next:", next, columns)...)
	}
	return lines
}
