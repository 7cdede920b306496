package hone_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// agent is a role whose sessions answer holds.
func agent(answer func(context.Context, model.Request) (model.Reply, error)) hone.Role {
	return hone.Role{Name: "builder", Called: "command/worker", Agent: true, System: "rules", Model: modelFunc(answer)}
}

// modelFunc is a model that is a function.
type modelFunc func(context.Context, model.Request) (model.Reply, error)

func (f modelFunc) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	return f(ctx, req)
}

// delegating is a round with one session of an agent.
func delegating(role *hone.Role, got *hone.Conversation) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		talk, err := r.Delegate(ctx, *role, user("do it"))
		*got = talk
		return nil, err
	}
}

// An interrupted session starts anew, and the agent is told which files the
// first one changed.
func TestAgentAfterACrash(t *testing.T) {
	for _, when := range []string{"before the record", "after the record", "in a folder"} {
		t.Run(when, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"old": "1", "kept": "1"})
			var sent []model.Request
			role := agent(func(_ context.Context, req model.Request) (model.Reply, error) {
				sent = append(sent, req)
				crashtest.WriteFile(dir, "old", "2")
				crashtest.WriteFile(dir, "in/new", "2")
				return model.Reply{Finish: model.Stop, Parts: []model.Part{{Text: "worked"}}}, nil
			})
			want := "in/new, old."
			if when == "in a folder" {
				role.Dir, want = "in", ": new."
			}
			var talk hone.Conversation
			p := process{round: delegating(&role, &talk)}
			edge, sessions := "before", 2
			if when == "after the record" {
				edge, sessions = "after", 1
			}
			if !p.killedAt(t, dir, on(edge, "reply", journal.Record)) {
				t.Fatal("the run was not killed")
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if len(sent) != sessions || talk.Reply.Text() != "worked" || talk.Ended != hone.EndedAnswer {
				t.Fatalf("%d sessions, want %d; the last ended %q with %q", len(sent), sessions, talk.Ended, talk.Reply.Text())
			}
			if sessions == 1 {
				return
			}
			parts := sent[1].Messages[0].Parts
			if told := parts[0].Text; !strings.Contains(told, "interrupted") || !strings.Contains(told, want) || strings.Contains(told, "kept") {
				t.Errorf("the second session was told %q", told)
			}
			if last := parts[len(parts)-1].Text; last != "do it" {
				t.Errorf("the instruction of the second session is %q", last)
			}
			for _, e := range events(t, dir) {
				if e.Type == "outside" {
					t.Errorf("what the agent changed is taken for somebody else's: %s", e.Line())
				}
			}
		})
	}
}

// If an agent fails the run stops, and a resumed run starts a new session.
func TestAgentsFailureIsNotRemembered(t *testing.T) {
	dir := crashtest.Workspace(t, nil)
	broken := true
	role := agent(func(context.Context, model.Request) (model.Reply, error) {
		if broken {
			return model.Reply{}, &model.Error{Kind: model.Failed, Message: "it ended with exit status 41", Usage: &model.Usage{Input: 7}}
		}
		return model.Reply{Finish: model.Stop, Parts: []model.Part{{Text: "worked"}}}, nil
	})
	var talk hone.Conversation
	p := process{round: delegating(&role, &talk)}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindFailed)
	if end.Why != "command/worker: it ended with exit status 41" || end.Tokens != 7 {
		t.Errorf("the end says %q, %d tokens", end.Why, end.Tokens)
	}
	broken = false
	wantEnd(t, p.end(t, dir), hone.KindDone)
}

// A session whose agent reports no usage, or an impossible one, is not free. Its
// request counts, and the end reports that no provider confirmed it.
func TestSessionOfUnknownUsage(t *testing.T) {
	answered := model.Reply{Finish: model.Stop, Parts: []model.Part{{Text: "worked"}}}
	for name, test := range map[string]struct {
		usage   *model.Usage
		unknown bool
	}{
		"none":       {nil, true},
		"impossible": {&model.Usage{Input: -1}, true},
		"reported":   {&model.Usage{Input: 5000, Output: 10}, false},
	} {
		t.Run(name, func(t *testing.T) {
			role := agent(func(context.Context, model.Request) (model.Reply, error) {
				reply := answered
				reply.Usage = test.usage
				return reply, nil
			})
			role.Price = &hone.Price{Input: 1, Output: 1}
			var talk hone.Conversation
			p := process{round: delegating(&role, &talk)}
			end := p.end(t, crashtest.Workspace(t, nil))
			wantEnd(t, end, hone.KindDone)
			if test.unknown != (end.Assumed == end.Tokens) || end.Tokens < 1000 || end.Cost == nil || *end.Cost <= 0 {
				t.Errorf("%d tokens, %d of them not confirmed, cost %v", end.Tokens, end.Assumed, end.Cost)
			}
		})
	}
}

// Concurrent calls of an agent are reserved within the budget, and counted
// once.
func TestForwardedCallsAreOnTheLedger(t *testing.T) {
	dir := crashtest.Workspace(t, nil)
	var refused int
	role := agent(nil)
	round := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		role.Model = modelFunc(func(context.Context, model.Request) (model.Reply, error) {
			var all sync.WaitGroup
			var mu sync.Mutex
			for range 20 {
				all.Go(func() {
					_, settle, err := r.Account().Reserve("builder", hone.Candidate{Called: "gemini/x", MaxOutput: 1000}, 100)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused++
						return
					}
					must(0, settle(&model.Usage{Input: 90, Output: 910}, nil))
				})
			}
			all.Wait()
			return model.Reply{Finish: model.Stop, Usage: &model.Usage{Input: 5000}, Parts: []model.Part{{Text: "worked"}}}, nil
		})
		_, err := r.Delegate(ctx, role, user("do it"))
		return nil, err
	}
	p := process{round: round, set: func(r *hone.Run) { r.Limits.Tokens = 10_000 }}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if end.Tokens > 10_000 || end.Tokens%1000 != 0 || end.Tokens == 0 || end.Tokens/1000+int64(refused) != 20 {
		t.Errorf("%d tokens are charged, and %d of 20 calls were refused", end.Tokens, refused)
	}
}

// A loop that verifies its work itself ends as verified, even if an edit was
// declined.
func TestPassed(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "zero"})
	round := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("asked", "one")}}, nil)
		return nil, err
	}
	p := process{round: round, set: func(r *hone.Run) {
		r.Rules.Approve = []string{"asked"}
		r.Human = hone.Never{}
		r.Trust.Passed = "phase 2 passed"
	}}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if end.Why != "phase 2 passed" {
		t.Errorf("the end says %q", end.Why)
	}
}
