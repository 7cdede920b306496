package page

import _ "embed"

var (
	//go:embed act.html
	actTemplates string
	//go:embed act.css
	actStyle string
)

// Acts is what the user can do with a run on its page.
type Acts struct {
	Run    string // its id
	Said   string // about the last action; empty if there is nothing to say
	Note   string // why something cannot be done here; empty if there is nothing to say
	Stop   bool
	Resume []Limit // the limits with which the run can be resumed; nil: it cannot
	Undo   bool
	// Questions are those that the user can answer here, all at once.
	Questions []Question
}

// Limit is a limit that the user can raise.
type Limit struct{ Flag, Label, Value, Hint string }

// Question asks whether a change may be made.
type Question struct {
	Digest, Path string
	Verb, Reason string
	Diff         string   // a unified diff
	NoDiff       []string // why parts of it are not shown
}

// Only returns the question if there is only one, so that an answer needs one click.
func (a Acts) Only() *Question {
	if len(a.Questions) != 1 {
		return nil
	}
	return &a.Questions[0]
}

// Idle reports whether there is nothing to do or to say.
func (a Acts) Idle() bool {
	return a.Said == "" && a.Note == "" && !a.Stop && a.Resume == nil && !a.Undo && len(a.Questions) == 0
}

// Acts renders what the user can do. The element is there also if that is nothing.
func (r *Renderer) Acts(a Acts) (Part, error) { return r.part("act", "act", a) }

// Plan is what an undo would do.
type Plan struct {
	Run, Short string
	Digest     string // of the plan; empty if it cannot be carried out
	Restored   []string
	Conflicts  []Fact   // files in the way, and why
	Left       []string // what it does not undo
	Force      string   // the command that overwrites the files in the way
}

// Plan renders what an undo would do.
func (r *Renderer) Plan(p Plan) (Part, error) { return r.part("plan", "plan", p) }
