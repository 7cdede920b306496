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

// Lines returns the account and its rounds as the lines of a terminal with so many columns and rows. If
// there are too many rounds for it, those in the middle are left out. What the user should
// know is cut if it leaves the rounds no room. Zero columns and rows mean that there is no
// terminal: nothing is cut or left out.
func (a Account) Lines(rounds []story.Round, c render.Colours, columns, rows int) []string {
	return sheet{a, rounds, c, columns, rows}.lines()
}

type sheet struct {
	Account
	rounds  []story.Round
	colour  render.Colours
	columns int
	rows    int
}

// leastRounds is how many rows the rounds get at least.
const leastRounds = 5

func (o sheet) lines() []string {
	head, troubles := o.heading(), o.troubles()
	tail := slices.Concat(o.attempts(), o.changed(), o.totals(), o.commands())
	if o.rows == 0 {
		return slices.Concat(head, o.roundLines(0), troubles, tail)
	}
	room := o.rows - 1 - o.height(head) - o.height(tail)
	if room-o.height(troubles) < leastRounds {
		for i, line := range troubles {
			troubles[i] = o.cut(line)
		}
		troubles = troubles[:min(len(troubles), max(1, room-leastRounds))] // the first says why the run ended
	}
	return slices.Concat(head, o.roundLines(max(leastRounds, room-o.height(troubles))), troubles, tail)
}

func (o sheet) height(lines []string) int {
	rows := 0
	for _, line := range lines {
		rows += max(1, (render.Width(line)+o.columns-1)/max(1, o.columns))
	}
	return rows
}

func (o sheet) cut(line string) string {
	if o.columns == 0 {
		return line
	}
	return render.Cut(line, o.columns-1)
}

func (o sheet) wrapped(line string) []string {
	if o.columns == 0 {
		return []string{line}
	}
	return strings.Split(render.Wrap(line, o.columns), "\n")
}

func (o sheet) heading() []string {
	result := o.Standing.Text
	if o.foreign {
		result += ", foreign"
	}
	head := fmt.Sprintf("%s  %s  %s %s  %s ago", o.colour.Bold(render.Line(journal.ShortRun(o.ID))), render.Line(o.Start.Loop), o.Standing.Mark.Mark(o.colour), o.colour.Bold(render.Line(result)),
		render.Age(o.Past.First().Time, time.Now()))
	about := render.Line(kinds.Subject(o.Loop))
	lines := []string{head}
	switch room := o.columns - 3 - render.Width(head); {
	case about == "":
	case o.columns == 0, render.Width(about) <= room, room >= 30:
		lines[0] += "  " + about
	default:
		lines = append(lines, "  "+about)
	}
	if models := strings.Join(kinds.ModelNames(o.Loop, o.Start), " · "); models != "" {
		lines = append(lines, o.colour.Dim("  "+render.Line(models)))
	}
	for i, line := range lines {
		lines[i] = o.cut(line)
	}
	return lines
}

// A round has two lines where a verdict is long and there is room. If room is greater than 0 there are at most so many lines:
// rounds in the middle are left out.
func (o sheet) roundLines(room int) []string {
	layout := screen.LayoutOf(o.rounds, o.columns)
	all := o.linesIn(layout)
	height := len(slices.Concat(all...))
	if room == 0 {
		return slices.Concat(all...)
	}
	if uncut := slices.Concat(o.linesIn(layout.Uncut())...); len(uncut) > height && len(uncut) <= room {
		return uncut
	}
	if height <= room {
		return slices.Concat(all...)
	}
	each := height / len(all)
	shown := max(2, (room-1)/each)
	first := min(3, shown/2)
	last := len(all) - (shown - first)
	return slices.Concat(slices.Concat(all[:first]...), []string{o.cut("  " + o.colour.Dim(leftOut(o.rounds[first:last])))}, slices.Concat(all[last:]...))
}

func (o sheet) linesIn(l screen.Layout) [][]string {
	var all [][]string
	for _, r := range o.rounds {
		all = append(all, screen.RoundLines(r, o.colour, l))
	}
	return all
}

func leftOut(list []story.Round) string {
	marks := map[story.Outcome]int{}
	for _, r := range list {
		marks[r.Outcome]++
	}
	text := fmt.Sprintf("… %s:", render.Count(len(list), "more round"))
	for _, mark := range []story.Outcome{story.Passed, story.Failed, story.Held, story.Unfinished} {
		if marks[mark] > 0 {
			text += fmt.Sprintf(" %d %s", marks[mark], mark)
		}
	}
	return text
}

func (o sheet) troubles() []string {
	var lines []string
	switch why, more := o.why(); {
	case o.Working:
		lines = append(lines, "  the run is not finished")
	case !o.Ended:
		lines = append(lines, "  died: the process of the run ended without a result")
	case len(o.rounds) == 0 || o.End.Why != o.rounds[len(o.rounds)-1].Verdict && o.End.Why != history.CheckPasses:
		lines = append(lines, "  "+render.Line(why))
		for line := range strings.Lines(more) {
			lines = append(lines, "  | "+render.Line(strings.TrimSuffix(line, "\n")))
		}
	}
	if o.Ended {
		for _, line := range o.left(max(0, o.columns-len("    "))) {
			lines = append(lines, "    "+line)
		}
		if said := o.Said(); said != "" {
			lines = append(lines, o.wrapped("  "+said)...)
		}
	}
	for _, note := range o.Notes() {
		lines = append(lines, o.wrapped("  "+story.Held.Mark(o.colour)+" "+render.Line(note))...)
	}
	return lines
}

func (o sheet) attempts() []string {
	var lines []string
	for _, s := range o.Past.Attempts() {
		lines = append(lines, o.cut("  "+story.AttemptText(s, o.colour)), o.cut("    "+o.colour.Dim(render.Line(s.Dir))))
	}
	return lines
}

func (o sheet) changed() []string {
	several := func(r story.Round) bool { return len(r.Changes()) > 1 }
	if len(o.Files) == 0 || len(o.Files) == 1 && !o.Files[0].Judges && len(o.rounds) > 0 && !slices.ContainsFunc(o.rounds, several) {
		return nil
	}
	most := maxFiles
	if o.rows > 0 {
		most = max(2, min(maxFiles, o.rows/4))
	}
	var lines []string
	for _, line := range o.fileLines("−", most) {
		lines = append(lines, o.cut("  "+line))
	}
	return lines
}

// The journal would not have been read if a line had been changed.
func (o sheet) totals() []string {
	parts := append(o.Numbers.Parts(render.Short), render.Duration(o.Numbers.Active))
	intact := fmt.Sprintf("journal intact (%.12s)", o.Hash())
	used := "  " + strings.Join(parts, " · ")
	if o.columns > 0 && render.Width(used+intact)+4 > o.columns {
		return []string{o.cut(o.colour.Dim(used)), o.cut("  " + o.colour.Dim(intact))}
	}
	return []string{o.colour.Dim(used + " · " + intact)}
}

func (o sheet) commands() []string {
	if o.Start.Redacted {
		return []string{"  the texts were replaced by hone export --redacted; more: --json"}
	}
	var flags []string
	if n := o.tellingRound(); n > 0 {
		flags = append(flags, fmt.Sprintf("--round %d", n))
	}
	if len(o.Files) > 0 {
		flags = append(flags, "--diff")
	}
	flags = append(flags, "--full", "--html FILE")
	more := "  more: " + flags[0]
	for _, f := range flags[1:] {
		if o.columns == 0 || len(more+"   "+f) < o.columns {
			more += "   " + f
		}
	}
	lines := []string{more}
	if next := o.Next(); next != "" {
		if line := "  next: " + render.Escape(next); strings.HasPrefix(next, "hone ") { // a command is copied whole
			lines = append(lines, line)
		} else {
			lines = append(lines, o.wrapped(line)...)
		}
	}
	return lines
}

// It is 0 if only the check before the first round ran.
func (o sheet) tellingRound() (number int) {
	for _, r := range slices.Backward(o.rounds) {
		if r.Number > 0 && r.Outcome == story.Failed {
			return r.Number
		}
		number = max(number, r.Number)
	}
	return number
}
