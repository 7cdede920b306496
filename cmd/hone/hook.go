package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/check"
	"hone/cmd/hone/failure"
	"hone/group"
	"hone/loop"
	"hone/workspace"
)

// hookAgents are the agents whose Stop hook check can be.
var hookAgents = []string{"claude", "codex"}

// stopEvent is what an agent tells its Stop hook, as JSON on standard input.
type stopEvent struct {
	Session string `json:"session_id"`
	Again   bool   `json:"stop_hook_active"` // the hook has sent the agent back before
}

// stopAnswer is what the hook prints. An empty one lets the agent stop.
type stopAnswer struct {
	Decision string `json:"decision,omitempty"` // "block" sends the agent back to work
	Reason   string `json:"reason,omitempty"`   // for the agent
	Message  string `json:"systemMessage,omitempty"`
}

// sentBack is what hone remembers of an agent's session.
type sentBack struct {
	Times    int    `json:"times"`
	Findings string `json:"findings"` // a digest
}

// stopHook runs the check when an agent wants to stop, and sends it back with the findings, at
// most so many times in a row, and never twice with the same ones. A check that cannot run
// lets it stop.
func (a *app) stopHook(ctx context.Context, f checkFlags) error {
	text, err := io.ReadAll(io.LimitReader(a.in, 1<<20))
	var event stopEvent
	if err == nil {
		err = json.Unmarshal(text, &event)
	}
	if err != nil || event.Session == "" {
		return failure.Usage("--hook reads what an agent tells its Stop hook, and standard input is something else", "hone init skill writes the settings of the hook")
	}
	answer, err := a.answerStop(ctx, f, event)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		answer = stopAnswer{Message: "hone: the check could not run, so nothing has judged the work: " + err.Error()}
		if f, ok := failure.Explain(err, ""); ok && f.Hint != "" {
			answer.Message += "; " + f.Hint
		}
	}
	if answer == (stopAnswer{}) {
		return nil
	}
	return json.NewEncoder(a.out).Encode(answer)
}

func (a *app) answerStop(ctx context.Context, f checkFlags, event stopEvent) (answer stopAnswer, err error) {
	cache, err := group.Cache("hook")
	if err != nil {
		return answer, err
	}
	root, err := loop.AbsDir(f.dir)
	if err != nil {
		return answer, err
	}
	file := filepath.Join(cache, workspace.Digest([]byte(root+"\x00"+event.Session))+".json")
	var was sentBack
	if text, err := os.ReadFile(file); err == nil && event.Again {
		_ = json.Unmarshal(text, &was) // what cannot be read counts as nothing
	}
	o, err := a.oneCheck(ctx, f)
	if err != nil {
		return answer, err
	}
	a.conceal(o.Guard)
	found, _, err := a.host().CheckOnce(ctx, o)
	if i := slices.IndexFunc(found, func(f check.Finding) bool { return f.Broken }); err == nil && i >= 0 {
		why, _, _ := strings.Cut(found[i].Text, "\n")
		err = errors.New(why)
	}
	switch {
	case err != nil:
		return answer, err
	case !check.Blocking(found):
		_ = os.Remove(file)
		return answer, nil
	}
	findings := strings.Join(loop.ForModel(check.BlockingOf(found)), "\n\n")
	now := sentBack{was.Times + 1, workspace.Digest([]byte(findings))}
	tally := check.Tally(check.BlockingOf(found))
	switch {
	case now.Times > f.hookTimes:
		return stopAnswer{Message: fmt.Sprintf("hone: the check still reports %s after the agent was sent back %d times", tally, was.Times)}, nil
	case now.Findings == was.Findings:
		return stopAnswer{Message: "hone: the check reports the same as before the agent was sent back: " + tally}, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return answer, err
	}
	state, err := json.Marshal(now)
	if err == nil {
		err = os.WriteFile(file, state, 0o600)
	}
	reason := fmt.Sprintf("The work is not done: the check `%s` fails. Make it pass without weakening it. It reports %s:\n\n%s", o.Command, tally, findings)
	return stopAnswer{Decision: "block", Reason: reason}, err
}
