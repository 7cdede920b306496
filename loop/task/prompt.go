package task

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

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
	//go:embed prompt-execution.md
	executionText string
	//go:embed prompt-review.md
	reviewText string
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

// fill fills the template of what a session gets beside its system text.
var fill = loop.Template(`{{define "execution"}}`+executionText+`{{end}}{{define "review"}}`+reviewText+`{{end}}`, template.FuncMap{
	"newline": withNewline, "session": session, "items": items, "empty": LoopSummary.empty, "files": LoopSummary.filesText, "list": list, "lines": func(label string, lines []string) string {
		if len(lines) == 0 {
			return ""
		}
		return label + "\n  " + strings.Join(lines, "\n  ") + "\n"
	},
	"since": func(s LoopSummary) string { return lastOf(s.Commands[len(s.Commands)-s.SinceChange:]) }})

// composed is the record of a prompt: the part that is specific to this loop.
type composed struct {
	Text string `json:"text"`
}

// They are the task's own turns, the last of them with the state of the work. The task is sent once, and no two consecutive
// messages have the same role.
func (l *Loop) composeExecution(ctx context.Context, r *hone.Run, t taskFile, prior []check.Finding) ([]model.Message, error) {
	past, err := hone.Earlier[LoopSummary](r, stepSummary)
	tasks, other := hone.Earlier[taskFile](r, stepTask)
	if err = cmp.Or(err, other); err != nil {
		return nil, err
	}
	p, err := hone.Step(ctx, r, "compose execution", prior, func(ctx context.Context) (_ composed, err error) {
		s := standing{Task: t, Loop: r.Round(), Loops: r.Limits.Rounds, Dir: r.Tree.Dir(), Past: past,
			Changed: len(tasks) > 0 && !slices.Equal(tasks[len(tasks)-1].Turns, t.Turns)}
		if s.Prior, err = currentFindings(r, prior); err != nil {
			return composed{}, err
		}
		tree, err := r.Manifest(ctx)
		if err != nil {
			return composed{}, err
		}
		s.Files = loop.FilesText(tree, l.Guard, Own, r.Judges)
		if s.Last, err = r.LastSession(l.Executor); err != nil {
			return composed{}, err
		}
		s.Last += loop.FalseClaim(s.Last, s.Prior)
		return l.standingText(s), nil
	})
	if err != nil {
		return nil, err
	}
	return l.messages(t, p.Text), l.fits(l.Executor, t, len(p.Text))
}

// agentPrompt is an agent's prompt; everything else is its context.
const agentPrompt = "Carry out the task as PHASE: EXECUTION describes, as far as you can in this session, and end with your final answer."

// An agent gets one message, which names the roles if the task has several turns.
func (l *Loop) messages(t taskFile, text string) (messages []model.Message) {
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
func (l *Loop) fits(role hone.Role, t taskFile, rest int) error {
	return loop.Explain(role.Fits(int64(len(role.System)+t.Size()+rest)), func() string {
		return fmt.Sprintf("the task takes %d bytes, the account of earlier loops %d", t.Size(), rest)
	}, "shorten the task")
}

// standing is the state of the work when a loop begins.
type standing struct {
	Task        taskFile
	Changed     bool // since the last loop
	Loop, Loops int
	Dir         string
	Past        []LoopSummary
	Last        string // what the last session did and said; empty if there was none
	Prior       []check.Finding
	Files       string // the list of the tree's files

	// What follows from these and from the settings; see standingText.
	Written, Edited, Deleted        []string
	Did, Missing                    string
	Items, Blockers, Notes, Reports []string
	Check                           string
	NoBash                          bool
	Role                            hone.Role
	Turns                           int
}

func (l *Loop) standingText(s standing) composed {
	s.Check, s.NoBash, s.Role, s.Turns = l.Check, l.Walls.Absent, l.Executor, l.Executor.Bounds.Resolved().Turns
	s.Dir, s.Loops = l.Guard.Redact(s.Dir), max(s.Loop, s.Loops)
	for _, did := range s.Past {
		s.Written, s.Edited, s.Deleted = append(s.Written, did.Written...), append(s.Edited, did.Edited...), append(s.Deleted, did.Deleted...)
	}
	if n := len(s.Past); n > 0 {
		s.Did, s.Missing = s.Past[n-1].did(), s.Past[n-1].missingAnswer()
	}
	var checked []check.Finding
	for _, f := range s.Prior {
		text := loop.FindingText(f)
		switch {
		case (f.Source == check.SourceCommand || f.Source == hone.SourceProof) && f.Blocks():
			checked = append(checked, f)
		case f.Source == sourceUnfinished:
		case f.Source == sourceBlocker:
			s.Blockers = append(s.Blockers, text)
		case f.Advisory && !f.Broken:
			s.Notes = append(s.Notes, text)
		case f.Source == sourcePending:
			s.Items = append(s.Items, text)
		default:
			s.Items = append(s.Items, "["+f.Source+"] "+text)
		}
	}
	s.Reports = loop.ForModel(checked)
	return composed{fill("execution", s)}
}

func (s LoopSummary) did() string {
	var parts []string
	if len(s.Commands) > 0 {
		parts = append(parts, "ran: "+lastOf(s.Commands))
	}
	if len(s.Errors) > 0 {
		parts = append(parts, "errors: "+lastOf(s.Errors))
	}
	return strings.Join(parts, " | ")
}

func lastOf(items []string) string {
	before := max(0, len(items)-3)
	text := strings.Join(items[before:], "; ")
	if before > 0 {
		text = fmt.Sprintf("(%d before these are not listed) %s", before, text)
	}
	return text
}

// missingAnswer says why the session ended without a final answer; empty if it has one.
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

// filesText says what an agent changed, in place of its calls.
func (s LoopSummary) filesText() string {
	text := "  (the session was held by " + agentsOwn + "; the list below shows how the files differ from before it; files that git ignores are omitted)\n" +
		list("Files created", s.Written) + list("Files edited", s.Edited) + list("Files deleted", s.Deleted)
	switch {
	case s.Unlisted > 0:
		text += fmt.Sprintf("  (and %d more)\n", s.Unlisted)
	case s.empty():
		text += "  (no file differs)\n"
	}
	return text
}

func items(texts []string) (list string) {
	for _, text := range texts {
		list += "  - " + strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\n", "\n    ") + "\n"
	}
	return list
}

// list is a line with a label, and each item once; empty without items.
func list(label string, items []string) string {
	var kept []string
	for _, item := range items {
		if !slices.Contains(kept, item) {
			kept = append(kept, item)
		}
	}
	if kept == nil {
		return ""
	}
	return label + ": " + strings.Join(kept, ", ") + "\n"
}

// With the bounds of its session the role can plan.
func session(turns int, role hone.Role) string {
	return fmt.Sprintf("at most %d replies and %d tool calls, %d in one reply", turns, role.Bounds.Resolved().Calls, role.Bounds.Resolved().PerTurn)
}

func withNewline(text string) string { return strings.TrimRight(text, "\r\n") + "\n" }

// Preview composes the first prompt of the executor.
func (l *Loop) Preview(ctx context.Context, view loop.View) (p loop.Prompt, err error) {
	l.prepare(view.Guard)
	t, err := l.task(view.Tree)
	if err != nil {
		return p, err
	}
	files, err := view.Tree.Manifest(ctx, nil)
	if err != nil {
		return p, err
	}
	text := l.standingText(standing{Task: t, Loop: 1, Loops: view.Limits.Rounds, Dir: view.Tree.Dir(), Files: loop.FilesText(files, l.Guard, Own, nil)})
	p = loop.Prompt{System: l.Executor.System, Fits: l.fits(l.Executor, t, len(text.Text)), What: "the task and the instructions"}
	if l.Check != "" {
		p.What += "; a run adds what the check reports"
	}
	messages := l.messages(t, text.Text)
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
	return p, err
}

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
		return composed{fill("review", map[string]any{"Dir": l.Guard.Redact(r.Tree.Dir()), "Task": t, "Asked": t.Turns[len(t.Turns)-1].Text, "Check": l.Check, "Output": reviewOutput,
			"Facts": did.Facts, "Missing": did.Facts.missingAnswer(), "Text": did.Text, "Pending": did.Pending, "Diff": b.String(), "Session": session(l.reviewTurns(), l.Reviewer)})}, nil
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
