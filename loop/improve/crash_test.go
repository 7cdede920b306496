package improve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/config"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/tool"
)

// TestCrash kills an improvement at its steps, and resumes it: a gain, a loss in two files of which
// git ignores none, a change that the check refuses, a round without a change, and a gain.
func TestCrash(t *testing.T) {
	scene().Run(t)
}

// TestEnds: the best stays, in each round what it left can be restored, and a replay repeats it.
func TestEnds(t *testing.T) {
	s := scene()
	dir := t.TempDir()
	s.Setup(t, dir)
	m := &replies{all: s.Replies}
	end := s.Play(t, dir, m, journal.Observer{})
	if end.Kind != hone.KindRounds || end.Rounds != 5 {
		t.Errorf("%s after %d rounds: %s", end.Kind, end.Rounds, end.Why)
	}
	if got := crashtest.ReadFile(dir, "a"); got != "11" {
		t.Errorf("the best is not there, but %q", got)
	}
	for round, want := range map[int]string{4: "111", 1: "111", 0: "1111"} {
		if _, _, err := crashtest.Undo(dir, round, false); err != nil {
			t.Fatal(err)
		}
		if got := crashtest.ReadFile(dir, "a"); got != want {
			t.Errorf("after round %d: %q", round, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
		t.Error("a file that was taken back is there")
	}
}

// replies is a model that sends them in turn.
type replies struct{ all []model.Reply }

func (r *replies) Generate(context.Context, model.Request) (model.Reply, error) {
	if len(r.all) == 0 {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: "there are no more replies"}
	}
	next := r.all[0]
	r.all = r.all[1:]
	return next, nil
}

func scene() crashtest.Scene {
	return crashtest.Scene{
		CompareRequests: true,
		Replies: []model.Reply{call("read", `{"path": "a"}`), call("write", `{"path": "a", "content": "111"}`), say("Three are enough."),
			call("read", `{"path": "a"}`), call("write", `{"path": "a", "content": "11111"}`), call("write", `{"path": "b", "content": "x"}`), say("More."),
			call("read", `{"path": "a"}`), call("write", `{"path": "a", "content": "2"}`), say("Another digit."),
			say("Nothing is left."),
			call("read", `{"path": "a"}`), call("write", `{"path": "a", "content": "11"}`), say("Two are enough.")},
		Setup: func(t testing.TB, dir string) { crashtest.WriteFile(dir, "a", "1111") },
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			end := crashtest.RunProcess(t, dir, nil, o, func(r *hone.Run) hone.Round {
				target := 1.0
				r.Check, r.Human, r.Limits.Rounds, r.Trust.CheckFirst = onlyOnes(dir), hone.Always{}, 5, hone.Informed
				r.Metric = &hone.Metric{Target: &target, First: first, Compare: compare}
				v := newInvocation()
				v.Settings = loop.Settings{Values: config.Values{}}
				config.Lower.Set(v.Values, "size")
				config.Metric.Set(v.Values, "wc -c a")
				config.MinGain.Set(v.Values, "1%")
				return v.Round(hone.Role{Name: "improver", Model: m, Called: "test/model", System: rules,
					MaxOutput: 4096, Tools: []tool.Tool{tool.Read(r.Tree, nil), tool.Write(r.Tree, nil, r.Apply)}}, nil)
			})
			if end.Kind != hone.KindRounds {
				t.Errorf("%s: %s", end.Kind, end.Why)
			}
			return end
		},
	}
}

// onlyOnes passes if the file has no other digit.
func onlyOnes(dir string) check.Func {
	return func(context.Context) ([]check.Finding, error) {
		for _, c := range crashtest.ReadFile(dir, "a") {
			if c != '1' {
				return []check.Finding{{Source: "check", File: "a", Text: fmt.Sprintf("has %c", c)}}, nil
			}
		}
		return nil, nil
	}
}

func size(ctx context.Context, c hone.Copies, best bool) (float64, error) {
	dir, err := c(ctx, best)
	if err != nil {
		return 0, err
	}
	return float64(len(crashtest.ReadFile(dir, "a"))), nil
}

func first(ctx context.Context, c hone.Copies) (history.Score, error) {
	x, err := size(ctx, c, false)
	return history.Score{Name: "size", Lower: true, First: x, Best: x, New: []float64{x}}, err
}

func compare(ctx context.Context, best history.Score, c hone.Copies) (history.Score, error) {
	s := best.Next()
	old, err := size(ctx, c, true)
	if err != nil {
		return s, err
	}
	x, err := size(ctx, c, false)
	if err != nil {
		return s, err
	}
	s.Old, s.New, s.Value = []float64{old}, []float64{x}, &x
	if s.Old[0] != best.Best {
		return s, fmt.Errorf("the best so far is %v, not %v", s.Old[0], best.Best)
	}
	if s.Kept = x < s.Old[0]; s.Kept {
		s.Best = x
	} else {
		s.Why = "no gain"
	}
	return s, nil
}

func call(name, args string) model.Reply {
	return model.Reply{Finish: model.Calls, Usage: &model.Usage{Input: 100, Output: 10}, Parts: []model.Part{{Call: &model.Call{ID: "c", Name: name, Args: args}}}}
}

func say(text string) model.Reply {
	return model.Reply{Finish: model.Stop, Usage: &model.Usage{Input: 100, Output: 10}, Parts: []model.Part{{Text: text}}}
}
