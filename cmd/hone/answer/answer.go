// Package answer gives the answers of --answer to the questions of a run. It also words
// the questions that wait for an answer. A digest identifies a question and stands for one
// exact change of a file, or the words of the model, so an answer never applies to another.
package answer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"

	"hone"
	"hone/cmd/hone/failure"
	"hone/harness/runs"
	"hone/history"
	"hone/journal"
)

// Human is a [hone.Human] that gives the answers of --answer, and leaves other questions
// to another Human.
type Human struct {
	Run    string
	Given  map[string]hone.Answer // by the digest of the question
	Others hone.Human             // nil leaves other questions pending
}

// Ask answers a question.
func (s Human) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	a, given := s.Given[q.Digest(s.Run)]
	switch {
	case given:
		return a, nil
	case s.Others == nil:
		return hone.Answer{By: history.NoUser}, nil
	}
	return s.Others.Ask(ctx, q)
}

// digestColumns is how many digits of a question's digest are shown.
const digestColumns = 12

// ShortDigest returns the digest of a question as it is shown.
func ShortDigest(run string, q hone.Question) string { return q.Digest(run)[:digestColumns] }

var plain = lazyregexp.New(`(?is)^([0-9a-f]{8,64})=(.+)$`)

// Parse returns the answer that a user has typed to a question: yes or no, or a text. ok is
// false if it is none.
func Parse(q hone.Question, typed string) (a hone.Answer, ok bool) {
	a.By = "user"
	if typed = strings.TrimSpace(typed); q.Asks != "" {
		a.Text = typed
		return a, typed != ""
	}
	a.Approved = strings.EqualFold(typed, "yes")
	return a, a.Approved || strings.EqualFold(typed, "no")
}

// To returns the answers of --answer to pending questions of a run, by the digest of
// the question, without answers that are recorded already. If one answer is not possible,
// it returns an error.
func To(run *runs.Recorded, values []string) (map[string]hone.Answer, error) {
	given, named := map[string]hone.Answer{}, run.Journal.Run()+failure.Elsewhere(run.Dir)
	for _, value := range values {
		form, of := failure.Usage(fmt.Sprintf("--answer %s is not DIGEST=yes or DIGEST=no, where DIGEST has at least 8 hex digits", value), "hone show "+named+" shows the open questions"), plain.FindStringSubmatch(value)
		if of == nil {
			return nil, form
		}
		q, err := questionOf(run, strings.ToLower(of[1]), named)
		if err != nil {
			return nil, err
		}
		digest := q.Digest(run.Journal.Run())
		a, ok := Parse(q, of[2])
		if !ok {
			return nil, form
		}
		if before, twice := given[digest]; twice && !same(before, a) {
			return nil, failure.Usage("--answer says two things about "+q.About(), "leave out one of them")
		}
		known, err := answerable(run, q, a, named)
		if err != nil {
			return nil, err
		}
		if !known {
			given[digest] = a
		}
	}
	return given, nil
}

func same(a, b hone.Answer) bool { return a.Approved == b.Approved && a.Text == b.Text }

func questionOf(run *runs.Recorded, prefix, named string) (q hone.Question, err error) {
	pending := run.Past.Waiting()
	found := map[string]hone.Question{}
	add := func(q hone.Question) {
		if digest := q.Digest(run.Journal.Run()); strings.HasPrefix(digest, prefix) {
			found[digest] = q
		}
	}
	for _, q := range history.Of[history.Question](run.Past.Events()) {
		add(q)
	}
	for _, q := range pending { // also one that the user has edited since it was asked
		add(q)
	}
	if len(found) == 1 {
		for _, q := range found {
			return q, nil
		}
	}
	why := "no question of the run has the digest " + prefix
	if len(found) > 1 {
		why = fmt.Sprintf("%d questions of the run have a digest that starts with %s", len(found), prefix)
	}
	if len(pending) == 0 {
		return q, failure.Usage(why+"; no question waits for an answer", "hone show "+named)
	}
	var waiting []string
	for _, q := range pending {
		waiting = append(waiting, ShortDigest(run.Journal.Run(), q)+" about "+q.About())
	}
	return q, failure.Usage(why+"; these wait for an answer: "+strings.Join(waiting, ", "), "hone show "+named)
}

// known means that the user has given it before, so that nothing is left to do.
func answerable(run *runs.Recorded, q hone.Question, a hone.Answer, named string) (known bool, err error) {
	id, pending := run.Journal.Run(), run.Past.Waiting()
	digest := q.Digest(id)
	isIt := func(other hone.Question) bool { return other.Digest(id) == digest }
	outdated := func(why, hint string) error {
		return &failure.Error{Kind: hone.KindBlocked, Why: fmt.Sprintf("the answer about %s is outdated: %s", q.About(), why), Hint: hint}
	}
	if slices.ContainsFunc(pending, isIt) {
		was, answered := run.Past.AnswerTo(q)
		switch answered = answered && (was.Approved || !q.Edited); {
		case answered && same(was, a):
			return true, nil
		case answered:
			return false, outdated("the question was answered before", "hone resume "+named)
		case q.Asks != "":
			return false, nil
		case !run.Tree.Holds(q.Path, q.Before) && run.Tree.Fault() != nil:
			return false, run.Tree.Fault()
		case !run.Tree.Holds(q.Path, q.Before):
			return false, outdated("the file has changed since the question was asked",
				"restore the file, then answer again; or run hone resume "+named+" on a terminal, which drops the question")
		}
		return false, nil
	}
	if was, answered := lastAnswer(run.Past, isIt); answered && same(was, a) {
		return true, nil
	}
	if i := slices.IndexFunc(pending, func(other hone.Question) bool { return other.About() == q.About() }); i >= 0 {
		return false, outdated("the run proposes another change now", "hone show "+named+" shows the question "+ShortDigest(id, pending[i]))
	}
	return false, outdated("the question is closed", "hone show "+named)
}

func lastAnswer(past *history.Past, isIt func(hone.Question) bool) (a hone.Answer, ok bool) {
	for e, answer := range history.Of[history.Answer](past.Events()) {
		if answer.By == history.NoUser || answer.By == history.Outdated || answer.Edited.Exists() {
			continue
		}
		begin, _ := past.Begin(*e.Step)
		if q, is := begin.Payload.(history.Question); is && isIt(q) {
			a, ok = answer, true
		}
	}
	return a, ok
}

// Waiting returns the open questions of a run that a resume can still put to use.
func Waiting(past *history.Past, end hone.Kind) []history.Question {
	switch end {
	case "", hone.KindBlocked, hone.KindInterrupted:
		return past.Waiting()
	case hone.KindDone:
		return nil
	}
	return slices.DeleteFunc(past.Waiting(), func(q history.Question) bool { return q.Asks == "" })
}

// Notes lists the questions of a run that wait for the user.
func Notes(run string, waiting []history.Question) []string {
	var notes []string
	for _, q := range waiting {
		if q.Asks != "" {
			notes = append(notes, fmt.Sprintf("the model asks: %s (question %s)", q.Asks, ShortDigest(run, q)))
			continue
		}
		notes = append(notes, fmt.Sprintf("%s waits for your decision: %s (question %s)", q.Path, q.Reason, ShortDigest(run, q)))
	}
	return notes
}

// Next is the command that answers the first of these questions without a terminal; empty if
// there is none.
func Next(home *journal.Home, run string, waiting []history.Question) string {
	if len(waiting) == 0 {
		return ""
	}
	choices := "yes, or =no"
	if waiting[0].Asks != "" {
		choices = "'TEXT'"
	}
	return fmt.Sprintf("hone resume %s --answer %s=%s", failure.RunName(home, run)+failure.Elsewhere(home.Workspace()), ShortDigest(run, waiting[0]), choices)
}
