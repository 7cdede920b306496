// Package fix lets a model fix what a check reports, round after round, until
// the check passes.
//
// It promises that the check alone decides. It runs before the first round
// (ruling G18), and if it passes then, no model is asked. What a model says at
// the end of its session is shown and decides nothing.
package fix

import (
	"context"
	_ "embed"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/render"
)

// System is what the model is told of its part. It never changes within a run
// (ruling G13).
//
//go:embed prompt.md
var System string

// Loop is one fix, resolved.
type Loop struct {
	Fixer  hone.Role
	Check  string // the command line that has to pass
	Advice string // the user's; empty: none
}

// Round is one conversation, which begins with what the check reports now.
func (l Loop) Round(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
	_, err := r.Talk(ctx, l.Fixer, hone.Text(l.prompt(), reports(wrong)))
	return nil, err
}

// prompt is what stays the same in all rounds.
func (l Loop) prompt() string {
	text := "This check must pass:\n\n" + indented(l.Check) +
		"\nYou may run it with `bash`, exactly as it stands here, as often as you need.\n"
	if l.Advice != "" {
		text += "\nThe user adds this advice:\n\n" + strings.TrimSpace(l.Advice) + "\n"
	}
	return text
}

// reports is what the check reports now.
func reports(wrong []check.Finding) string {
	var b strings.Builder
	b.WriteString("\nWhat it reports now:\n")
	for _, f := range wrong {
		text := f.Text
		if f.File != "" {
			text = render.Line(f.File) + ": " + text
		}
		b.WriteString("\n" + strings.TrimRight(text, "\r\n") + "\n")
	}
	b.WriteString("\nFix it, then run the check again.\n")
	return b.String()
}

// indented sets a command line off from the text around it.
func indented(line string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(line), "\n", "\n    ") + "\n"
}
