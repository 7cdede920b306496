package hone

import (
	"context"
	"fmt"
	"path"
	"slices"

	"hone/internal/reply"
	"hone/workspace"
)

// Interpret returns a change as the model plainly meant it (ruling G15): with the line
// ends that the files have. If there are faults, the change must not be applied, and
// the round returns [check.Unusable] of them: they tell the model which contents or
// paths cannot be meant, such as a file that is wholly a fence or a diff, and what to
// send instead. A document, such as .md or .txt, may be wholly a fence, and test data
// may be anything.
func (r *Run) Interpret(ctx context.Context, ch workspace.Change) (workspace.Change, []string, error) {
	meant := workspace.Change{Edits: slices.Clone(ch.Edits)}
	judged, err := Step(ctx, r, "judge", ch, func(context.Context) (judgement, error) {
		j := judgement{Styles: make([]reply.Style, len(ch.Edits))}
		for i, e := range ch.Edits {
			style, err := r.judgeEdit(e)
			if j.Styles[i] = style; err != nil {
				j.Faults = append(j.Faults, err.Error())
			}
		}
		return j, nil
	})
	for i := range judged.Styles {
		if e := &meant.Edits[i]; !e.Delete {
			e.Content = judged.Styles[i].Apply(e.Content)
		}
	}
	return meant, judged.Faults, err
}

// judgement is the record of the step in which a change was judged.
type judgement struct {
	Faults []string      `json:"faults,omitempty"`
	Styles []reply.Style `json:"styles,omitempty"` // of the files before the change
}

// The rules decide about paths that cannot be read.
func (r *Run) judgeEdit(e workspace.Edit) (reply.Style, error) {
	old, _, err := r.Tree.Read(path.Clean(e.Path))
	if err != nil {
		old = nil
		if err := r.Tree.CheckNew(e.Path); err != nil {
			return reply.Style{}, err
		}
	}
	if e.Delete {
		return reply.Style{}, nil
	}
	if err := reply.CheckContent(e.Path, old, e.Content); err != nil {
		return reply.Style{}, fmt.Errorf("%s: %w", e.Path, err)
	}
	return reply.StyleOf(old), nil
}
