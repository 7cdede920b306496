package task

import (
	"context"
	"strings"

	"hone"
	"hone/internal/render"
	"hone/model"
	"hone/workspace"
)

const (
	maxChanged = 12 << 10 // the bytes of a loop's changes that a reviewer is shown; it can read the files
	maxDiffed  = 1 << 20  // the size of the largest file that is compared
)

// The prompt contains the task's turns only if the task is not in a file.
func (l *Loop) composeReview(ctx context.Context, r *hone.Run, t taskFile, did executed) ([]model.Message, error) {
	p, err := hone.Step(ctx, r, "compose review", nil, func(ctx context.Context) (composed, error) {
		changed, err := changedFiles(ctx, r)
		if err != nil {
			return composed{}, err
		}
		var b strings.Builder
		var omitted []string
		for _, d := range changed {
			diff, ok, err := l.diff(r, d)
			if err != nil {
				return composed{}, err
			}
			if ok && b.Len()+len(diff) <= maxChanged {
				b.WriteString(diff)
			} else if len(omitted) < maxListed {
				omitted = append(omitted, l.Guard.Redact(d.Path))
			}
		}
		if len(omitted) > 0 {
			b.WriteString("Also changed, and not shown: " + render.Names(omitted) + "\n")
		}
		return compose("review", map[string]any{"Dir": l.Guard.Redact(r.Tree.Dir()), "Task": t, "Asked": t.Turns[len(t.Turns)-1].Text, "Check": l.Check, "Output": reviewOutput,
			"Facts": did.Facts, "Missing": did.Facts.missingAnswer(), "Text": did.Text, "Pending": did.Pending, "Diff": b.String(), "Session": session(l.reviewTurns(), l.Reviewer)})
	})
	if err != nil {
		return nil, err
	}
	return hone.Text(p.Text), l.fits(l.Reviewer, taskFile{}, len(p.Text))
}

// ok is false if a side is not the contents of a file that may be sent.
func (l *Loop) diff(r *hone.Run, d workspace.Delta) (text string, ok bool, err error) {
	home, sides := r.Journal.Home(), [2][]byte{}
	for n, e := range []workspace.Entry{d.Before, d.After} {
		if e.Kind == "" {
			continue
		}
		if e.Kind != workspace.Regular || e.Size > maxDiffed || !home.Has(e.Digest) {
			return "", false, nil
		}
		content, err := home.Get(e.Digest)
		if err != nil {
			return "", false, err
		}
		if _, withheld := l.Guard.Withheld(d.Path, content); withheld {
			return "", false, nil
		}
		sides[n] = append([]byte{}, content...) // not nil
	}
	return l.Guard.Redact(render.Diff(d.Path, sides[0], sides[1])), true, nil
}
