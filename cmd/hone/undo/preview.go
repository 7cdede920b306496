package undo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"hone/cmd/hone/failure"
	"hone/history"
	"hone/internal/render"
)

// Preview is what an undo would do.
type Preview struct {
	Run       string             `json:"run"`
	Round     int                `json:"round"`
	Plan      string             `json:"plan"` // its digest
	Restored  []string           `json:"restored"`
	Conflicts []history.Conflict `json:"conflicts"` // in the way of all of it, without force
	Left      []string           `json:"left"`      // a line for each change that it leaves alone
}

// Preview returns what the undo would do with the current files.
func (p *Plan) Preview(ctx context.Context) (Preview, error) {
	left, err := p.leftLines(ctx, p.Restorable, p.run.Past.Last().Time)
	return Preview{p.run.Journal.Run(), p.Round, p.digest(), some(p.Restorable), some(p.Conflicts), some(left)}, err
}

// JSON does not write it as null.
func some[T any](list []T) []T { return append([]T{}, list...) }

// It identifies what the undo would do.
func (p *Plan) digest() string {
	b, _ := json.Marshal([]any{p.run.Journal.Run(), p.run.Journal.Head(), p.Round, p.Restorable, p.Conflicts, p.Outside, p.Doubtful, p.Own}) // texts and numbers only
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// MustBe returns an error if the plan is not the one that the user saw in a preview.
func (p *Plan) MustBe(digest string) error {
	if digest == p.digest() {
		return nil
	}
	return failure.Usage("nothing was undone, because the files or the run have changed since the preview",
		fmt.Sprintf("preview it again: hone undo %s%s --dry-run", p.named, toRound(p.Round)))
}

// PreviewLines returns a preview for the terminal. The error is that of [Plan.CarryOut] if files are
// in the way.
func (p *Plan) PreviewLines(v Preview, force bool) (lines []string, err error) {
	forced, files := "", map[string]string{}
	for _, path := range v.Restored {
		files[path] = ""
	}
	if len(p.Conflicts) > 0 {
		if !force {
			return nil, p.conflictError()
		}
		forced = " --force"
	}
	for _, c := range p.Conflicts {
		if !c.Lost {
			files[c.Path] = fmt.Sprintf(" (overwritten: %s; a copy is kept)", c.Why)
		}
	}
	n := len(files)
	if n == 0 {
		return slices.Concat(p.nothing(), p.unrestorableLines(), v.Left), nil
	}
	lines = append(lines, fmt.Sprintf("would restore %s as %s %s:", render.Count(n, "file"), itWas(n), p.when()))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, "  "+render.Line(path)+files[path])
	}
	return slices.Concat(lines, p.unrestorableLines(), v.Left,
		[]string{fmt.Sprintf("to undo exactly this: hone undo %s%s%s --plan %s", p.named, toRound(p.Round), forced, v.Plan)}), nil
}
