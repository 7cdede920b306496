package task

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/render"
	"hone/loop"
	"hone/model"
	"hone/workspace"
)

var (
	//go:embed prompt.md
	rules string // of both roles
	//go:embed prompt-executor.md
	executing string
	//go:embed prompt-reviewer.md
	reviewing string
)

// System and ReviewerSystem describe their part to the executor and to the reviewer,
// whose tools differ. They never change within a run (ruling G13).
var (
	System         = rules + executing
	ReviewerSystem = rules + reviewing
)

// AgentSystem replaces System if the executor is a command-line agent with
// tools of its own.
//
//go:embed prompt-agent.md
var AgentSystem string

//go:embed prompt-execution.md
var executionProtocol string

// composed is the record of a prompt: the part that is specific to this loop.
type composed struct {
	Text string `json:"text"`
}

type earlier struct {
	loops []LoopSummary
	tasks []taskFile
}

func (e earlier) changedTask(t taskFile) bool {
	return len(e.tasks) > 0 && !slices.Equal(e.tasks[len(e.tasks)-1].Turns, t.Turns)
}

// They are the task's own turns, the last of them with the state of the work. The task is sent once, and no two consecutive
// messages have the same role.
func (l Loop) composeExecution(ctx context.Context, r *hone.Run, t taskFile, prior []check.Finding, past earlier) ([]model.Message, error) {
	s := standing{task: t, check: l.Check, noBash: l.NoBash, loop: r.Round(), past: past.loops, changed: past.changedTask(t)}
	p, err := hone.Step(ctx, r, "compose execution", prior, func(ctx context.Context) (_ composed, err error) {
		if s.prior, err = currentFindings(r, prior); err != nil {
			return composed{}, err
		}
		tree, err := r.Manifest(ctx)
		if err != nil {
			return composed{}, err
		}
		s.files = loop.FilesText(tree, l.Guard, Own, r.Judges)
		if s.last, err = r.LastSession(l.Executor); err != nil {
			return composed{}, err
		}
		s.last += loop.FalseClaim(s.last, s.prior)
		return composed{s.text(l.Guard.Redact(r.Tree.Dir()), r.Limits.Rounds, l.Executor)}, nil
	})
	if err != nil {
		return nil, err
	}
	return l.messages(t, p.Text), l.fits(l.Executor, t, len(p.Text))
}

// agentPrompt is an agent's prompt; everything else is its context.
const agentPrompt = "Carry out the task as PHASE: EXECUTION describes, as far as you can in this session, and end with your final answer."

// An agent gets one message, which names the roles if the task has several turns.
func (l Loop) messages(t taskFile, text string) (messages []model.Message) {
	if l.Executor.Agent {
		var parts []model.Part
		for _, turn := range t.Turns {
			said := turn.Text
			if len(t.Turns) > 1 {
				said = fmt.Sprintf("[%s]\n%s", turn.Role, said)
			}
			parts = append(parts, model.Part{Text: withNewline(said)})
		}
		return []model.Message{{Role: model.User, Parts: append(parts, model.Part{Text: text}, model.Part{Text: agentPrompt})}}
	}
	for _, turn := range t.Turns {
		messages = append(messages, model.Message{Role: turn.Role, Parts: []model.Part{{Text: turn.Text}}})
	}
	last := &messages[len(messages)-1]
	last.Parts[0].Cache = true
	if !strings.HasSuffix(last.Parts[0].Text, "\n") {
		text = "\n" + text
	}
	last.Parts = append(last.Parts, model.Part{Text: text})
	return messages
}

// The error states what takes the room (ruling G10).
func (l Loop) fits(role hone.Role, t taskFile, rest int) error {
	return loop.Explain(role.Fits(int64(len(role.System)+t.Size()+rest)), func() string {
		return fmt.Sprintf("the task takes %d bytes, the account of earlier loops %d", t.Size(), rest)
	}, "shorten the task")
}

// standing is the state of the work when a loop begins.
type standing struct {
	task    taskFile
	check   string
	noBash  bool
	changed bool // since the last loop
	loop    int
	past    []LoopSummary
	last    string // what the last session did and said; empty if there was none
	prior   []check.Finding
	files   string // the list of the tree's files
}

func (s standing) text(dir string, loops int, role hone.Role) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nLoop %d of %d.\n", s.loop, max(s.loop, loops))
	if s.changed {
		b.WriteString("The task has changed since the last loop; the text above is the current one.\n")
	}
	var written, edited, deleted []string
	for _, did := range s.past {
		written, edited, deleted = append(written, did.Written...), append(edited, did.Edited...), append(deleted, did.Deleted...)
	}
	list(&b, "Files created across all prior loops", unique(written))
	list(&b, "Files edited across all prior loops", unique(edited))
	list(&b, "Files deleted across all prior loops", unique(deleted))
	if n := len(s.past); n > 0 {
		b.WriteString(s.past[n-1].lastText())
	}
	if s.loop > 1 || len(s.prior) > 0 {
		b.WriteString(pendingText(s.prior))
	}
	if s.last != "" {
		b.WriteString(s.last + "\n")
	}
	fmt.Fprintf(&b, "\nWorking directory: %s\n", render.Line(dir))
	b.WriteString(s.files)
	if s.task.File != "" {
		fmt.Fprintf(&b, "Task file: %s (read-only; its task is above)\n", render.Line(s.task.File))
	}
	if s.check != "" {
		may := "you may run exactly this line"
		switch {
		case s.noBash:
			may = "you cannot run it"
		case !role.Agent:
			may += "; with `last`, a pass ends the session with the reply's answer"
		}
		fmt.Fprintf(&b, "Check: %s (it decides at the end whether the task is done; %s)\n", render.Line(s.check), may)
	}
	b.WriteString("\n")
	bounds, checks := " The session has "+session(role.Bounds.Resolved().Turns, role)+"; the last reply is for the final answer.", checksOfTools
	switch {
	case role.Agent:
		bounds, checks = "", ""
	case s.noBash:
		checks = ". This session has no `bash`: read what you changed again instead, and say so in place of the check"
	}
	orientation, first := "The complete task is above.", ""
	if s.loop > 1 {
		orientation, first = "The task and the state that the last loop left are above.", ", the pending next steps first"
	}
	if s.task.File != "" {
		orientation += " Do not read the task file as well."
	}
	run := "the project's tests, or a command that parses or compiles the code"
	if s.check != "" {
		run = "the check above"
	}
	fmt.Fprintf(&b, executionProtocol, orientation, bounds, checks, first, run)
	return b.String()
}

const checksOfTools = ", in a call of its own: a pipe, `;` and `||` hide its exit status"

func (s LoopSummary) lastText() string {
	var parts []string
	if len(s.Commands) > 0 {
		parts = append(parts, "ran: "+lastOf(s.Commands))
	}
	if s.Unchecked != "" {
		parts = append(parts, "check: "+s.Unchecked)
	}
	if len(s.Errors) > 0 {
		parts = append(parts, "errors: "+lastOf(s.Errors))
	}
	text := ""
	if len(parts) > 0 {
		text = "Last loop — " + strings.Join(parts, " | ") + ".\n"
	}
	if why := s.missingAnswer(); why != "" {
		text += "Last loop — its session ended without a final answer: " + why + ".\n"
	}
	return text
}

func lastOf(items []string) string {
	before := max(0, len(items)-3)
	text := strings.Join(items[before:], "; ")
	if before > 0 {
		text = fmt.Sprintf("(%d before these are not listed) %s", before, text)
	}
	return text
}

func (s LoopSummary) missingAnswer() string {
	switch s.Ended {
	case hone.EndedTurns:
		return "its turns were used up"
	case hone.EndedCalls:
		return "its tool calls were used up"
	case hone.EndedBudget:
		return "the run's budget was nearly used up"
	case hone.EndedDiscarded, hone.EndedRepeats:
		return "it was ended because it brought nothing"
	case endedEmpty:
		return "the model's reply was empty"
	case endedUnread:
		return "its output contains none (" + s.Detail + ")"
	}
	return ""
}

func pendingText(prior []check.Finding) string {
	var items, blockers, notes, reports strings.Builder
	var checked []check.Finding
	for _, f := range prior {
		text := loop.FindingText(f)
		switch {
		case (f.Source == check.SourceCommand || f.Source == hone.SourceProof) && f.Blocks():
			checked = append(checked, f)
		case f.Source == sourceUnfinished:
		case f.Source == sourceBlocker:
			entry(&blockers, text)
		case f.Advisory && !f.Broken:
			entry(&notes, text)
		case f.Source == sourcePending:
			entry(&items, text)
		default:
			entry(&items, "["+f.Source+"] "+text)
		}
	}
	for _, text := range loop.ForModel(checked) {
		entry(&reports, text)
	}
	var b strings.Builder
	switch {
	case items.Len() > 0:
		b.WriteString("Pending next steps:\n" + items.String())
	case reports.Len() > 0:
	case blockers.Len() > 0:
		b.WriteString("No pending steps: the last review found nothing left to do except for what is blocked.\n")
	default:
		b.WriteString("No pending steps are recorded: find out from the files what is left of the task.\n")
	}
	if reports.Len() > 0 {
		b.WriteString("The check reports:\n" + reports.String())
	}
	if blockers.Len() > 0 {
		b.WriteString("Blockers that the last review reported:\n" + blockers.String() + blocked)
	}
	if notes.Len() > 0 {
		b.WriteString("Notes:\n" + notes.String())
	}
	return b.String()
}

const blocked = "If one of them still holds, do not weaken a requirement or a test to get around it: do what can be done without it, say what still holds, " +
	"and end with `STATUS: INCOMPLETE`.\n"

func entry(b *strings.Builder, text string) {
	fmt.Fprintf(b, "  - %s\n", strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\n", "\n    "))
}

func list(b *strings.Builder, label string, items []string) {
	if len(items) > 0 {
		fmt.Fprintf(b, "%s: %s\n", label, strings.Join(items, ", "))
	}
}

func unique(items []string) []string {
	var kept []string
	for _, item := range items {
		if !slices.Contains(kept, item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// With the bounds of its session the role can plan.
func session(turns int, role hone.Role) string {
	return fmt.Sprintf("at most %d replies and %d tool calls, %d in one reply", turns, role.Bounds.Resolved().Calls, role.Bounds.Resolved().PerTurn)
}

func withNewline(text string) string { return strings.TrimRight(text, "\r\n") + "\n" }

// Preview composes the first prompt of so many loops without sending or
// recording anything.
func (l Loop) Preview(ctx context.Context, tree *workspace.Tree, loops int) (loop.Prompt, error) {
	t, err := l.task(tree)
	if err != nil {
		return loop.Prompt{}, err
	}
	files, err := tree.Files(ctx)
	if err != nil {
		return loop.Prompt{}, err
	}
	var named workspace.Manifest
	for _, f := range files {
		named = append(named, workspace.Entry{Path: f.Path})
	}
	text := standing{task: t, check: l.Check, noBash: l.NoBash, loop: 1, files: loop.FilesText(named, l.Guard, Own, nil)}.text(l.Guard.Redact(tree.Dir()), loops, l.Executor)
	p := loop.Prompt{System: l.Executor.System, Fits: l.fits(l.Executor, t, len(text))}
	messages := l.messages(t, text)
	for _, m := range messages {
		if len(messages) > 1 {
			p.Text += fmt.Sprintf("[%s]\n", m.Role)
		}
		for i, part := range m.Parts {
			if i > 0 && l.Executor.Agent {
				p.Text += "\n"
			}
			p.Text += part.Text
		}
		p.Text = withNewline(p.Text)
	}
	return p, nil
}
