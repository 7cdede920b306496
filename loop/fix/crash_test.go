package fix

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/tool"
)

// TestCrash kills a fix of two rounds at its steps, and resumes it.
func TestCrash(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Replies: []model.Reply{call("write", `{"path": "a", "content": "one\n"}`), say("I tried."),
			call("read", `{"path": "a"}`), call("write", `{"path": "a", "content": "two\n"}`), say("Fixed.")},
		Setup: func(t testing.TB, dir string) { put(t, dir, "zero\n") },
		Play:  play,
	}.Run(t)
}

// TestClean asks no model if the check passes.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "two\n")
	if end := play(t, dir, nil, journal.Observer{}); end.Kind != hone.KindDone || end.Rounds != 0 {
		t.Fatalf("%+v", end)
	}
}

func play(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
	return crashtest.RunProcess(t, dir, nil, o, func(r *hone.Run) hone.Round {
		r.Check, r.Human, r.Limits.Rounds, r.Trust.CheckFirst = saysTwo(dir), hone.Always{}, 3, hone.UnlessClean
		v := newInvocation()
		v.Settings = loop.Settings{Check: "say two", Task: "count"}
		return v.Round(hone.Role{Name: "fixer", Model: m, Called: "test/model", System: rules,
			MaxOutput: 4096, Tools: []tool.Tool{tool.Read(r.Tree, nil), tool.Write(r.Tree, nil, r.Apply)}}, nil)
	})
}

// saysTwo passes if the file says two.
func saysTwo(dir string) check.Func {
	return func(context.Context) ([]check.Finding, error) {
		b, err := os.ReadFile(filepath.Join(dir, "a"))
		if string(b) == "two\n" || err != nil {
			return nil, err
		}
		return []check.Finding{{Source: "check", File: "a", Text: "says " + string(b)}}, nil
	}
}

func call(name, args string) model.Reply {
	return model.Reply{Finish: model.Calls, Usage: &model.Usage{Input: 100, Output: 10}, Parts: []model.Part{{Call: &model.Call{ID: "c", Name: name, Args: args}}}}
}

func say(text string) model.Reply {
	return model.Reply{Finish: model.Stop, Usage: &model.Usage{Input: 100, Output: 10}, Parts: []model.Part{{Text: text}}}
}

func put(t testing.TB, dir, text string) {
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
