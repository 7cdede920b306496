package task

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"hone"
	"hone/internal/render"
	"hone/model"
	"hone/workspace"
)

//go:embed prompt-review.md
var reviewProtocol string

// The prompt contains the task's turns only if the task is not in a file.
func (l Loop) composeReview(ctx context.Context, r *hone.Run, t taskFile, did executed) ([]model.Message, error) {
	p, err := hone.Step(ctx, r, "compose review", nil, func(ctx context.Context) (composed, error) {
		changed, err := l.changedText(ctx, r)
		return composed{reviewText(l.Guard.Redact(r.Tree.Dir()), l.Check, t, did, changed, session(l.reviewTurns(), l.Reviewer))}, err
	})
	if err != nil {
		return nil, err
	}
	return hone.Text(p.Text), l.fits(l.Reviewer, taskFile{}, len(p.Text))
}

const (
	maxChanged = 12 << 10 // the bytes of a loop's changes that a reviewer is shown; it can read the files
	maxDiffed  = 1 << 20  // the size of the largest file that is compared
)

func (l Loop) changedText(ctx context.Context, r *hone.Run) (string, error) {
	changed, err := changedFiles(ctx, r)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var omitted []string
	for _, d := range changed {
		diff, ok, err := l.diff(r, d)
		if err != nil {
			return "", err
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
	return b.String(), nil
}

// ok is false if a side is not the contents of a file that may be sent.
func (l Loop) diff(r *hone.Run, d workspace.Delta) (text string, ok bool, err error) {
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

func reviewText(dir, check string, t taskFile, did executed, changed, session string) string {
	var b strings.Builder
	s := did.Facts
	fmt.Fprintf(&b, "Working directory: %s\n", render.Line(dir))
	if t.File != "" {
		fmt.Fprintf(&b, "Task file: %s (read-only; read it first)\n", render.Line(t.File))
	}
	if check != "" {
		fmt.Fprintf(&b, "Check: %s (it decides, and runs after your review)\n", render.Line(check))
	}
	fmt.Fprintf(&b, "Review output: %s (write here)\n\nPHASE: REVIEW\n\n", reviewOutput)
	if t.File == "" {
		fmt.Fprintf(&b, "## The task\n%s\n\n", withNewline(t.Turns[len(t.Turns)-1].Text))
	}
	b.WriteString(s.facts())
	if changed != "" {
		fmt.Fprintf(&b, "## What changed in loop %d\n%s\n", s.Loop, changed)
	}
	switch {
	case s.missingAnswer() != "":
		fmt.Fprintf(&b, "[Execution agent report — loop %d]\nThere is none: the session ended without a final answer, because %s. "+
			"These items were pending before it and stay pending unless you report otherwise:\n", s.Loop, s.missingAnswer())
		for _, item := range did.Pending {
			entry(&b, item)
		}
		if len(did.Pending) == 0 {
			b.WriteString("  (none recorded)\n")
		}
		b.WriteString("\n")
	default:
		fmt.Fprintf(&b, "[Execution agent report — loop %d]\n%s\n", s.Loop, withNewline(did.Text))
	}
	evidence, enough := evidenceOfCalls, enoughOfCalls
	if s.Agent {
		evidence, enough = evidenceOfFiles, enoughOfFiles
	}
	fmt.Fprintf(&b, reviewProtocol, reviewOutput, s.Loop, session, evidence, enough)
	return b.String()
}

// The evidence for a reviewer: the calls of a model are known; of an agent, only
// the changes to the files are.
const (
	evidenceOfCalls = "A rejected call had no effect, whatever the report says about it. You cannot run the checks yourself: " +
		"a check passed if a verified command shows exit code 0, which is the status of the last command in its line."
	evidenceOfFiles = "What it says about files, verify in the files. You cannot run the checks yourself, and it is unknown which commands ran: " +
		"that a check passed is the report's word and no more. If the loop has a check of its own, it runs after your review."
	enoughOfCalls = "the check passed, every failure was fixed (a refused call is not a failure), and the task's requirements are met"
	enoughOfFiles = "the files meet the task's requirements and the report leaves nothing open"
)

func (s LoopSummary) facts() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Verified actions from loop %d (harness-computed)\n", s.Loop)
	switch {
	case s.Agent:
		b.WriteString(s.filesText())
	case s.empty():
		b.WriteString("  (no verified actions)\n")
	}
	list(&b, "Files read", s.Read)
	if !s.Agent {
		list(&b, "Files written", unique(s.Written))
		list(&b, "Files edited", unique(s.Edited))
	}
	if !s.Agent && len(s.Commands) == 0 {
		b.WriteString("Commands run: none\n")
	}
	writeIndented(&b, "Commands run:", s.Commands)
	b.WriteString(s.sinceChange())
	if s.Unchecked != "" {
		fmt.Fprintf(&b, "The check that decides: %s\n", s.Unchecked)
	}
	writeIndented(&b, "Errors:", s.Errors)
	b.WriteString("\n")
	if len(s.Rejected) > 0 {
		writeIndented(&b, "## Attempted but NOT executed (harness-rejected — no workspace effect)", s.Rejected)
		b.WriteString("\n")
	}
	return b.String()
}

// The reviewer learns which commands saw the files as they are now.
func (s LoopSummary) sinceChange() string {
	switch {
	case len(s.Commands) == 0 || len(s.Written)+len(s.Edited) == 0 || s.Agent:
		return ""
	case s.SinceChange == 0:
		return "No command ran after the last write or edit.\n"
	}
	return "After the last write or edit ran: " + lastOf(s.Commands[len(s.Commands)-s.SinceChange:]) + "\n"
}

func (s LoopSummary) filesText() string {
	var b strings.Builder
	b.WriteString("  (the session was held by " + agentsOwn + "; the list below shows how the files differ from before it; files that git ignores are omitted)\n")
	list(&b, "Files created", s.Written)
	list(&b, "Files edited", s.Edited)
	list(&b, "Files deleted", s.Deleted)
	switch {
	case s.Unlisted > 0:
		fmt.Fprintf(&b, "  (and %d more)\n", s.Unlisted)
	case s.empty():
		b.WriteString("  (no file differs)\n")
	}
	return b.String()
}

func writeIndented(b *strings.Builder, label string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "%s\n  %s\n", label, strings.Join(lines, "\n  "))
	}
}
