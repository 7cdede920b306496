package page

import (
	"context"
	_ "embed"
	"fmt"

	"hone"
	"hone/cmd/hone/report"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
	"hone/workspace"
)

var (
	//go:embed act.html
	actTemplates string
	//go:embed act.css
	actStyle string
)

// Acts are the actions for a run on its page.
type Acts struct {
	Run    string // its id
	Said   string // the result of the last action; may be empty
	Note   string // why an action is not possible here; may be empty
	Stop   bool
	Resume []Limit // the limits for a resume; nil if the run cannot be resumed
	Undo   bool
	// Questions are the questions that the user can answer here, in one form.
	Questions []Question
}

// Limit is a limit that the user can raise.
type Limit struct{ Flag, Label, Value, Hint string }

// Question asks whether a change may be made, or what the model asks.
type Question struct {
	Asks         string // empty for a change
	Digest, Path string
	Verb, Reason string
	Diff         string   // a unified diff
	NoDiff       []string // why parts of it are not shown
}

// Only returns the question if there is exactly one, about a change, so that the answer needs one click.
func (a Acts) Only() *Question {
	if len(a.Questions) != 1 || a.Questions[0].Asks != "" {
		return nil
	}
	return &a.Questions[0]
}

// Idle reports whether there is nothing to show.
func (a Acts) Idle() bool {
	return a.Said == "" && a.Note == "" && !a.Stop && a.Resume == nil && !a.Undo && len(a.Questions) == 0
}

// Plan says what an undo would do.
type Plan struct {
	Run, Short string
	Digest     string // of the plan; empty if it cannot be carried out
	Restored   []string
	Conflicts  []story.Part // files in the way, and why
	Left       []string     // what it does not undo
	Force      string       // the command that overwrites the files in the way
}

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
