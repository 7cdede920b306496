package main

import (
	"fmt"

	"hone"
	"hone/internal/config"
	"hone/loop/task"
)

// reviewerHint says how a task's reviewer is named.
const reviewerHint = "--reviewer-model gemini/gemini-2.5-flash, or reviewer-model below [task] in " + config.HonePath

// resolveStaff resolves whom a task asks: the executor, and the reviewer where
// that is another.
func (a *app) resolveStaff(s *taskSettings, f taskFlags, root string, file config.File, loops config.Loops) (err error) {
	if s.runSettings, err = a.resolveRun(f.loopFlags, root, file); err != nil {
		return err
	}
	if s.Model.Agent != nil {
		s.AgentSystem = task.AgentSystem
	}
	reviewer := f.loopFlags
	if reviewer.model, err = reviewerModel(f.reviewerModel, loops.Task.ReviewerModel); err != nil || reviewer.model == "" {
		return err
	}
	run, err := a.resolveRun(reviewer, root, file)
	switch {
	case err != nil:
		return err
	case run.Model.Agent != nil:
		return usage(run.Model.Name+": a command-line agent cannot be the reviewer, whose one write is a tool of hone's", reviewerHint)
	case s.Model.Agent == nil && run.Model.BaseURL != "" && s.Model.who() != run.Model.who():
		return usage("--base-url is one address, and executor and reviewer ask different providers", "set the providers' own variables instead, such as GOOGLE_GEMINI_BASE_URL and OPENAI_BASE_URL")
	case run.Model.Name != s.Model.Name:
		s.Reviewer = run.Model
	}
	return nil
}

// reviewerModel is the model that was named for the reviewer, in hone's
// spelling; empty where none was.
func reviewerModel(names ...string) (string, error) {
	for _, name := range names {
		if name != "" {
			return codescribeModel(name)
		}
	}
	return "", nil
}

// reviewed refuses an executing agent beside which there is no reviewer.
func (s taskSettings) reviewed() error {
	if s.Model.Agent == nil || s.Reviewer.Name != "" {
		return nil
	}
	return usage(s.Model.Name+" is a command-line agent, which cannot review as well: the reviewer's one write is a tool of hone's", reviewerHint)
}

// reviewer is the model that reviews.
func (s taskSettings) reviewer() modelSettings {
	if s.Reviewer.Name == "" {
		return s.Model
	}
	return s.Reviewer
}

// staff says whom the run asks, where it is more than one.
func (s taskSettings) staff() string {
	if s.Reviewer.Name == "" {
		return ""
	}
	return fmt.Sprintf("executor %s and reviewer %s", s.Model.Name, s.Reviewer.Name)
}

// employ has an executing agent run behind its walls; without one it does
// nothing.
func (a *app) employ(l *task.Loop, r *hone.Run, s taskSettings, walls *taskWalls) error {
	if walls.agent == nil {
		return nil
	}
	agent, err := a.enclose(s.Model, l.Executor.Name, r, walls.agent, l.Guard.Redact)
	if err != nil {
		return err
	}
	l.Executor.Model = agent
	return nil
}
