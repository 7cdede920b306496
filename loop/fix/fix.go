// Package fix lets a model fix what a check reports, until the check passes. Only the
// check decides: it runs before the first round (ruling G18), and if it passes then,
// no model is called.
package fix

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/render"
	"hone/loop"
	"hone/workspace/secret"
)

// System describes its part to the model (ruling G13).
//
//go:embed prompt.md
var System string

// Loop is one fix with all its settings resolved.
type Loop struct {
	Fixer  hone.Role
	Check  string // the command line that must pass
	Advice string // the user's; empty if there is none
	NoBash bool   // the fixer has no bash, and cannot run the check
	Guard  *secret.Guard
}

// place is the record of where the work is: the directory, and its files.
type place struct {
	Text string `json:"text"`
}

// Round is one conversation. It starts with what the one before did and said, and what the
// check reports now.
func (l Loop) Round(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
	last, err := r.LastSession(l.Fixer)
	if err != nil {
		return nil, err
	}
	if last != "" {
		last = "\n" + last + "\n" + loop.FalseClaim(last, wrong)
	}
	at, err := hone.Step(ctx, r, "look", nil, func(ctx context.Context) (place, error) {
		files, err := loop.FilesText(ctx, r.Tree, l.Guard, r.Own)
		return place{fmt.Sprintf("\nWorking directory: %s\n%s", render.Line(l.Guard.Redact(r.Tree.Dir())), files)}, err
	})
	if err != nil {
		return nil, err
	}
	report := at.Text + last + "\nWhat it reports now:\n\n" + strings.Join(loop.ForModel(wrong), "\n\n") + "\n"
	_, err = r.Talk(ctx, l.Fixer, hone.Text(l.prompt(), report))
	return nil, err
}

// It is the same in all rounds.
func (l Loop) prompt() string {
	howToRun := "You may run it with `bash`, exactly as it is written here, as often as you need."
	if l.NoBash {
		howToRun = "You cannot run it. It runs when your session ends."
	}
	text := "This check must pass:\n\n" + loop.Indented(l.Check) + "\n\n" + howToRun + "\n"
	if l.Advice != "" {
		text += "\nThe user adds this advice:\n\n" + strings.TrimSpace(l.Advice) + "\n"
	}
	return text
}
