package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/cmd/hone/kinds"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
)

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
