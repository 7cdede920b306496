package report

import (
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/cmd/hone/failure"
	"hone/history"
	"hone/journal"
)

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

// answerLine is the command that answers the first of these questions without a terminal; empty if
// there is none.
func answerLine(home *journal.Home, run string, waiting []history.Question) string {
	if len(waiting) == 0 {
		return ""
	}
	choices := "yes, or =no"
	if waiting[0].Asks != "" {
		choices = "'TEXT'"
	}
	return fmt.Sprintf("hone resume %s --answer %s=%s", failure.RunName(home, run)+failure.Elsewhere(home.Workspace()), ShortDigest(run, waiting[0]), choices)
}
