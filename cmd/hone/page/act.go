package page

import (
	_ "embed"

	"hone/story"
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
