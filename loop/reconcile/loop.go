// Package reconcile brings code and specifications into sync: the whole code
// base, its specs and the specs' difference from main go to a model, its JSON
// edits come back, and a correctness checker has the last word (the seed
// "edit loop" of Bork, rulings B1 to B13).
//
// It promises that the prompt of a later round begins with that of the first
// byte for byte, that nothing is silently left out of it, and that a reply is
// applied as a whole or not at all, but for what is refused or declined. What
// the checker does to the tree is the user's own affair.
package reconcile

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

// Rounds is how many the seed gives.
const Rounds = 5

// System is what the model is told about its part. It never changes within a
// run.
//
//go:embed prompt.md
var System string

// Loop is one reconciliation, resolved: it asks nobody for settings.
type Loop struct {
	// Editor is the model that is asked; its System is usually [System].
	Editor hone.Role
	// Repo is the repository whose specs are compared with main.
	Repo *git.Repo
	// Scope is the folder whose files are sent and may be changed, beside
	// specs/; empty means the whole repository (ruling B12).
	Scope string
	// Checker is the correctness checker's path; empty where there is none.
	// It is not sent and cannot be changed (ruling B2).
	Checker string
	// Approve and NotSent are the configuration's patterns (ruling B1).
	Approve []string
	NotSent []string
	// Guard finds what is withheld (ruling G8); nil withholds nothing.
	Guard *secret.Guard
}

// Rules are what the engine reviews changes by.
func (l Loop) Rules() workspace.Rules {
	rules := workspace.Rules{
		Approve: append([]string{"specs/**"}, l.Approve...),
		NotSent: l.NotSent,
		Guard:   l.Guard,
	}
	if l.Checker != "" {
		rules.Immutable = []string{l.Checker}
	}
	if l.Scope != "" {
		rules.Scope = []string{l.Scope + "/**", "specs/**"}
	}
	return rules
}

// Round is one round of the loop.
func (l Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	p, err := l.compose(ctx, r, prior)
	if err != nil {
		return nil, err
	}
	reply, err := r.Ask(ctx, l.Editor, p.messages())
	if err != nil {
		return nil, l.explain(err, p)
	}
	ch, problems := read(reply, p.files())
	if len(problems) > 0 {
		return problems, nil
	}
	verdicts, err := r.Apply(ctx, ch, p.seen)
	if err != nil {
		return nil, err
	}
	return told(ch, verdicts), nil
}

// explain adds to a context error what takes the room.
func (l Loop) explain(err error, p prompt) error {
	var c *hone.ContextError
	if errors.As(err, &c) && c.Room == "" {
		c.Room, c.Remedy = p.room(), remedy
	}
	return err
}

// attemptLimit is how many bytes of a refused edit are shown to the model,
// which does not see its own replies again.
const attemptLimit = 64 << 10

// told words what was not done, for the next round. None of it asks for that
// round: whether one follows is the check's to say (ruling B13).
func told(ch workspace.Change, verdicts []workspace.Verdict) []check.Finding {
	var found []check.Finding
	if done := made(ch, verdicts); done != "" {
		found = append(found, note("", "Your last answer "+done+"."))
	}
	for i, v := range verdicts {
		e := ch.Edits[i]
		switch {
		case v.Ruling == workspace.Drop && e.Delete:
			found = append(found, note(v.Path, "You asked to delete this file, but it does not exist."))
		case v.Ruling == workspace.Deny:
			found = append(found, note(v.Path, "Your change to this file was refused: "+v.Reason+"."+attempted(e)))
		case v.Ruling == workspace.Declined:
			found = append(found, note(v.Path, "Your change to this file was not approved ("+v.Reason+"). Find a way without it."+attempted(e)))
		}
	}
	return found
}

// made lists what was done of a change: the model is not shown its own answers
// again, and should know which files are its own.
func made(ch workspace.Change, verdicts []workspace.Verdict) string {
	var done []string
	for i, v := range verdicts {
		switch {
		case v.Ruling != workspace.Allow:
		case ch.Edits[i].Delete:
			done = append(done, "deleted "+render.Path(v.Path))
		case v.Before.Exists():
			done = append(done, "changed "+render.Path(v.Path))
		default:
			done = append(done, "created "+render.Path(v.Path))
		}
	}
	return strings.Join(done, ", ")
}

func note(path, text string) check.Finding {
	return check.Finding{Source: "apply", File: path, Text: text, Advisory: true}
}

func attempted(e workspace.Edit) string {
	switch {
	case e.Delete:
		return " You wanted to delete it."
	case !utf8.Valid(e.Content):
		return ""
	case len(e.Content) > attemptLimit:
		return fmt.Sprintf(" What you wrote began:\n%s\n[%d more bytes]", e.Content[:attemptLimit], len(e.Content)-attemptLimit)
	}
	return fmt.Sprintf(" What you wrote:\n%s", e.Content)
}
