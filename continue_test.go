package hone_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// continuing is a run whose rounds continue one session. The check wants the
// file a to be 3.
func continuing(dir string, m model.Model, role func(*hone.Role)) process {
	return process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		one := editor(m)
		one.Tools = []tool.Tool{tool.Read(r.Tree, nil), tool.Write(r.Tree, nil, r.Apply)}
		if role != nil {
			role(&one)
		}
		_, ok, err := r.Continue(ctx, one, fmt.Sprint("round ", r.Round()))
		if !ok && err == nil {
			_, err = r.Talk(ctx, one, user("begin"))
		}
		return nil, err
	}, set: func(r *hone.Run) {
		r.Limits.Rounds = 5
		r.Check = func(context.Context) ([]check.Finding, error) {
			if a := crashtest.ReadFile(dir, "a"); a != "3" {
				return []check.Finding{wrong("a is " + a)}, nil
			}
			return nil, nil
		}
	}}
}

// threeRounds reads a file once, and writes it in three rounds.
func threeRounds() []model.Reply {
	return []model.Reply{calls("read", `{"path": "a"}`), calls("write", `{"path": "a", "content": "1"}`), text("first"),
		calls("write", `{"path": "a", "content": "2"}`), text("second"),
		calls("write", `{"path": "a", "content": "3"}`), text("third")}
}

// A continued session has the messages of the session before, what it has read,
// and the text.
func TestContinue(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	m := &actor{replies: threeRounds()}
	p := continuing(dir, m, nil)
	end := p.end(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 3 || len(m.requests) != 7 {
		t.Fatalf("%+v after %d calls", end, len(m.requests))
	}
	last, before := plain(m.requests[5]).Messages, plain(m.requests[4]).Messages
	if diff := cmp.Diff(before[:len(before)-1], last[:len(before)-1]); diff != "" {
		t.Errorf("a continued session begins otherwise:\n%s", diff)
	}
	if got := last[len(last)-1]; got.Role != model.User || got.Parts[0].Text != "round 3" || last[len(last)-2].Parts[0].Text != "second" {
		t.Errorf("it continues with %+v", last[len(last)-2:])
	}
	p.replays(t, dir)
}

// A later round reads of a call's result what the model was sent then, with the note
// about files that were restored.
func TestContinuedOutputs(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0", "tests/x": "1"})
	m := &actor{replies: []model.Reply{calls("bash", "{}"), text("first"), calls("read", `{"path": "output:1"}`), text("second")}}
	spoil := doing("bash", func(context.Context, tool.Input) (tool.Result, error) {
		crashtest.WriteFile(dir, "tests/x", "2")
		return tool.Result{Text: "ran"}, nil
	})
	spoil.RunsCommands = true
	p := continuing(dir, m, func(r *hone.Role) { r.Tools = append(r.Tools, spoil) })
	set := p.set
	p.set = func(r *hone.Run) { set(r); protects(r); r.Limits.Rounds = 2 }
	wantEnd(t, p.end(t, dir), hone.KindRounds)
	const note = "[protected files that a command changed were restored: tests/x; change the code, not what checks it]"
	if then, later := m.results(1)[0], m.results(3)[0]; !strings.Contains(then, note) || !strings.Contains(later, note) {
		t.Errorf("the model was sent %q, and later read %q", then, later)
	}
	p.replays(t, dir)
}

// A session is not continued if it ended without an answer, or if it is too long
// for the context or the budget.
func TestNotContinued(t *testing.T) {
	for name, c := range map[string]struct {
		role   func(*hone.Role)
		tokens int64
		first  model.Reply
	}{
		"without an answer": {func(r *hone.Role) { r.Bounds.Turns = 1 }, 0, calls("read", `{"path": "a"}`)},
		"context":           {func(r *hone.Role) { r.Context, r.MaxOutput = 3000, 100 }, 0, text(strings.Repeat("long ", 1000))},
		"unknown context":   {nil, 0, text(strings.Repeat("long ", 60_000))},
		"budget":            {func(r *hone.Role) { r.MaxOutput = 100 }, 40_000, text(strings.Repeat("long ", 5000))},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "0"})
			m := &actor{replies: []model.Reply{c.first, text("done"), text("done")}}
			p := continuing(dir, m, c.role)
			set := p.set
			p.set = func(r *hone.Run) { set(r); r.Limits.Rounds, r.Limits.Tokens = 2, c.tokens }
			wantEnd(t, p.end(t, dir), hone.KindRounds)
			if got := m.requests[1].Messages; len(got) != 1 || got[0].Parts[0].Text != "begin" {
				t.Errorf("the second session begins with %+v", got[0])
			}
			p.replays(t, dir)
		})
	}
}

// A session is continued twice, wherever the process dies.
func TestCrashOfAContinuedSession(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Replies:         threeRounds(),
		Setup:           func(_ testing.TB, dir string) { crashtest.WriteFile(dir, "a", "0") },
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			p := continuing(dir, m, nil)
			p.observe = o
			return p.end(t, dir)
		},
	}.Run(t)
}
