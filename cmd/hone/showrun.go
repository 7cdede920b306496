package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/cmd/hone/answer"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/screen"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/workspace"
)

// overview is a run on one screen.
type overview struct {
	ending  // without the end if the run has none
	past    *history.Past
	start   hone.Start
	loop    loop.Loop // nil if this program does not have it
	ended   bool
	working bool // a process works on it
	asked   bool // its questions are shown with buttons that answer them
	rounds  []rounds.Round
	colour  render.Colours
	columns int // of the terminal; 0 if stdout is none
	rows    int
}

// overviewOf returns what show prints of a run without flags.
func (a *app) overviewOf(home *journal.Home, run string, past *history.Past, start hone.Start, working bool) overview {
	own := kinds.Own(start)
	o := overview{past: past, start: start, loop: kinds.Recorded(start), working: working, rounds: rounds.Of(past.Events(), home.Get, own), colour: a.outColour}
	o.home, o.run, o.files, o.foreign = home, run, changedFiles(home, past, own), isForeign(home, run, past)
	o.end, o.ended = past.End()
	o.ended = o.ended && !working
	events := past.Events()
	last := events[len(events)-1]
	if o.active = time.Duration(last.Active) * time.Millisecond; working {
		o.active += time.Since(last.Time)
	}
	if n := len(o.rounds); working && n > 0 && o.rounds[n-1].Outcome == rounds.Unfinished {
		o.rounds[n-1].Outcome, o.rounds[n-1].Verdict = rounds.Running, "not finished yet"
	}
	if a.outSize != nil {
		o.columns, o.rows = a.outSize()
	}
	return o
}

// isForeign reports whether the user neither recorded a run here nor accepted it.
func isForeign(home *journal.Home, run string, past *history.Past) bool {
	var events []journal.Event
	for _, e := range past.Events() {
		events = append(events, e.Event)
	}
	return runs.Foreign(home)(run, events) != 0
}

// leastRounds is how many rows the rounds get at least.
const leastRounds = 5

// lines returns the lines of the screen. If there are too many rounds for a terminal,
// those in the middle are left out. What the user should know is cut if it leaves the
// rounds no room.
func (o overview) lines() []string {
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
	}
	return slices.Concat(head, o.roundLines(max(leastRounds, room-o.height(troubles))), troubles, tail)
}

// height returns how many rows of the terminal some lines take.
func (o overview) height(lines []string) int {
	rows := 0
	for _, line := range lines {
		rows += max(1, (render.Width(line)+o.columns-1)/max(1, o.columns))
	}
	return rows
}

// cut cuts a line to the terminal's width.
func (o overview) cut(line string) string {
	if o.columns == 0 {
		return line
	}
	return render.Cut(line, o.columns-1)
}

// heading says which run it is, how it ended, and what it was about.
func (o overview) heading() []string {
	mark, result := standing(o.past, o.working)
	if o.foreign {
		result += ", foreign"
	}
	head := fmt.Sprintf("%s  %s  %s %s  %s ago", o.colour.Bold(render.Line(journal.ShortRun(o.run))), render.Line(o.start.Loop), mark.Mark(o.colour), o.colour.Bold(render.Line(result)),
		age(o.past.Events()[0].Time, time.Now()))
	about := render.Line(kinds.Subject(o.loop))
	lines := []string{head}
	switch room := o.columns - 3 - render.Width(head); {
	case about == "":
	case o.columns == 0, render.Width(about) <= room, room >= 30:
		lines[0] += "  " + about
	default:
		lines = append(lines, "  "+about)
	}
	if models := strings.Join(kinds.ModelNames(o.loop, o.start), " · "); models != "" {
		lines = append(lines, o.colour.Dim("  "+render.Line(models)))
	}
	for i, line := range lines {
		lines[i] = o.cut(line)
	}
	return lines
}

// roundLines returns a line for each round, or two where a verdict is long and there is
// room. If room is greater than 0 there are at most so many lines: rounds in the middle
// are left out.
func (o overview) roundLines(room int) []string {
	layout := rounds.LayoutOf(o.rounds, o.columns)
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

// linesIn returns the lines of each round.
func (o overview) linesIn(l rounds.Layout) [][]string {
	var all [][]string
	for _, r := range o.rounds {
		all = append(all, r.Lines(o.colour, l))
	}
	return all
}

// leftOut words the rounds that are not shown.
func leftOut(list []rounds.Round) string {
	marks := map[rounds.Outcome]int{}
	for _, r := range list {
		marks[r.Outcome]++
	}
	text := fmt.Sprintf("… %s:", render.Count(len(list), "more round"))
	for _, mark := range []rounds.Outcome{rounds.Passed, rounds.Failed, rounds.Held, rounds.Unfinished} {
		if marks[mark] > 0 {
			text += fmt.Sprintf(" %d %s", marks[mark], mark)
		}
	}
	return text
}

// troubles says why a run is not done, and what the user should know.
func (o overview) troubles() []string {
	var lines []string
	switch why, more := o.why(); {
	case o.working:
		lines = append(lines, "  the run is not finished")
	case !o.ended:
		lines = append(lines, "  died: the process of the run ended without a result")
	case len(o.rounds) == 0 || o.end.Why != o.rounds[len(o.rounds)-1].Verdict:
		lines = append(lines, "  "+render.Line(why))
		for line := range strings.Lines(more) {
			lines = append(lines, "  | "+render.Line(strings.TrimSuffix(line, "\n")))
		}
	}
	for _, note := range o.allNotes() {
		lines = append(lines, "  "+rounds.Held.Mark(o.colour)+" "+render.Line(note))
	}
	return lines
}

// allNotes returns what else the user should know: what was declined, refused or restored,
// and what is to be decided.
func (o overview) allNotes() []string {
	notes := o.notes()
	if !o.ended {
		notes = o.declined()
	}
	if !o.asked && (!o.ended || answer.MayWait(o.end.Kind)) {
		notes = append(notes, answer.Notes(o.home, o.run, o.past.Waiting(), o.working)...)
	}
	notes = append(notes, o.refusals()...)
	if text := o.outages(); text != "" {
		notes = append(notes, text)
	}
	if back := o.past.RestoredTo(); back != nil && !o.end.Restored {
		notes = append(notes, restoredText(o.past, *back))
	}
	return notes
}

// outages returns when and why models did not reply; empty if there was no outage.
func (o overview) outages() string {
	events := o.past.Events()
	now := events[len(events)-1].Time
	if o.working {
		now = time.Now()
	}
	return rounds.OutagesText(events, now)
}

// restoredText says that the files of a run were restored to those of a round.
func restoredText(past *history.Past, round int) string {
	word := "undone"
	if round == past.State().Round {
		word = "redone"
	}
	return word + ": the files are as they were " + endOfRound(round)
}

// endOfRound names the time to which files were restored.
func endOfRound(round int) string {
	if round == 0 {
		return "before the first round"
	}
	return fmt.Sprintf("at the end of round %d", round)
}

// maxRefusals is how many edits are named that were not made.
const maxRefusals = 3

// refusals returns which edits were refused and not made later, and why. It leaves out
// those that other notes name: what the user declined, or has to decide.
func (o overview) refusals() []string {
	named := o.past.DeclinedPaths()
	for _, q := range o.past.Pending() {
		named = append(named, q.Path)
	}
	last := map[string]workspace.Verdict{}
	var paths []string
	for _, e := range o.past.Events() {
		c, ok := e.Payload.(history.Changed)
		if !ok || slices.Contains(named, c.Path) {
			continue
		}
		if _, known := last[c.Path]; !known {
			paths = append(paths, c.Path)
		}
		last[c.Path] = c.Verdict
	}
	var notes []string
	for _, path := range paths {
		switch v := last[path]; v.Ruling {
		case workspace.Allow, workspace.Drop:
		case workspace.Deny:
			notes = append(notes, path+" is refused: "+v.Reason)
		default:
			notes = append(notes, path+" is not changed: "+v.Reason)
		}
	}
	if more := len(notes) - maxRefusals; more > 1 {
		notes = append(notes[:maxRefusals], render.Count(more, "more edit")+" not made: -v")
	}
	return notes
}

// declined names the files whose changes the user declined.
func (o overview) declined() []string {
	if paths := o.past.DeclinedPaths(); len(paths) > 0 {
		return []string{"you declined changes of " + strings.Join(paths, ", ")}
	}
	return nil
}

// attempts returns a line for each attempt, and where they are; nil if there are none.
func (o overview) attempts() []string {
	var lines []string
	for _, s := range o.past.Attempts() {
		lines = append(lines, o.cut("  "+screen.AttemptText(s, o.colour)), o.cut("    "+o.colour.Dim(render.Line(s.Dir))))
	}
	return lines
}

// changed names the files that the run changed, if its rounds do not.
func (o overview) changed() []string {
	several := func(r rounds.Round) bool { return len(r.Changes()) > 1 }
	if len(o.files) == 0 || len(o.files) == 1 && len(o.rounds) > 0 && !slices.ContainsFunc(o.rounds, several) {
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

// totals returns what the run used, and that its journal is intact: the journal would
// not have been read if a line had been changed.
func (o overview) totals() []string {
	spent := attempts.Spent(o.home, o.run, o.past)
	parts := append(used(spent, spent.Price(), render.Short), render.Duration(o.active))
	intact := fmt.Sprintf("journal intact (%.12s)", o.hash())
	used := "  " + strings.Join(parts, " · ")
	if o.columns > 0 && render.Width(used+intact)+4 > o.columns {
		return []string{o.cut(o.colour.Dim(used)), o.cut("  " + o.colour.Dim(intact))}
	}
	return []string{o.colour.Dim(used + " · " + intact)}
}

// hash returns the hash of the last event, which covers the complete journal.
func (o overview) hash() string {
	events := o.past.Events()
	return events[len(events)-1].Hash()
}

// commands returns which flags show more, and what to type next.
func (o overview) commands() []string {
	if o.start.Redacted {
		return []string{"  the texts were replaced by hone export --redacted; more: --json"}
	}
	var flags []string
	if n := len(o.rounds); n > 0 {
		telling := o.rounds[n-1].Number
		for _, r := range slices.Backward(o.rounds) {
			if r.Outcome == rounds.Failed {
				telling = r.Number
				break
			}
		}
		flags = append(flags, fmt.Sprintf("--round %d", max(1, telling)))
	}
	if len(o.files) > 0 {
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
	if next := o.next(); next != "" {
		lines = append(lines, "  next: "+render.Escape(next))
	}
	return lines
}

// next returns what to type next; empty if there is nothing.
func (o overview) next() string {
	short := journal.ShortRun(o.run) + failure.Elsewhere(o.home.Workspace())
	switch {
	case o.working:
		return "hone watch " + short
	case !o.ended && !o.foreign:
		return "hone resume " + short
	}
	return o.ending.next()
}

// runResult returns how a run ended, or that it has not, as a mark and a word.
func runResult(past *history.Past, working bool) (rounds.Outcome, string) {
	end, ended := past.End()
	switch {
	case working:
		return rounds.Running, "running"
	case !ended:
		return rounds.Failed, "died"
	}
	return resultMark(end.Kind), string(cmp.Or(end.Kind, "ended"))
}

// standing is runResult for the user: a run that was undone after its end counts as undone.
func standing(past *history.Past, working bool) (rounds.Outcome, string) {
	mark, result := runResult(past, working)
	to := past.RestoredTo()
	end, _ := past.End()
	switch {
	case working || to == nil || *to == past.State().Round || end.Restored && *to == end.Best:
		return mark, result
	case *to == 0:
		return rounds.Unfinished, "undone"
	}
	return rounds.Unfinished, fmt.Sprintf("undone to round %d", *to)
}

// resultMark returns the mark of the way that a run ended.
func resultMark(kind hone.Kind) rounds.Outcome {
	switch failure.ExitStatus(kind) {
	case 0:
		return rounds.Passed
	case 4, 130:
		return rounds.Held
	}
	return rounds.Failed
}
