package report

import (
	"slices"
	"strings"

	"hone"
	"hone/history"
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
