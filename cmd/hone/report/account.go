// Package report opens the run that a command line names ([Open]), and says on a terminal what it did: how it ended and what to type next
// ([Account.Print]), all of it on one screen ([Account.Lines]), event by event ([Transcript]),
// and its line in the list of runs ([Summary]). [Use] says how much disk space the runs of a
// directory need.
//
// It reads journals, and writes nothing. Package page says the same in a browser.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/story"
	"hone/workspace/treepath"
)

// Account is what a run did, in facts.
type Account struct {
	*Run
	End      hone.End // zero if the run has none
	Ended    bool     // and no process works on it
	Standing story.Standing
	Numbers  story.Numbers
	Files    []File    // nil if they are not shown
	Loop     loop.Loop // nil if this program does not have it
	// Asked means that the questions that wait are shown with buttons that answer them.
	Asked bool
	// foreign means that the user neither recorded the run here nor accepted it.
	foreign bool
	// earlier means that the run has gone on since: what is known now is not shown.
	earlier bool
}

// Of returns what a recorded run did.
func Of(r *Run) Account {
	last := r.Past.Last()
	active := time.Duration(last.Active) * time.Millisecond
	if r.Working {
		active += time.Since(last.Time)
	}
	a := account(r, active)
	a.foreign, a.Files = r.Foreign(), changedFiles(r.Home, r.Past, r.Own(), kinds.Judges(r.Start, r.Past, r.Home.Get))
	return a
}

// Rounds returns the rounds of the run.
func (a Account) Rounds() []story.Round {
	return story.RoundsOf(a.Past.Events(), a.Home.Get, a.Own(), a.Working)
}

// Its files and rounds are missing.
func account(r *Run, active time.Duration) Account {
	now := r.Past.Facts()
	return Account{Run: r, End: now.End, Ended: now.Ended && !r.Working, Standing: story.StandingOf(r.Past, r.Working),
		Numbers: story.NumbersOf(r.Past, attempts.Spent(r.Home, r.ID, r.Past), active), Loop: kinds.Recorded(r.Start)}
}

// Ending returns how a run has just ended; with its files if they are wanted. If it changed the
// tree and there is nothing else to do, the user reviews that next.
func Ending(r *Run, end hone.End, active time.Duration, files bool) Account {
	a := account(r, active)
	a.End, a.Ended = end, true
	if files {
		a.Files = changedFiles(r.Home, r.Past, r.Own(), kinds.Judges(r.Start, r.Past, r.Home.Get))
	}
	if now := r.Past.Facts(); now.Opened != nil && end.Next.IsZero() && now.State.Tree != now.Opened.Tree {
		a.End.Next = hone.Next{Verb: hone.Show, Flags: []hone.Flag{{Name: "diff"}}}
	}
	return a
}

// File is a file that a run changed, with the lines that it added and removed.
type File struct {
	Path           string
	Added, Removed int
	Judges         bool // it judges the work
}

// It is nil if that cannot be read. Those that judge the work come first, then those of the user's own tools: the summary may
// fold the others.
func changedFiles(home *journal.Home, past *history.Past, own, judges func(string) bool) []File {
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
		if missingChange(home, d) == "" {
			before, _ := home.Get(d.Before.Digest) // nil with an error: no lines are counted
			after, _ := home.Get(d.After.Digest)
			f.Added, f.Removed = render.Stat(before, after)
		}
		files = append(files, f)
	}
	rank := func(f File) int {
		switch {
		case f.Judges:
			return 0
		case treepath.ToolReason(f.Path) != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(files, func(a, b File) int { return rank(a) - rank(b) })
	return files
}

func (a Account) check() string {
	var settings struct{ Check string }
	_ = json.Unmarshal(a.Start.Settings, &settings) // a loop without that setting has another check
	return settings.Check
}

func (a Account) name() string {
	return failure.RunName(a.Home, a.ID) + failure.Elsewhere(a.Home.Workspace())
}

// Notes returns what else the user should know: what was declined, refused or restored, what
// is to be decided, and how to restore the tree of the best round; if that is restored already,
// the tree of the last round.
func (a Account) Notes() []string {
	notes, at := slices.Clone(a.End.Notes), failure.Elsewhere(a.Home.Workspace())
	add := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	if !a.Ended {
		if paths := a.Past.DeclinedPaths(); len(paths) > 0 {
			notes = []string{"you declined changes of " + strings.Join(paths, ", ")}
		}
		notes = append(notes, a.Past.Refusals()...)
	}
	if a.End.Ignored != "" {
		add("changed, but ignored by git: " + a.End.Ignored)
	}
	if round := a.End.Best; round > 0 {
		if a.End.Restored {
			round = a.End.Rounds
		}
		add(fmt.Sprintf("to restore the tree of round %d, run: hone undo %s --to-round %d", round, a.ID+at, round))
	}
	if a.earlier {
		return notes
	}
	if !a.Asked {
		for _, q := range waitingQuestions(a.Past, a.End.Kind) {
			text := fmt.Sprintf("%s waits for your decision: %s", q.Path, q.Reason)
			if q.Asks != "" {
				text = "the model asks: " + q.Asks
			}
			add(fmt.Sprintf("%s (question %s)", text, ShortDigest(a.ID, q)))
		}
	}
	now := a.Past.Last().Time
	if a.Working {
		now = time.Now()
	}
	add(story.OutagesText(a.Past.Events(), now))
	add(UndoneText(a.Past, a.ID+at))
	return notes
}

// UndoneText says that the user restored the files of a run to those of a round, and how to redo
// what was undone; empty if not. run may be followed by -C.
func UndoneText(past *history.Past, run string) string {
	to := past.UndoneTo()
	if to == nil {
		return ""
	}
	return fmt.Sprintf("undone: the files are as they were %s; to redo it, run: hone undo %s --to-round %d", story.EndOfRound(*to), run, past.Facts().State.Round)
}

// Hash returns the hash of the last event, which covers the complete journal.
func (a Account) Hash() string { return a.Past.Last().Hash() }

// Next returns what to type next; empty if there is nothing. The changes of a run that went in
// circles may be worth nothing. For a foreign run it is hone trust, without which resume and
// undo refuse to work.
func (a Account) Next() string {
	at, next := failure.Elsewhere(a.Home.Workspace()), a.End.Next
	_, removed := os.Lstat(filepath.Join(a.Home.Dir(), "runs", a.ID+".jsonl"))
	switch _, unknown := kinds.Of(a.Start); {
	case a.Working:
		return "hone watch " + journal.ShortRun(a.ID) + at
	case a.foreign:
		return "hone trust " + journal.ShortRun(a.ID) + at + "; the run is foreign: you did not record it on this machine"
	case errors.Is(removed, fs.ErrNotExist):
		return "start a new run: the journal of this one was removed while it ran, so it cannot be resumed (git clean -fdx removes .hone; git clean -fdx -e .hone does not)"
	case !a.Ended:
		return a.orAnswer(a.Resume())
	case unknown != nil && next.Verb == hone.Resume:
		first := a.Resume()
		if next.First != "" {
			first = next.First + ", then " + first
		}
		next = hone.Next{First: first, Or: next.Or}
	}
	return a.orAnswer(failure.NextLine(next, a.name()))
}

// The first question that waits can be answered without a terminal.
func (a Account) orAnswer(next string) string {
	waiting := waitingQuestions(a.Past, a.End.Kind)
	if len(waiting) == 0 || a.earlier {
		return next
	}
	choices := "yes, or =no"
	if waiting[0].Asks != "" {
		choices = "'TEXT'"
	}
	return strings.TrimPrefix(fmt.Sprintf("%s; or without a terminal: hone resume %s --answer %s=%s", next, a.name(), ShortDigest(a.ID, waiting[0]), choices), "; or ")
}

// Why returns the kind and the reason of the end in one line.
func (a Account) Why() string {
	why, _ := a.why()
	return why
}

// maxCheck is how much of a check's command line the end names.
const maxCheck = 40

func (a Account) why() (why, more string) {
	why, more, _ = strings.Cut(a.End.Why, "\n")
	why = render.Line(why)
	if why == string(a.End.Kind) {
		return why, more
	}
	if rest, ok := strings.CutPrefix(why, history.CheckPasses); ok && !strings.HasPrefix(rest, " ") && a.check() != "" {
		why = render.Cut(render.Line(a.check()), maxCheck) + " passes" + rest
	}
	word := string(a.End.Kind)
	if a.End.Kind == hone.KindRounds {
		word = "stopped"
	}
	return word + ": " + why, more
}

// digestColumns is how many digits of a question's digest are shown.
const digestColumns = 12

// ShortDigest returns the digest of a question as it is shown.
func ShortDigest(run string, q hone.Question) string { return q.Digest(run)[:digestColumns] }

// ParseAnswer returns the answer that a user has typed to a question: yes or no, or a text. ok is
// false if it is none.
func ParseAnswer(q hone.Question, typed string) (a hone.Answer, ok bool) {
	a.By = "user"
	if typed = strings.TrimSpace(typed); q.Asks != "" {
		a.Text = typed
		return a, typed != ""
	}
	a.Approved = strings.EqualFold(typed, "yes")
	return a, a.Approved || strings.EqualFold(typed, "no")
}

// waitingQuestions returns the open questions of a run that a resume can still put to use.
func waitingQuestions(past *history.Past, end hone.Kind) []history.Question {
	switch end {
	case "", hone.KindBlocked, hone.KindInterrupted:
		return past.Waiting()
	case hone.KindDone:
		return nil
	}
	return slices.DeleteFunc(past.Waiting(), func(q history.Question) bool { return q.Asks == "" })
}
