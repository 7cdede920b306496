// Package answer gives the answers of --answer to the questions of a run. It also words
// the questions that wait for an answer. A digest identifies a question and stands for one
// exact change of a file, so an answer never applies to another change.
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
	Given  map[string]bool // by the digest of the question; true approves
	Others hone.Human      // nil leaves other questions pending
}

// Ask answers a question.
func (s Human) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	approved, given := s.Given[q.Digest(s.Run)]
	switch {
	case given:
		return hone.Answer{Approved: approved, By: "user"}, nil
	case s.Others == nil:
		return hone.Answer{By: history.NoUser}, nil
	}
	return s.Others.Ask(ctx, q)
}

// digestColumns is how many digits of a question's digest are shown.
const digestColumns = 12

// ShortDigest returns the digest of a question as it is shown.
func ShortDigest(run string, q hone.Question) string { return q.Digest(run)[:digestColumns] }

var plain = lazyregexp.New(`^([0-9a-f]{8,64})=(yes|no)$`)

// To returns the answers of --answer to pending questions of a run, by the digest of
// the question, without answers that are recorded already. If one answer is not possible,
// it returns an error.
func To(run *runs.Recorded, values []string) (map[string]bool, error) {
	given, named := map[string]bool{}, run.Journal.Run()+failure.Elsewhere(run.Dir)
	for _, value := range values {
		m := plain.FindStringSubmatch(strings.ToLower(value))
		if m == nil {
			return nil, failure.Usage(fmt.Sprintf("--answer %s is not DIGEST=yes or DIGEST=no, where DIGEST has at least 8 hex digits", value), "hone show "+named+" shows the open questions")
		}
		q, err := questionOf(run, m[1], named)
		if err != nil {
			return nil, err
		}
		digest, approved := q.Digest(run.Journal.Run()), m[2] == "yes"
		if before, twice := given[digest]; twice && before != approved {
			return nil, failure.Usage("--answer says both yes and no about "+q.Path, "leave out one of them")
		}
		known, err := answerable(run, q, approved, named)
		if err != nil {
			return nil, err
		}
		if !known {
			given[digest] = approved
		}
	}
	return given, nil
}

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
		waiting = append(waiting, ShortDigest(run.Journal.Run(), q)+" about "+q.Path)
	}
	return q, failure.Usage(why+"; these wait for an answer: "+strings.Join(waiting, ", "), "hone show "+named)
}

// known means that the user has given the answer before, so that nothing is left to do.
func answerable(run *runs.Recorded, q hone.Question, approved bool, named string) (known bool, err error) {
	id, pending := run.Journal.Run(), run.Past.Waiting()
	digest := q.Digest(id)
	isIt := func(other hone.Question) bool { return other.Digest(id) == digest }
	outdated := func(why, hint string) error {
		return &failure.Error{Kind: hone.KindBlocked, Why: fmt.Sprintf("the answer about %s is outdated: %s", q.Path, why), Hint: hint}
	}
	if slices.ContainsFunc(pending, isIt) {
		was, answered := run.Past.AnswerTo(q)
		switch answered = answered && (was.Approved || !q.Edited); {
		case answered && was.Approved == approved:
			return true, nil
		case answered:
			return false, outdated("the question was answered before", "hone resume "+named)
		case !run.Tree.Holds(q.Path, q.Before) && run.Tree.Fault() != nil:
			return false, run.Tree.Fault()
		case !run.Tree.Holds(q.Path, q.Before):
			return false, outdated("the file has changed since the question was asked",
				"restore the file, then answer again; or run hone resume "+named+" on a terminal, which drops the question")
		}
		return false, nil
	}
	if was, answered := lastAnswer(run.Past, isIt); answered && was.Approved == approved {
		return true, nil
	}
	if i := slices.IndexFunc(pending, func(other hone.Question) bool { return other.Path == q.Path }); i >= 0 {
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

// MayWait reports whether a run that ended like this may have open questions.
func MayWait(kind hone.Kind) bool {
	return kind == hone.KindBlocked || kind == hone.KindInterrupted
}

// Notes lists the questions of a run that wait for the user; if no process works on
// the run, also how to answer them without a terminal.
func Notes(home *journal.Home, run string, waiting []history.Question, working bool) []string {
	var notes []string
	for _, q := range waiting {
		notes = append(notes, fmt.Sprintf("%s waits for your decision: %s (question %s)", q.Path, q.Reason, ShortDigest(run, q)))
	}
	if len(waiting) > 0 && !working {
		notes = append(notes, fmt.Sprintf("to answer without a terminal: hone resume %s --answer %s=yes, or =no", failure.RunName(home, run)+failure.Elsewhere(home.Workspace()), ShortDigest(run, waiting[0])))
	}
	return notes
}
