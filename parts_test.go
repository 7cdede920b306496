package hone_test

import (
	"context"
	"slices"
	"testing"

	"hone"
	"hone/check"
	"hone/check/judge"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// A round that is decided again takes back, asks and records anew: here the check itself
// writes a file that judges, each time.
func TestDecidedAgain(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a_test.sh": "strong", "b_test.sh": "strong"})
	passes := func(dir string) []check.Finding {
		for _, name := range []string{"a_test.sh", "b_test.sh"} {
			if crashtest.ReadFile(dir, name) != "weak" {
				return []check.Finding{wrong(name + " fails")}
			}
		}
		return nil
	}
	p := process{round: applies([]workspace.Edit{edit("a_test.sh", "weak")}), set: func(r *hone.Run) {
		r.Limits.Rounds = 1
		r.Trust.Judges = judge.Of("sh a_test.sh")
		r.Trust.Copied = func(_ context.Context, copied string) ([]check.Finding, error) { return passes(copied), nil }
		r.Check = func(context.Context) ([]check.Finding, error) {
			crashtest.WriteFile(dir, "b_test.sh", "weak")
			return passes(dir), nil
		}
	}}
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	set, user := p.set, &person{answer: func(q hone.Question) (hone.Answer, error) {
		return hone.Answer{Approved: q.Path == "a_test.sh", By: "user"}, nil
	}}
	p.set = func(r *hone.Run) { set(r); r.Human = user }
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	if a, b := crashtest.ReadFile(dir, "a_test.sh"), crashtest.ReadFile(dir, "b_test.sh"); a != "weak" || b != "strong" {
		t.Errorf("the tests hold %q and %q", a, b)
	}
	p.replays(t, dir)
}

// A tree that is restored in the middle of a round takes the round's changes with it: the round
// begins again, and its model is told.
func TestRoundBeginsAgainAfterItsTreeWasRestored(t *testing.T) {
	stop := func(t testing.TB, p process, dir string) { // by the budget, which restores the best tree
		set := p.set
		p.set = func(r *hone.Run) { set(r); r.Trust.KeepBest, r.Limits.Tokens = true, 1 }
		wantEnd(t, p.end(t, dir), hone.KindBudget)
	}
	for name, restore := range map[string]func(t testing.TB, p process, dir string){
		"the best tree": stop,
		"undo": func(t testing.TB, p process, dir string) {
			set := p.set
			p.set = func(r *hone.Run) { set(r); r.Limits.Tokens = 1 }
			wantEnd(t, p.end(t, dir), hone.KindBudget)
			if _, _, err := undo(t, dir, 1, false); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "0", "b": ""})
			found := map[string][]check.Finding{"1": {wrong("x")}, "2": {wrong("x"), wrong("y")}, "1more": {wrong("z")}}
			var told [][]check.Finding
			p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				if r.Round() == 3 {
					told = append(told, prior)
				}
				if _, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", string(rune('0'+r.Round())))}}, nil); err != nil || r.Round() < 3 {
					return nil, err
				}
				if _, err := r.Ask(ctx, editor(&actor{replies: []model.Reply{text("more")}}), user("what now")); err != nil {
					return nil, err
				}
				_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("b", "more")}}, nil)
				return nil, err
			}, set: func(r *hone.Run) {
				r.Check = func(context.Context) ([]check.Finding, error) {
					return found[crashtest.ReadFile(dir, "a")+crashtest.ReadFile(dir, "b")], nil
				}
			}}
			restore(t, p, dir)
			if got := crashtest.ReadFile(dir, "a"); got != "1" {
				t.Fatalf("the tree that was restored has %q", got)
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if got := crashtest.ReadFile(dir, "a") + crashtest.ReadFile(dir, "b"); got != "3more" {
				t.Errorf("the run left %q", got)
			}
			if len(told) != 2 || !slices.ContainsFunc(told[1], func(f check.Finding) bool { return f.Source == "undo" }) || slices.ContainsFunc(told[1], func(f check.Finding) bool { return f.Text == "y" }) {
				t.Errorf("the third round was told %+v", told)
			}
			p.replays(t, dir)
		})
	}
}

// What a round was told does not change with an answer that is given after it began.
func TestLateAnswerToAnOpenRound(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
	var told [][]check.Finding
	p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if r.Round() == 3 {
			told = append(told, prior)
		}
		_, err := hone.Step(ctx, r, "look", prior, func(context.Context) (int, error) { return 0, nil })
		if err == nil && r.Round() == 2 {
			_, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("asked", "new")}}, nil)
		}
		return []check.Finding{wrong("x")}, err
	}, set: approve(nil, "asked")}
	if !p.killedAt(t, dir, func(when string, _ journal.Type, phase journal.Phase) bool {
		return when == "after" && phase == journal.Record && len(told) == 1
	}) {
		t.Fatal("the run was not killed")
	}
	p.set = approve(hone.Never{}, "asked")
	p.end(t, dir)
	if len(told) != 2 || len(told[0]) != len(told[1]) {
		t.Errorf("the third round was told %+v", told)
	}
	p.replays(t, dir)
}

// What the model was told of a command is told again in the same words, also with other limits.
func TestResumeWithAnotherLimitOfLines(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	many := tool.Tool{Spec: model.Spec{Name: "bash"}, RunsCommands: true, Run: func(context.Context, tool.Input) (tool.Result, error) {
		crashtest.WriteFile(dir, "a", "1\n2\n3\n4\n5\n")
		return tool.Result{Text: "done"}, nil
	}}
	role := handy(&actor{replies: []model.Reply{calls("bash", "{}"), text("finished")}}, many)
	p := process{round: talks(role, func(hone.Conversation) {}), set: func(r *hone.Run) { r.Limits.Lines = 3 }}
	if !p.killedAt(t, dir, func(when string, typ journal.Type, _ journal.Phase) bool {
		return when == "after" && typ == history.TypeReply && len(role.Model.(*actor).requests) == 2
	}) {
		t.Fatal("the run was not killed")
	}
	p.set = func(r *hone.Run) { r.Limits.Lines = 100 }
	wantEnd(t, p.end(t, dir), hone.KindDone)
	p.replays(t, dir)
}

// A file of the user's tools that a command makes, and that git ignores, is removed also if the
// process is killed while the command runs (ruling G26).
func TestIgnoredToolFileOfAKilledCommand(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{".envrc": "mine", "a": "seen"})
	ignores := func(context.Context, string) (workspace.Listing, error) {
		return workspace.Listing{Paths: []string{"a"}}, nil
	}
	p := process{list: ignores, round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		role := agent(func(context.Context, model.Request) (model.Reply, error) {
			crashtest.WriteFile(dir, ".mcp.json", "planted")
			return text("done"), nil
		})
		_, err := r.Delegate(ctx, role, user("do it"))
		return nil, err
	}, set: func(r *hone.Run) { r.Trust.Tools = true }}
	if !p.killedAt(t, dir, on("before", history.TypeReply, journal.Record)) {
		t.Fatal("the run was not killed")
	}
	if got := crashtest.ReadFile(dir, ".mcp.json"); got != "planted" {
		t.Fatalf("the command left %q", got)
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if planted, mine := crashtest.ReadFile(dir, ".mcp.json"), crashtest.ReadFile(dir, ".envrc"); planted != "no file" || mine != "mine" {
		t.Errorf("the run left .mcp.json %q, .envrc %q", planted, mine)
	}
}
