package page

import (
	"context"
	"fmt"

	"hone"
	"hone/cmd/hone/report"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
	"hone/workspace"
)

// LimitsOf returns the limits that a resume can raise.
func LimitsOf(l hone.Limits) []Limit {
	raisable := []Limit{{Flag: "rounds", Label: "rounds", Value: fmt.Sprint(l.MaxRounds())}}
	if l.Tokens > 0 {
		raisable = append(raisable, Limit{Flag: "max-tokens", Label: "tokens", Value: fmt.Sprint(l.Tokens)})
	}
	if l.Cost > 0 {
		raisable = append(raisable, Limit{Flag: "max-cost", Label: "cost", Value: fmt.Sprint(l.Cost), Hint: "in USD"})
	}
	if l.Time > 0 {
		raisable = append(raisable, Limit{Flag: "max-time", Label: "time", Value: render.Duration(l.Time), Hint: "such as 90m"})
	}
	return raisable
}

// QuestionOf returns a question of a run, with its change as a diff.
func QuestionOf(ctx context.Context, home *journal.Home, run string, q hone.Question) (Question, error) {
	if q.Asks != "" {
		return Question{Asks: q.Asks, Digest: q.Digest(run)}, nil
	}
	diff, omitted, err := report.Patch(ctx, home, []workspace.Delta{{Path: q.Path, Before: q.Before.Entry(q.Path), After: q.After.Entry(q.Path)}}, nil, false)
	if more := len(diff) - MaxText; more > 0 {
		omitted = append(omitted, "the page does not show the last "+render.Bytes(int64(more))+" of this change: to see all of it, answer in a terminal")
	}
	return Question{Digest: q.Digest(run), Path: render.Line(q.Path), Verb: story.Verb(q), Reason: q.Reason, Diff: string(diff), NoDiff: omitted}, err
}
