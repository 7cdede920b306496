// Package task carries out a task: an executing agent works on it with tools, hone
// computes from its calls what it did, and a reviewing agent with fewer tools lists
// what is left, loop after loop (the seed "Loop mode" of CodeScribe, rulings S1 to
// S11). The executing agent may be a command-line agent with tools of its own; what
// it did is computed from the files.
//
// It guarantees that the facts in a reviewer's prompt are hone's own, that a review
// counts only for the loop in which it was written, and that no agent's report ends a
// run that has a check. Without a check nothing verifies that the task is done. The
// files below .codescribe/loop are for the user, in CodeScribe's form; hone reads
// none of them. The walls around commands limit what these do to the
// tree.
package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/artifact"
	"hone/loop"
	"hone/model"
	"hone/tool"
	"hone/workspace"
	"hone/workspace/secret"
)

// Loop is one task. Its JSON is recorded; the task file is read in each loop. The other fields are set by Build.
type Loop struct {
	loop.Settings

	ReviewerModel  loop.Model `json:"reviewer_model,omitzero"` // zero means the executor's, which is Model
	System         string     `json:"system"`
	ReviewerSystem string     `json:"reviewer_system,omitempty"` // empty means System, in a run of an older hone
	AgentSystem    string     `json:"agent_system,omitempty"`    // the executor's system text if it is an agent
	File           string     `json:"task_file,omitempty"`       // relative to the root; empty if Text is the task
	Text           string     `json:"text,omitempty"`
	Log            string     `json:"log,omitempty"` // the absolute path of an additional log of the execution sessions
	// Typed and ReviewerTyped are the models in the user's words, for CodeScribe's files; empty means the name of the role's
	// model, and Typed.
	Typed         string `json:"model_typed,omitempty"`
	ReviewerTyped string `json:"reviewer_typed,omitempty"`

	// Executor and Reviewer are the two agents. Their tools are set in each round. The Executor may be a command-line agent
	// (ruling A8), which has tools of its own. The Reviewer cannot be one, because it writes with a tool of the loop's.
	Executor hone.Role `json:"-"`
	Reviewer hone.Role `json:"-"`
	// Tools returns the tools of the two agents. allow lists the programs that the task
	// file adds to those that commands may run. Tools is called before each session. It
	// must depend only on allow, and must not give the reviewer a tool named "write":
	// the loop adds that one.
	Tools func(allow []string) (execute, review []tool.Tool, err error) `json:"-"`
	// Guard finds secrets; nil withholds nothing.
	Guard *secret.Guard `json:"-"`
}

// Rules returns the rules by which the engine reviews changes (ruling S6).
func (l *Loop) Rules() workspace.Rules {
	rules := workspace.Rules{Immutable: []string{artifactsHome, artifactsHome + "/**"}, Guard: l.Guard}
	if l.File != "" {
		rules.Immutable = append(rules.Immutable, l.File)
	}
	return rules
}

// Own reports whether a file is one that the loop writes for users.
func Own(path string) bool { return strings.HasPrefix(path, artifactsHome+"/") }

// Where the findings of this loop come from.
const (
	sourcePending    = "pending"    // an item that is left to do
	sourceBlocker    = "blocker"    // what only the user can resolve
	sourceUnfinished = "unfinished" // no report says that it is done or what is left
)

// Round is one loop.
func (l *Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	t, err := l.reload(ctx, r)
	if err != nil {
		return nil, err
	}
	did, err := l.execute(ctx, r, t, prior)
	if err != nil {
		return nil, err
	}
	if did.Status == complete {
		return standingBlocker(prior, true), nil
	}
	// An earlier review must not be mistaken for the review of this loop (ruling S4).
	if err := loop.Do(ctx, r, stepClearReview, nil, func(context.Context) error { return artifact.Remove(r.Tree.Dir(), reviewOutput) }); err != nil {
		return nil, err
	}
	said, err := l.review(ctx, r, t, did)
	if err != nil && !hone.OutOfBudget(err) {
		return nil, err
	}
	return remainingFindings(did, said, prior), err // the work stays, without a review
}

// The user may edit the file while hone runs (ruling S6). An invalid file stops the run; continuing with the old task would do
// what the user no longer wants.
func (l *Loop) reload(ctx context.Context, r *hone.Run) (taskFile, error) {
	return hone.Step(ctx, r, stepTask, nil, func(context.Context) (taskFile, error) {
		t, err := l.task(r.Tree)
		var wrong *hone.UsageError
		switch {
		case errors.As(err, &wrong):
			return t, &hone.Stop{Kind: hone.KindUsage, Why: fmt.Sprintf("the task file is wrong: %s; %s", wrong.Why, wrong.Next.First), Next: hone.Next{First: "fix it", Verb: hone.Resume}}
		case errors.Is(err, fs.ErrNotExist):
			return t, &hone.Stop{Kind: hone.KindUsage, Why: fmt.Sprintf("the task file %s no longer exists", l.File), Next: hone.Next{First: "restore it", Verb: hone.Resume}}
		}
		return t, err
	})
}

func (l *Loop) task(tree *workspace.Tree) (taskFile, error) {
	if l.File == "" {
		return taskFile{Turns: []turn{{model.User, l.Text}}}, nil
	}
	return loadTask(tree, l.File)
}

type executed struct {
	Facts   LoopSummary
	Text    string // the final answer; empty if there is none
	Status  status
	Pending []string // what is left according to it, or what was pending before
}

// The steps whose records later loops and the logs are folded from.
const (
	stepTask          = "task"
	stepSummary       = "summary"
	stepReviewSummary = "review summary"
)

// How a session ended, in addition to hone's words.
const (
	endedEmpty  = "empty"      // with an empty answer
	endedUnread = "unreadable" // the agent's output contains no answer
)

func (l *Loop) execute(ctx context.Context, r *hone.Run, t taskFile, prior []check.Finding) (executed, error) {
	role := l.Executor
	if !role.Agent {
		tools, _, err := l.Tools(t.Allow)
		if err != nil {
			return executed{}, err
		}
		role.Tools, role.Answered = tools, answerProblem
	}
	messages, err := l.composeExecution(ctx, r, t, prior)
	if err != nil {
		return executed{}, err
	}
	talk, err := loop.Converse(ctx, r, role, messages)
	if err != nil {
		return executed{}, err
	}
	var did executed
	for _, f := range prior {
		if f.Source == sourcePending {
			did.Pending = append(did.Pending, f.Text)
		}
	}
	if did.Facts, err = facts(ctx, r, role, stepSummary, talk); err != nil {
		return did, err
	}
	if did.Facts.missingAnswer() == "" {
		did.Text = talk.Reply.Text()
		a := parseAnswer(did.Text)
		did.Status = a.Status
		if len(a.Next) > 0 {
			did.Pending = a.Next
		}
	}
	return did, nil
}

func facts(ctx context.Context, r *hone.Run, role hone.Role, name string, talk hone.Conversation) (LoopSummary, error) {
	return hone.Step(ctx, r, name, nil, func(ctx context.Context) (s LoopSummary, err error) {
		s = LoopSummary{Loop: r.Round(), Agent: role.Agent, Ended: talk.Ended}
		for _, c := range talk.Calls {
			s.add(c)
		}
		if role.Agent { // the facts come from the trees, not from what the agent reports
			if !talk.Reply.Finish.Normal() {
				s.Ended, s.Detail = endedUnread, line(talk.Reply.Detail, 1000)
			}
			var changed []workspace.Delta
			changed, err = changedFiles(ctx, r)
			for _, d := range changed {
				d.Path = r.Rules.Guard.Redact(d.Path)
				s.addFile(d)
			}
		}
		if s.Ended == hone.EndedAnswer && strings.TrimSpace(talk.Reply.Text()) == "" {
			s.Ended = endedEmpty
		}
		return s, err
	})
}

func (l *Loop) review(ctx context.Context, r *hone.Run, t taskFile, did executed) (reviewed, error) {
	messages, err := l.composeReview(ctx, r, t, did)
	if err != nil {
		return reviewed{}, err
	}
	role := l.Reviewer
	_, tools, err := l.Tools(t.Allow)
	if err != nil {
		return reviewed{}, err
	}
	role.Tools = append(slices.Clip(tools), reviewWrite(r.Tree.Dir(), r.Round()))
	role.Bounds.Turns = l.reviewTurns()
	role.Answered = reviewProblem(r)
	talk, err := r.Talk(ctx, role, messages)
	if err != nil {
		return reviewed{}, err
	}
	if _, err := facts(ctx, r, role, stepReviewSummary, talk); err != nil {
		return reviewed{}, err
	}
	said, err := readReview(ctx, r)
	if err == nil && !said.Counts {
		err = r.Notice(fmt.Sprintf("loop %d has no review: %s; the pending items are kept", r.Round(), said.Why))
	}
	return said, err
}

func (l *Loop) reviewTurns() int { return ReviewTurns(l.Executor.Bounds.Resolved().Turns) }

// ReviewTurns returns how many turns a review has, given those of an execution.
func ReviewTurns(execution int) int { return max(6, execution/2) }

// It follows rulings G12, S4 and S5.
func remainingFindings(did executed, said reviewed, prior []check.Finding) []check.Finding {
	items, blocker := did.Pending, standingBlocker(prior, false)
	if said.Counts {
		items, blocker = said.Pending, nil
	}
	if said.Blocker != "" {
		blocker = []check.Finding{{Source: sourceBlocker, Text: said.Blocker, Blocker: true}}
	}
	var found []check.Finding
	for _, item := range items {
		found = append(found, check.Finding{Source: sourcePending, Text: item})
	}
	found = append(found, blocker...)
	if len(found) == 0 && !said.Counts {
		found = append(found, check.Finding{Source: sourceUnfinished, Text: "no report says that the task is complete or what is left"})
	}
	return found
}

// A blocker stands until a review removes it (ruling S5). If it is advisory the check decides all the same.
func standingBlocker(prior []check.Finding, advisory bool) []check.Finding {
	for _, f := range prior {
		if f.Source == sourceBlocker {
			f.Advisory = advisory
			return []check.Finding{f}
		}
	}
	return nil
}
