package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/cmd/hone/answer"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/rounds"
	"hone/history"
	"hone/journal"
	"hone/loop"
)

// Overview is what a recorded run did, in facts. [Overview.Lines] is its one screen.
type Overview struct {
	*recorded.Run
	Ending           // without the end if the run has none
	Ended  bool      // and no process works on it
	Loop   loop.Loop // nil if this program does not have it
	Rounds []rounds.Round
	// Asked means that the questions that wait are shown with buttons that answer them.
	Asked bool
}

// OverviewOf returns what a run did.
func OverviewOf(r *recorded.Run) Overview {
	own := r.Own()
	o := Overview{Run: r, Loop: kinds.Recorded(r.Start), Rounds: rounds.Of(r.Past.Events(), r.Home.Get, own)}
	end, ended := r.Past.End()
	last := r.Past.Last()
	active := time.Duration(last.Active) * time.Millisecond
	if r.Working {
		active += time.Since(last.Time)
	}
	o.Ending, o.Ended = RecordedEnding(r, end, active), ended && !r.Working
	o.Files = ChangedFiles(r.Home, r.Past, own, kinds.Judges(r.Start))
	if n := len(o.Rounds); r.Working && n > 0 && o.Rounds[n-1].Outcome == rounds.Unfinished {
		o.Rounds[n-1].Outcome, o.Rounds[n-1].Verdict = rounds.Running, "not finished yet"
	}
	return o
}

// Notes returns what else the user should know: what was declined, refused or restored,
// and what is to be decided.
func (o Overview) Notes() []string {
	notes := o.notes()
	if !o.Ended {
		notes = append(o.declinedPaths(), o.Past.Refusals()...)
	}
	if !o.Asked && (!o.Ended || answer.MayWait(o.End.Kind)) {
		notes = append(notes, answer.Notes(o.Home, o.ID, o.Past.Waiting(), o.Working)...)
	}
	if text := o.outages(); text != "" {
		notes = append(notes, text)
	}
	if back := o.Past.RestoredTo(); back != nil && !o.End.Restored {
		notes = append(notes, RestoredText(o.Past, *back))
	}
	return notes
}

// outages returns when and why models did not reply; empty if there was no outage.
func (o Overview) outages() string {
	now := o.Past.Last().Time
	if o.Working {
		now = time.Now()
	}
	return rounds.OutagesText(o.Past.Events(), now)
}

// RestoredText says that the files of a run were restored to those of a round.
func RestoredText(past *history.Past, round int) string {
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

// declinedPaths names the files whose changes the user declined.
func (o Overview) declinedPaths() []string {
	if paths := o.Past.DeclinedPaths(); len(paths) > 0 {
		return []string{"you declined changes of " + strings.Join(paths, ", ")}
	}
	return nil
}

// Hash returns the hash of the last event, which covers the complete journal.
func (o Overview) Hash() string { return o.Past.Last().Hash() }

// next returns what to type next; empty if there is nothing.
func (o Overview) next() string {
	switch {
	case o.Working:
		return "hone watch " + journal.ShortRun(o.ID) + failure.Elsewhere(o.Home.Workspace())
	case !o.Ended && !o.foreign:
		return o.Resume()
	}
	return o.Ending.next()
}

// Standing is how a run ended, or that it has not.
type Standing struct {
	Mark   rounds.Outcome
	Result string // the kind of the end; "running" or "died" if the run has none
	Text   string // Result in words, unless the run was undone since
}

// StandingOf returns how a run ended. A run that was undone after its end counts as undone.
// working means that a process works on it.
func StandingOf(past *history.Past, working bool) Standing {
	s := Standing{Mark: rounds.Running, Result: "running"}
	end, ended := past.End()
	switch {
	case working:
	case ended:
		s.Mark, s.Result = markOf(end.Kind), string(cmp.Or(end.Kind, "ended"))
	default:
		s.Mark, s.Result = rounds.Failed, "died"
	}
	s.Text = kindText(s.Result)
	switch to := past.RestoredTo(); {
	case working || to == nil || *to == past.State().Round || end.Restored && *to == end.Best:
	case *to == 0:
		s.Mark, s.Text = rounds.Unfinished, "undone"
	default:
		s.Mark, s.Text = rounds.Unfinished, fmt.Sprintf("undone to round %d", *to)
	}
	return s
}

// kindText returns how a run ended in words: "usage" alone could mean tokens.
func kindText(result string) string {
	switch hone.Kind(result) {
	case hone.KindUsage:
		return "usage error"
	case hone.KindRounds:
		return "out of rounds"
	}
	return result
}

// markOf returns the mark of the way that a run ended.
func markOf(kind hone.Kind) rounds.Outcome {
	switch failure.ExitStatus(kind) {
	case 0:
		return rounds.Passed
	case 4, 130:
		return rounds.Held
	}
	return rounds.Failed
}
