package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/lazyregexp"
)

// answering is a [hone.Human] that gives the answers of --answer, and leaves other questions
// to another answering.
type answering struct {
	Run    string
	Given  map[string]hone.Answer // by the digest of the question
	Others hone.Human             // nil leaves other questions pending
}

// Ask answers a question.
func (s answering) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	a, given := s.Given[q.Digest(s.Run)]
	switch {
	case given:
		return a, nil
	case s.Others == nil:
		return hone.Answer{By: history.NoUser}, nil
	}
	return s.Others.Ask(ctx, q)
}

var typedAnswer = lazyregexp.New(`(?is)^([0-9a-f]{8,64})=(.+)$`)

// answersTo returns the answers of --answer to pending questions of a run, by the digest of
// the question, without answers that are recorded already. If one answer is not possible,
// it returns an error.
func answersTo(run *runs.Recorded, values []string) (map[string]hone.Answer, error) {
	given, named := map[string]hone.Answer{}, run.Journal.Run()+failure.Elsewhere(run.Dir)
	for _, value := range values {
		form, of := failure.Usage(fmt.Sprintf("--answer %s is not DIGEST=yes or DIGEST=no, where DIGEST has at least 8 hex digits", value), "hone show "+named+" shows the open questions"), typedAnswer.FindStringSubmatch(value)
		if of == nil {
			return nil, form
		}
		q, err := questionOf(run, strings.ToLower(of[1]), named)
		if err != nil {
			return nil, err
		}
		digest := q.Digest(run.Journal.Run())
		a, ok := report.ParseAnswer(q, of[2])
		if !ok {
			return nil, form
		}
		if before, twice := given[digest]; twice && !sameAnswer(before, a) {
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

func sameAnswer(a, b hone.Answer) bool { return a.Approved == b.Approved && a.Text == b.Text }

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
		waiting = append(waiting, report.ShortDigest(run.Journal.Run(), q)+" about "+q.About())
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
		case answered && sameAnswer(was, a):
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
	if was, answered := lastAnswer(run.Past, isIt); answered && sameAnswer(was, a) {
		return true, nil
	}
	if i := slices.IndexFunc(pending, func(other hone.Question) bool { return other.About() == q.About() }); i >= 0 {
		return false, outdated("the run proposes another change now", "hone show "+named+" shows the question "+report.ShortDigest(id, pending[i]))
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
