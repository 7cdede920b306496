// Package reconcile brings code and specifications into sync: it sends the complete
// code base, its specs and their difference from main to a model, applies the JSON
// edits of the answer, and lets a correctness checker decide (the seed "edit loop" of
// Bork, rulings B1 to B15).
//
// It guarantees that the prompt of a later round starts with that of the first, byte
// for byte; that it omits nothing silently; and that a reply is applied completely or
// not at all, except for edits that are refused or not approved. It does not limit
// what the checker does to the tree.
package reconcile

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/internal/render"
	"hone/internal/reply"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// System describes its part to the model. It never changes within a run.
//
//go:embed prompt.md
var System string

// Loop is one reconciliation. Its JSON is recorded; the other fields are set by Build. Task is the directory whose files are
// sent and may be changed, in addition to specs/; empty means the whole repository (ruling B12). Its own specs/ contains
// specifications too (ruling B14).
type Loop struct {
	loop.Settings
	System string `json:"system"` // describes its part to the model
	// Checker is the correctness checker's path; empty if there is none. The file is
	// not sent and cannot be changed (ruling B2).
	Checker string `json:"checker,omitempty"`
	// Approve and NotSent are the configuration's patterns (ruling B1).
	Approve []string `json:"edits_require_approval,omitempty"`
	NotSent []string `json:"not_sent,omitempty"`

	// Editor is the model that answers.
	Editor hone.Role `json:"-"`
	// Repo is the repository whose specs are compared with main.
	Repo *git.Repo `json:"-"`
	// Say prints what an answer says to the user; nil prints nothing.
	Say func(text string) `json:"-"`
	// Guard finds secrets, which are withheld (ruling G8); nil withholds nothing.
	Guard *secret.Guard `json:"-"`
}

// Rules returns the rules by which the engine reviews changes.
func (l *Loop) Rules() workspace.Rules {
	var specs []string
	for _, dir := range l.specDirs() {
		specs = append(specs, treepath.Quote(dir)+"/**")
	}
	rules := workspace.Rules{
		Approve: append(specs, l.Approve...),
		NotSent: l.NotSent,
		Guard:   l.Guard,
	}
	if l.Checker != "" {
		rules.Immutable = []string{l.Checker}
	}
	if l.Task != "" {
		rules.Scope = []string{treepath.Quote(l.Task) + "/**", "specs/**"}
	}
	return rules
}

// Round is one round of the loop.
func (l *Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	prior, err := askUser(ctx, r, prior)
	if err != nil {
		return nil, err
	}
	p, err := l.compose(ctx, r, prior)
	if err != nil {
		return nil, err
	}
	got, err := r.Ask(ctx, l.Editor, p.messages())
	if err != nil {
		return nil, l.explain(err, p)
	}
	text, questions := said(got.Text())
	if text != "" {
		if err := loop.Say(ctx, r, l.Say, text); err != nil {
			return nil, err
		}
	}
	ch, problems := read(got, p.files(), func(path string) string { return l.place(p, path) })
	if len(problems) > 0 {
		return problems, nil
	}
	ch, faults, err := r.Interpret(ctx, ch)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return check.Unusable(faults...), nil
	}
	verdicts, err := r.Apply(ctx, ch, p.digestOf)
	if err != nil {
		return nil, err
	}
	return append(notes(ch, verdicts), questions...), nil
}

// sourceQuestion is the source of a finding that is the model's question to the user.
const sourceQuestion = "question"

// askUser asks the user what the model asked in the last round, and returns, instead of
// these questions, findings that tell the model all answers so far (ruling B15).
func askUser(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	var rest []check.Finding
	for _, f := range prior {
		if f.Source != sourceQuestion {
			rest = append(rest, f)
		} else if err := r.AskUser(ctx, f.Text); err != nil {
			return nil, err
		}
	}
	if len(r.Past().Facts().Asked) == 0 {
		return rest, nil
	}
	answers, err := hone.Step(ctx, r, "answers", nil, func(context.Context) (found []check.Finding, _ error) {
		for _, q := range r.Past().Facts().Asked {
			text := "There is no answer: decide yourself, and say in \"message\" what you assumed."
			if a, _ := r.Past().AnswerTo(q); a.Text != "" {
				text = "The answer: " + a.Text
			}
			found = append(found, check.Finding{Source: sourceQuestion, Advisory: true, Text: "You asked the user: " + q.Asks + "\n" + text})
		}
		return found, nil
	})
	return append(rest, answers...), err
}

func (l *Loop) explain(err error, p prompt) error {
	return loop.Explain(err, p.sizeReport, remedy)
}

// attemptLimit is how many bytes of a refused edit are sent to the model, which does
// not get its own replies again.
const attemptLimit = 64 << 10

// The findings do not cause the next round, because the check decides (ruling B13), unless edits were refused and nothing was
// applied or for the user to decide (ruling G12).
func notes(ch workspace.Change, verdicts []workspace.Verdict) []check.Finding {
	var found []check.Finding
	var done []string // the model does not get its own answers again
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
	if done != nil {
		found = append(found, note("", "Your last answer "+strings.Join(done, ", ")+"."))
	}
	judged := slices.ContainsFunc(verdicts, func(v workspace.Verdict) bool { return v.Ruling != workspace.Deny && v.Ruling != workspace.Drop })
	for i, v := range verdicts {
		e := ch.Edits[i]
		switch {
		case v.Ruling == workspace.Drop && e.Delete:
			found = append(found, note(v.Path, "You asked to delete this file, but it does not exist."))
		case v.Ruling == workspace.Allow && v.Edited:
			found = append(found, note(v.Path, "The user edited your change to this file before approving it; keep what the user wrote and build on it."))
		case v.Ruling == workspace.Deny:
			refused := note(v.Path, "Your change to this file was refused: "+v.Reason+"."+attempt(e))
			refused.Advisory = judged
			found = append(found, refused)
		case v.Ruling == workspace.Declined, v.Ruling == workspace.Pending:
			found = append(found, note(v.Path, "Your change to this file was not approved ("+v.Reason+"). Find a way without it."+attempt(e)))
		}
	}
	return found
}

func words(text string) string {
	if _, err := reply.Object(text, isKey); err == nil {
		text, _ = said(text)
	}
	return text
}

func note(path, text string) check.Finding {
	return check.Finding{Source: "apply", File: path, Text: text, Advisory: true}
}

func attempt(e workspace.Edit) string {
	switch {
	case e.Delete:
		return " You wanted to delete it."
	case !utf8.Valid(e.Content):
		return ""
	case len(e.Content) > attemptLimit:
		return fmt.Sprintf("\nWhat you wrote began:\n%s\n[%d more bytes]", e.Content[:attemptLimit], len(e.Content)-attemptLimit)
	}
	return fmt.Sprintf("\nWhat you wrote:\n%s", e.Content)
}
