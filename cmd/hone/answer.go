package main

import (
	"context"
	"fmt"
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
	id := run.Journal.Run()
	given, named := map[string]hone.Answer{}, id+failure.Elsewhere(run.Dir)
	for _, value := range values {
		form, of := failure.Usage(fmt.Sprintf("--answer %s is not DIGEST=yes or DIGEST=no, where DIGEST has at least 8 hex digits", value), "hone show "+named+" shows the open questions"), typedAnswer.FindStringSubmatch(value)
		if of == nil {
			return nil, form
		}
		found, waits := map[string]hone.Question{}, false
		for _, q := range history.Of[history.Question](run.Past.Events()) {
			if digest := q.Digest(id); strings.HasPrefix(digest, strings.ToLower(of[1])) {
				found[digest] = q
			}
		}
		for _, q := range run.Past.Waiting() { // also one that the user has edited since it was asked
			if digest := q.Digest(id); strings.HasPrefix(digest, strings.ToLower(of[1])) {
				found[digest], waits = q, true
			}
		}
		if len(found) != 1 {
			return nil, failure.Usage("no question of the run has the digest "+of[1]+" alone", "hone show "+named+" shows the open questions")
		}
		for digest, q := range found {
			a, ok := report.ParseAnswer(q, of[2])
			if !ok {
				return nil, form
			}
			if before, twice := given[digest]; twice && !sameAnswer(before, a) {
				return nil, failure.Usage("--answer says two things about "+q.About(), "leave out one of them")
			}
			var was hone.Answer
			answered := false
			for e, answer := range history.Of[history.Answer](run.Past.Events()) {
				if answer.By == history.NoUser || answer.By == history.Outdated || answer.Edited.Exists() {
					continue
				}
				begin, _ := run.Past.Begin(*e.Step)
				if q, is := begin.Payload.(history.Question); is && q.Digest(id) == digest {
					was, answered = answer, true
				}
			}
			outdated := ""
			switch {
			case answered && sameAnswer(was, a):
				continue
			case answered || !waits:
				outdated = "the question is closed"
			case q.Asks == "" && !run.Tree.Holds(q.Path, q.Before):
				if err := run.Tree.Fault(); err != nil {
					return nil, err
				}
				outdated = "the file has changed since the question was asked"
			}
			if outdated != "" {
				return nil, &failure.Error{Kind: hone.KindBlocked, Why: fmt.Sprintf("the answer about %s is outdated: %s", q.About(), outdated),
					Hint: "hone resume " + named + " on a terminal asks what is open; hone show " + named + " shows it"}
			}
			given[digest] = a
		}
	}
	return given, nil
}

func sameAnswer(a, b hone.Answer) bool { return a.Approved == b.Approved && a.Text == b.Text }
