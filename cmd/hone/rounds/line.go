package rounds

import (
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/lazyregexp"
	"hone/internal/render"
)

// Layout is the room for the lines of rounds.
type Layout struct {
	Columns int // of the terminal; 0 means that lines are not cut
	// Last is the largest number of a round; Files and Verdict are the columns of these.
	Last, Files, Verdict int
	// Whole gives a verdict that does not fit a line of its own; else it is cut.
	Whole bool
}

// LayoutFor returns the layout of rounds whose number is at most last, on a terminal
// with so many columns, before it is known what they will say.
func LayoutFor(columns, last int) Layout {
	columns = min(columns, widestLine)
	return Layout{Columns: columns, Last: last, Files: (columns - 1) / 4, Verdict: columns, Whole: true}
}

// LayoutOf returns the layout of all these rounds.
func LayoutOf(all []Round, columns int) Layout {
	l := Layout{Columns: columns}
	most := 40
	if columns > 0 {
		most = columns / 3
	}
	for _, r := range all {
		l.Last = max(l.Last, r.Number)
		l.Files = max(l.Files, min(most, render.Width(r.FilesText(most))))
		l.Verdict = max(l.Verdict, min(60, render.Width(render.Line(r.Verdict))))
	}
	return l
}

// Uncut returns the layout in which a verdict that does not fit has a line of its own.
func (l Layout) Uncut() Layout {
	l.Columns = min(l.Columns, widestLine)
	l.Verdict, l.Whole = l.Columns, true
	return l
}

// Name names the round.
func (r Round) Name() string {
	if r.Number == 0 {
		return "start"
	}
	return fmt.Sprintf("round %d", r.Number)
}

// A round fits one line from a width of wideColumns. The lines of a run that is not over
// are no wider than widestLine.
const (
	wideColumns = 64
	widestLine  = 120
)

// longestVerdict is where a verdict is cut even if lines are not.
const longestVerdict = 200

// Lines returns the round as one line, or as two: on a narrow terminal the verdict has a
// line of its own, and so has one that is not to be cut.
func (r Round) Lines(c render.Colours, l Layout) []string {
	name := render.Pad(r.Name(), len(Round{Number: l.Last}.Name()))
	figures := c.Dim(fmt.Sprintf("%5s %5s", render.Duration(r.Took), render.Short(r.Tokens)))
	head := fmt.Sprintf("%s %s  ", r.Outcome.Mark(c), name)
	fixed := len("x ") + len(name) + len("  ") + len("  ") + len("12.3s 12.3k")
	rest := longestVerdict
	if l.Columns > 0 {
		rest = l.Columns - 1 - fixed
		if l.Files > 0 {
			rest -= l.Files + len("  ")
		}
		if l.Columns < wideColumns || l.Whole && render.Width(cut(r.Verdict, longestVerdict)) > rest {
			files := l.Columns - fixed
			return []string{head + render.Pad(r.FilesText(files), files) + " " + figures, "    " + cut(r.Verdict, l.Columns-5)}
		}
	}
	if l.Files > 0 {
		head += render.Pad(r.FilesText(l.Files), l.Files) + "  "
	}
	return []string{head + render.Pad(cut(r.Verdict, rest), min(rest, l.Verdict)) + "  " + figures}
}

// cut returns a text on one line that is safe to print, cut to so many columns.
func cut(text string, columns int) string {
	return render.Cut(strings.ReplaceAll(render.Line(text), "\t", " "), columns)
}

// FilesText names the files that changed, with the lines that were added and removed,
// in so many columns.
func (r Round) FilesText(columns int) string {
	changes := r.Changes()
	added, removed := 0, 0
	for _, c := range changes {
		added, removed = added+c.Added, removed+c.Removed
	}
	lines := render.StatText(added, removed, "−")
	switch len(changes) {
	case 0:
		return ""
	case 1:
		return shortPath(changes[0].Path, columns-render.Width(lines)-1) + " " + lines
	}
	return render.Count(len(changes), "file") + " " + lines
}

// shortPath cuts the start of a path.
func shortPath(path string, columns int) string {
	path = render.Line(path)
	runes := []rune(path)
	for len(runes) > 1 && render.Width(string(runes)) > max(4, columns) {
		runes = runes[1:]
		runes[0] = '…'
	}
	return string(runes)
}

// gist returns the line of the first finding that says most, after the number of findings
// and how they differ from those of the round before.
func gist(findings, before []check.Finding) string {
	text := findingLine(findings[0])
	more, inFiles := check.Count(findings)-1, strings.Contains(check.Tally(findings), " in ")
	switch {
	case more > 0 && inFiles:
		text = fmt.Sprintf("%s: %s", countText(findings, before), text)
	case more > 0:
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
}

// findingLine returns a finding in one line: where it is, and what it says.
func findingLine(f check.Finding) string {
	text := tellingLine(f.Text)
	if f.File != "" && !strings.Contains(text, f.File) {
		text = f.Place() + ": " + text
	}
	return text
}

// maxFindings is how many findings are named where a run begins or ends.
const maxFindings = 3

// FindingLines returns the first of the findings that block, one a line that is safe to
// print, and how many more there are: more says how to see those. The lines have at most
// so many columns; 0 means that only very long ones are cut.
func FindingLines(findings []check.Finding, columns int, more string) []string {
	if columns == 0 {
		columns = longestVerdict
	}
	blocking := slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return !f.Blocks() })
	named := blocking[:min(len(blocking), maxFindings)]
	var lines []string
	for _, f := range named {
		lines = append(lines, cut(findingLine(f), columns))
	}
	if rest := check.Count(blocking) - check.Count(named); rest > 0 {
		lines = append(lines, fmt.Sprintf("… %d more: %s", rest, more))
	}
	return lines
}

// countText returns how many findings there are, and how they differ from those before.
func countText(findings, before []check.Finding) string {
	text := check.Tally(findings)
	if difference := check.Difference(before, findings); difference != "" {
		text += " (" + difference + ")"
	}
	return text
}

// tellingLine returns the line of a text, or of the output in it, that best says what is
// wrong: the first error of pytest; or else the first line that names an error, starts
// with a position, as a failed test of Go prints it, or is a heading, in this order. If
// there is none, it returns the last line of an output, or else the first line.
func tellingLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	output := slices.IndexFunc(lines, headsOutput)
	if output < 0 || output == len(lines)-1 {
		return strings.TrimSpace(lines[0])
	}
	lines = withoutSource(lines[output+1:])
	for _, tells := range []func(string) bool{pytestError.MatchString, namesError, position.MatchString, headsFailure.MatchString} {
		if i := slices.IndexFunc(lines, tells); i >= 0 {
			return strings.TrimSpace(lines[i])
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// withoutSource returns lines without the source that a traceback of Python quotes, such
// as a failed assertion: the error follows it.
func withoutSource(lines []string) []string {
	var rest []string
	for i, line := range lines {
		if i == 0 || !tracebackPlace.MatchString(lines[i-1]) {
			rest = append(rest, line)
		}
	}
	return rest
}

var (
	pytestError    = lazyregexp.New(`^E {2,}\S`)
	tracebackPlace = lazyregexp.New(`^\s*File ".*", line [0-9]+`)

	position = lazyregexp.New(`^\s*[^\s:]+\.[A-Za-z]+:[0-9]+: `)
	// headsFailure matches the lines of go test, pytest and cargo test that say only that
	// something failed.
	headsFailure = lazyregexp.New(`^\s*(--- FAIL|FAIL\b|={3,} |_{3,} |failures:|test .* FAILED$)`)
)

// headsOutput reports whether the output of a program follows a line, as checks and
// builds write it.
func headsOutput(line string) bool {
	return line == "STDOUT:" || line == "STDERR:" || strings.HasPrefix(line, "Its ") && strings.HasSuffix(line, ":")
}

func namesError(line string) bool {
	if headsFailure.MatchString(line) {
		return false
	}
	line = strings.ToLower(line)
	for _, word := range []string{"error", "undefined", "panic:", "assert", "fail", "expected", "exception", "cannot "} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}
