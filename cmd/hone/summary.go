package main

import (
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
	"hone/harness"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
)

// ending is how a run ended, for the user.
type ending struct {
	home   *journal.Home
	run    string
	end    hone.End
	active time.Duration
	known  model.Usage   // what providers reported
	files  []changedFile // nil if they are not shown
	// foreign means that the user neither recorded the run here nor accepted it.
	foreign bool
}

// next returns what to type next; may be empty. For a foreign run it is hone trust, without
// which resume and undo refuse to work.
func (s ending) next() string {
	if s.foreign {
		return "hone trust " + journal.ShortRun(s.run) + failure.Elsewhere(s.home.Workspace()) + "; the run is foreign: you did not record it on this machine"
	}
	return nextStep(s.home, s.run, s.end)
}

// nextStep returns what to type after a run has ended; empty if there is
// nothing. The changes of a run that went in circles may be worth nothing.
func nextStep(home *journal.Home, run string, end hone.End) string {
	if _, err := os.Lstat(filepath.Join(home.Dir(), "runs", run+".jsonl")); errors.Is(err, fs.ErrNotExist) {
		return "start a new run: the journal of this one was removed while it ran, so it cannot be resumed (git clean -fdx removes .hone; git clean -fdx -e .hone does not)"
	}
	run = failure.RunName(home, run) + failure.Elsewhere(home.Workspace())
	line := failure.NextLine(end.Next, run)
	if end.Kind == hone.KindStuck {
		line += "; or take all changes back: hone undo " + run
	}
	return line
}

// endingOf returns how a run has just ended. If it changed the tree and there is
// nothing else to do, the user reviews that next.
func endingOf(h *harness.Session, r *hone.Run, end hone.End, o outputFlags) ending {
	s := ending{home: h.Home, run: h.ID(), end: end, active: h.Active(), known: r.Past().Ledger().Known}
	if !o.quiet {
		s.files = changedFiles(h.Home, r.Past(), r.Own)
	}
	if answer.MayWait(end.Kind) {
		s.end.Notes = append(slices.Clone(end.Notes), answer.Notes(h.Home, s.run, r.Past().Waiting(), false)...)
	}
	if note := undoneNote(r.Past(), s.run+failure.Elsewhere(h.Home.Workspace())); note != "" && !end.Restored {
		s.end.Notes = append(slices.Clone(s.end.Notes), note)
	}
	if end.Next.IsZero() && changedTree(r.Past()) {
		s.end.Next = hone.Next{Verb: hone.Show, Flags: []hone.Flag{{Name: "diff"}}}
	}
	return s
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

// changedFile is a file that a run changed, with the lines that it added and removed.
type changedFile struct {
	path           string
	added, removed int
}

// changedFiles returns the files that differ from those that the run found, without
// the loop's own; nil if that cannot be read.
func changedFiles(home *journal.Home, past *history.Past, own func(string) bool) []changedFile {
	deltas, err := past.AllChanges(home.Get)
	if err != nil {
		return nil
	}
	var files []changedFile
	for _, d := range deltas {
		if own != nil && own(d.Path) {
			continue
		}
		f := changedFile{path: d.Path}
		if noDiffReason(home, d.Before) == "" && noDiffReason(home, d.After) == "" {
			before, _ := home.Get(d.Before.Digest) // nil with an error: no lines are counted
			after, _ := home.Get(d.After.Digest)
			f.added, f.removed = render.Stat(before, after)
		}
		files = append(files, f)
	}
	return files
}

// changedTree reports whether the tree differs from the one that the run found.
func changedTree(past *history.Past) bool {
	opened, ok := past.Opened()
	return ok && past.State().Tree != opened.Tree
}

// printEnd prints why the run stopped, what it changed and used, and what to type next.
func (a *app) printEnd(s ending, o outputFlags) {
	out := a.results(o)
	if size := a.outSize; size != nil && !o.json {
		columns, _ := size()
		s.printOnTerminal(out, a.outColour, columns)
		return
	}
	for _, note := range s.notes() {
		fmt.Fprintf(out, "note: %s\n", render.Line(note))
	}
	why, more := s.why()
	fmt.Fprintf(out, "%s (%s)\n", why, strings.Join(s.figures(render.Tokens), ", "))
	printMore(out, more)
	for _, line := range s.fileLines("-", maxFiles) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if next := s.next(); next != "" {
		fmt.Fprintf(out, "next: %s\n", render.Escape(next))
	}
}

// printOnTerminal prints the summary for a terminal.
func (s ending) printOnTerminal(out io.Writer, c render.Colours, columns int) {
	used := strings.Join(s.figures(render.Short), " · ")
	mark := resultMark(s.end.Kind).Mark(c)
	why, more := s.why()
	gap := columns - 1 - displaywidth.String("x "+why+used)
	if gap < 2 {
		fmt.Fprintf(out, "%s %s\n  %s\n", mark, c.Bold(why), c.Dim(used))
	} else {
		fmt.Fprintf(out, "%s %s%s%s\n", mark, c.Bold(why), strings.Repeat(" ", min(gap, 8)), c.Dim(used))
	}
	printMore(out, more)
	for _, line := range s.fileLines("−", maxFiles) {
		fmt.Fprintf(out, "  %s\n", line)
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

// why returns the kind and the reason of the end in one line, and the details.
func (s ending) why() (why, more string) {
	why, more, _ = strings.Cut(s.end.Why, "\n")
	why = render.Line(why)
	if why == string(s.end.Kind) {
		return why, more
	}
	word := string(s.end.Kind)
	if s.end.Kind == hone.KindRounds {
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
func (s ending) figures(number func(int64) string) []string {
	return append([]string{render.Count(s.end.Rounds, "round"), render.Duration(s.active)},
		used(history.Ledger{Tokens: s.end.Tokens, Assumed: s.end.Assumed, Known: s.known}, s.end.Cost, number)...)
}

// used returns, as parts of a line, the tokens and the cost of a run, and the share of its
// input that providers had cached, if there was any.
func used(l history.Ledger, cost *float64, number func(int64) string) []string {
	parts := render.Used(l.Tokens-l.Assumed, l.Assumed, cost, number)
	if input := l.Known.Input + l.Known.CacheRead + l.Known.CacheWrite; l.Known.CacheRead > 0 {
		parts = append(parts, fmt.Sprintf("%d%% of the input cached", 100*l.Known.CacheRead/input))
	}
	return parts
}

// maxFiles limits how many files the summary names.
const maxFiles = 10

// fileLines returns a line for each file that changed, and at most so many lines.
func (s ending) fileLines(minus string, most int) []string {
	named, rest := s.files, changedFile{}
	if len(named) > most {
		named = named[:most-1]
		for _, f := range s.files[len(named):] {
			rest.added, rest.removed = rest.added+f.added, rest.removed+f.removed
		}
		rest.path = render.Count(len(s.files)-len(named), "more file")
		named = append(slices.Clone(named), rest)
	}
	longest := 0
	for _, f := range named {
		longest = max(longest, displaywidth.String(render.Line(f.path)))
	}
	var lines []string
	for _, f := range named {
		path := render.Line(f.path)
		lines = append(lines, path+strings.Repeat(" ", longest-displaywidth.String(path)+2)+render.StatText(f.added, f.removed, minus))
	}
	return lines
}

// notes returns what else the user should know, and how to restore the tree of the
// best round. If that tree is already restored, it says how to restore the tree of the
// last round.
func (s ending) notes() []string {
	notes, round := slices.Clone(s.end.Notes), s.end.Best
	if s.end.Restored {
		round = s.end.Rounds
	}
	if s.end.Best > 0 {
		notes = append(notes, fmt.Sprintf("to restore the tree of round %d, run: hone undo %s --to-round %d", round, s.run+failure.Elsewhere(s.home.Workspace()), round))
	}
	return notes
}

// commands returns what fits next, each with a word for it.
func (s ending) commands() [][2]string {
	at := failure.Elsewhere(s.home.Workspace())
	run, next := failure.RunName(s.home, s.run)+at, s.next()
	diff := "hone show " + run + " --diff"
	var list [][2]string
	if next != "" && next != diff {
		list = append(list, [2]string{"next", next})
	}
	if len(s.files) == 0 {
		return list
	}
	list = append(list, [2]string{"review", diff}, [2]string{"undo", "hone undo " + run})
	if _, err := os.Stat(filepath.Join(s.home.Workspace(), ".git")); err == nil && s.end.Kind == hone.KindDone {
		list = append(list, [2]string{"keep", fmt.Sprintf("git%[1]s add %[2]s && git%[1]s commit", at, s.added(at == "" && !isHere(s.home.Workspace())))})
	}
	return list
}

// maxAdded limits how many files the command names that keeps a change.
const maxAdded = 4

// added returns the arguments of git add: the changed files if they are few, because -A
// also adds the loop's own files. below means that git runs in a subdirectory; there :/
// is the root.
func (s ending) added(below bool) string {
	if len(s.files) > maxAdded {
		return "-A"
	}
	var args []string
	for _, f := range s.files {
		path := f.path
		if below {
			path = ":/" + path
		}
		quoted, err := syntax.Quote(path, syntax.LangPOSIX)
		if err != nil || strings.HasPrefix(f.path, "-") || strings.HasPrefix(f.path, ":") {
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
