package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"
	"mvdan.cc/sh/v3/syntax"

	"hone"
	"hone/cmd/hone/answer"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/patch"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/rounds"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/workspace/treepath"
)

// Ending is how a run ended, and what the user may do next.
type Ending struct {
	End    hone.End
	Active time.Duration // that it worked
	Files  []File        // nil if they are not shown

	home  *journal.Home
	run   string
	known model.Usage // what providers reported
	check string      // the command line that decided; empty if there is none
	// foreign means that the user neither recorded the run here nor accepted it.
	foreign bool
}

// next returns what to type next; may be empty. For a foreign run it is hone trust, without
// which resume and undo refuse to work.
func (s Ending) next() string {
	if s.foreign {
		return "hone trust " + journal.ShortRun(s.run) + failure.Elsewhere(s.home.Workspace()) + "; the run is foreign: you did not record it on this machine"
	}
	return nextStep(s.home, s.run, s.End)
}

// nextStep returns what to type after a run has ended; empty if there is
// nothing. The changes of a run that went in circles may be worth nothing.
func nextStep(home *journal.Home, run string, end hone.End) string {
	if _, err := os.Lstat(filepath.Join(home.Dir(), "runs", run+".jsonl")); errors.Is(err, fs.ErrNotExist) {
		return "start a new run: the journal of this one was removed while it ran, so it cannot be resumed (git clean -fdx removes .hone; git clean -fdx -e .hone does not)"
	}
	run = failure.RunName(home, run) + failure.Elsewhere(home.Workspace())
	return failure.NextLine(end.Next, run)
}

// EndingOf returns how a run has just ended, without its files. If it changed the tree and
// there is nothing else to do, the user reviews that next.
func EndingOf(home *journal.Home, run string, past *history.Past, end hone.End, active time.Duration) Ending {
	s := Ending{End: end, Active: active, home: home, run: run, known: past.Ledger().Known, check: checkOf(past)}
	if answer.MayWait(end.Kind) {
		s.End.Notes = append(slices.Clone(end.Notes), answer.Notes(home, run, past.Waiting(), false)...)
	}
	if note := undoneNote(past, run+failure.Elsewhere(home.Workspace())); note != "" && !end.Restored {
		s.End.Notes = append(slices.Clone(s.End.Notes), note)
	}
	if end.Next.IsZero() && changedTree(past) {
		s.End.Next = hone.Next{Verb: hone.Show, Flags: []hone.Flag{{Name: "diff"}}}
	}
	return s
}

// RecordedEnding returns how a recorded run ended, without its files and what it used. active
// is how long it had worked.
func RecordedEnding(r *recorded.Run, end hone.End, active time.Duration) Ending {
	if _, err := kinds.Of(r.Start); err != nil && end.Next.Verb == hone.Resume {
		first := r.Resume()
		if end.Next.First != "" {
			first = end.Next.First + ", then " + first
		}
		end.Next = hone.Next{First: first, Or: end.Next.Or}
	}
	return Ending{End: end, Active: active, home: r.Home, run: r.ID, foreign: r.Foreign(), check: checkOf(r.Past)}
}

// checkOf returns the command line of a run's check; empty if its loop has another check.
func checkOf(past *history.Past) string {
	var settings struct{ Check string }
	if start, ok := past.First().Payload.(hone.Start); ok {
		_ = json.Unmarshal(start.Settings, &settings)
	}
	return settings.Check
}

// undoneNote says that a run was undone after its last round, and how to redo it; empty
// if it was not. run may be followed by -C.
func undoneNote(past *history.Past, run string) string {
	to, last := past.RestoredTo(), past.State().Round
	switch {
	case to == nil || *to == last:
		return ""
	case *to == 0:
		return fmt.Sprintf("the run was undone: the files are as they were before it; to redo it, run: hone undo %s --to-round %d", run, last)
	}
	return fmt.Sprintf("the run was undone: the files are as they were at the end of round %d; to redo it, run: hone undo %s --to-round %d", *to, run, last)
}

// File is a file that a run changed, with the lines that it added and removed.
type File struct {
	Path           string
	Added, Removed int
	Judges         bool // it judges the work
}

// ChangedFiles returns the files that differ from those that the run found, without
// the loop's own; nil if that cannot be read. Those that judge the work come first, then
// those of the user's own tools: the summary may fold the others.
func ChangedFiles(home *journal.Home, past *history.Past, own, judges func(string) bool) []File {
	deltas, err := past.AllChanges(home.Get)
	if err != nil {
		return nil
	}
	var files []File
	for _, d := range deltas {
		if own != nil && own(d.Path) {
			continue
		}
		f := File{Path: d.Path, Judges: judges(d.Path)}
		if patch.Missing(home, d) == "" {
			before, _ := home.Get(d.Before.Digest) // nil with an error: no lines are counted
			after, _ := home.Get(d.After.Digest)
			f.Added, f.Removed = render.Stat(before, after)
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b File) int { return a.rank() - b.rank() })
	return files
}

// rank orders files: what judges the work, the user's own tools, all others.
func (f File) rank() int {
	switch {
	case f.Judges:
		return 0
	case treepath.ToolReason(f.Path) != "":
		return 1
	}
	return 2
}

// changedTree reports whether the tree differs from the one that the run found.
func changedTree(past *history.Past) bool {
	opened, ok := past.Opened()
	return ok && past.State().Tree != opened.Tree
}

// Print prints why the run stopped, what it changed and used, and what to type next. Columns
// are those of the terminal, on which it looks better; 0 if out is none.
func (s Ending) Print(out io.Writer, c render.Colours, columns int) {
	if columns > 0 {
		s.printOnTerminal(out, c, columns)
		return
	}
	for _, note := range s.notes() {
		fmt.Fprintf(out, "note: %s\n", render.Line(note))
	}
	why, more := s.why()
	fmt.Fprintf(out, "%s (%s)\n", why, strings.Join(s.figures(render.Tokens), ", "))
	printMore(out, more)
	for _, line := range append(s.left(0), s.fileLines("-", maxFiles)...) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if said := s.said(); said != "" {
		fmt.Fprintf(out, "  %s\n", said)
	}
	if next := s.next(); next != "" {
		fmt.Fprintf(out, "next: %s\n", render.Escape(next))
	}
}

// maxCheck is how much of a check's command line the end names.
const maxCheck = 40

// printOnTerminal prints the summary for a terminal.
func (s Ending) printOnTerminal(out io.Writer, c render.Colours, columns int) {
	used := strings.Join(s.figures(render.Short), " · ")
	mark := markOf(s.End.Kind).Mark(c)
	why, more := s.why()
	why = strings.Replace(why, "done: ", "done  ", 1)
	gap := columns - 1 - displaywidth.String("x "+why+used)
	if gap < 2 {
		fmt.Fprintf(out, "%s %s\n  %s\n", mark, c.Bold(why), c.Dim(used))
	} else {
		fmt.Fprintf(out, "%s %s%s%s\n", mark, c.Bold(why), strings.Repeat(" ", min(gap, 8)), c.Dim(used))
	}
	printMore(out, more)
	for _, line := range append(s.left(columns-len("  ")), s.fileLines("−", maxFiles)...) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if said := s.said(); said != "" {
		fmt.Fprintln(out, render.Wrap("  "+said, columns))
	}
	for _, note := range s.notes() {
		fmt.Fprintln(out, render.Wrap("  "+c.Yellow("!")+" "+render.Line(note), columns))
	}
	for _, n := range s.commands() {
		line := fmt.Sprintf("  %s %s", c.Dim(fmt.Sprintf("%-7s", n[0])), render.Escape(n[1]))
		if n[0] == "next" && !strings.HasPrefix(n[1], "hone ") { // a command is copied whole
			line = render.Wrap(line, columns)
		}
		fmt.Fprintln(out, line)
	}
}

// left returns the first of the findings that are left, one a line of so many columns, unless
// the reason says what is in the way.
func (s Ending) left(columns int) []string {
	if s.End.Kind == hone.KindDone || s.End.Kind == hone.KindBlocked {
		return nil
	}
	return rounds.FindingLines(s.End.Findings, columns, "hone show "+failure.RunName(s.home, s.run)+failure.Elsewhere(s.home.Workspace()))
}

// said quotes what the model said last; empty if it said nothing, or if the run is done.
func (s Ending) said() string {
	if s.End.Said == "" {
		return ""
	}
	return "the model's last words: \"" + render.Line(s.End.Said) + "\""
}

// Why returns the kind and the reason of the end in one line.
func (s Ending) Why() string {
	why, _ := s.why()
	return why
}

// why returns the kind and the reason of the end in one line, and the details.
func (s Ending) why() (why, more string) {
	why, more, _ = strings.Cut(s.End.Why, "\n")
	why = render.Line(why)
	if why == string(s.End.Kind) {
		return why, more
	}
	if more, ok := strings.CutPrefix(why, history.CheckPasses); ok && s.check != "" && s.End.Kind == hone.KindDone {
		why = render.Cut(render.Line(s.check), maxCheck) + " passes" + more
	}
	word := string(s.End.Kind)
	if s.End.Kind == hone.KindRounds {
		word = "stopped"
	}
	return word + ": " + why, more
}

func printMore(out io.Writer, more string) {
	if more != "" {
		fmt.Fprintf(out, "  | %s\n", strings.ReplaceAll(strings.TrimRight(render.Escape(more), "\n"), "\n", "\n  | "))
	}
}

// figures returns how long the run took, and what it used.
func (s Ending) figures(number func(int64) string) []string {
	return append([]string{render.Count(s.End.Rounds, "round"), render.Duration(s.Active)},
		UsageParts(history.Ledger{Tokens: s.End.Tokens, Assumed: s.End.Assumed, Known: s.known}, s.End.Cost, number)...)
}

// UsageParts returns, as parts of a line, the tokens and the cost of a run, and the share of its
// input that providers had cached, if there was any.
func UsageParts(l history.Ledger, cost *float64, number func(int64) string) []string {
	parts := render.UsageParts(l.Tokens-l.Assumed, l.Assumed, cost, number)
	if input := l.Known.Input + l.Known.CacheRead + l.Known.CacheWrite; l.Known.CacheRead > 0 {
		parts = append(parts, fmt.Sprintf("%d%% of the input cached", 100*l.Known.CacheRead/input))
	}
	return parts
}

// maxFiles limits how many files the summary names.
const maxFiles = 10

// fileLines returns a line for each file that changed, and at most so many lines.
func (s Ending) fileLines(minus string, most int) []string {
	named, rest := s.Files, File{}
	if len(named) > most {
		named = named[:most-1]
		for _, f := range s.Files[len(named):] {
			rest.Added, rest.Removed = rest.Added+f.Added, rest.Removed+f.Removed
		}
		rest.Path = render.Count(len(s.Files)-len(named), "more file")
		named = append(slices.Clone(named), rest)
	}
	longest := 0
	for _, f := range named {
		longest = max(longest, displaywidth.String(render.Line(f.Path)))
	}
	var lines []string
	for _, f := range named {
		path := render.Line(f.Path)
		lines = append(lines, path+strings.Repeat(" ", longest-displaywidth.String(path)+2)+render.StatText(f.Added, f.Removed, minus))
		if f.Judges {
			lines[len(lines)-1] += "  (judges the work)"
		}
	}
	return lines
}

// notes returns what else the user should know, and how to restore the tree of the
// best round. If that tree is already restored, it says how to restore the tree of the
// last round.
func (s Ending) notes() []string {
	notes, round := slices.Clone(s.End.Notes), s.End.Best
	if s.End.Ignored != "" {
		notes = append(notes, "changed, but ignored by git: "+s.End.Ignored)
	}
	if s.End.Restored {
		round = s.End.Rounds
	}
	if s.End.Best > 0 {
		notes = append(notes, fmt.Sprintf("to restore the tree of round %d, run: hone undo %s --to-round %d", round, s.run+failure.Elsewhere(s.home.Workspace()), round))
	}
	return notes
}

// commands returns what fits next, each with a word for it.
func (s Ending) commands() [][2]string {
	at := failure.Elsewhere(s.home.Workspace())
	run, next := failure.RunName(s.home, s.run)+at, s.next()
	diff := "hone show " + run + " --diff"
	var list [][2]string
	if next != "" && next != diff {
		list = append(list, [2]string{"next", next})
	}
	if len(s.Files) == 0 {
		return list
	}
	list = append(list, [2]string{"review", diff}, [2]string{"undo", "hone undo " + run})
	if _, err := os.Stat(filepath.Join(s.home.Workspace(), ".git")); err == nil && s.End.Kind == hone.KindDone {
		list = append(list, [2]string{"keep", fmt.Sprintf("git%[1]s add %[2]s && git%[1]s commit", at, s.added(at == "" && !isHere(s.home.Workspace())))})
	}
	return list
}

// maxAdded limits how many files the command names that keeps a change.
const maxAdded = 4

// added returns the arguments of git add: the changed files if they are few, because -A
// also adds the loop's own files. below means that git runs in a subdirectory; there :/
// is the root.
func (s Ending) added(below bool) string {
	if len(s.Files) > maxAdded {
		return "-A"
	}
	var args []string
	for _, f := range s.Files {
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

// isHere reports whether dir is the working directory.
func isHere(dir string) bool {
	here, err := os.Stat(".")
	there, err2 := os.Stat(dir)
	return err == nil && err2 == nil && os.SameFile(here, there)
}
