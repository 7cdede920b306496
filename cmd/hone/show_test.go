package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/crashtest"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/story"
	"hone/tool"
)

// scripted is a model that returns these replies in order.
type scripted []model.Reply

func (list scripted) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	return list[req.Seq], nil
}

// conversationRun returns a repository with a run of two rounds. Each is a
// conversation, the second with long arguments and a long result.
func conversationRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	call := func(text, name, args string) model.Reply {
		return model.Reply{Finish: model.Calls, Usage: &model.Usage{Input: 10, Output: 1},
			Parts: []model.Part{{Text: text}, {Call: &model.Call{ID: "1", Name: name, Args: args}}}}
	}
	answer := model.Reply{Finish: model.Stop, Parts: []model.Part{{Text: "an answer"}}, Usage: &model.Usage{Input: 20, Output: 2}}
	long := `{"path": "long.txt", "content": "` + strings.Repeat("c", 50_000) + `\u001b[2J"}`
	replies := scripted{call("words of round one\n", "read", `{"path": "one.txt"}`), answer,
		call("words of round two \x1b[2J\n", "read", long), call("", "nothing", "{}"), answer}
	for i := range replies[3:] { // what follows the long arguments has more tokens than a provider can deny
		replies[3+i].Usage = &model.Usage{Input: 1000, Output: 1}
	}
	read := tool.Tool{Spec: model.Spec{Name: "read", Description: "reads a file"}, ReadOnly: true, Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
		if strings.Contains(string(in.Args), "long.txt") {
			return tool.Result{Text: strings.Repeat("line of a long result\n", 1000) + "\x1b[2J the last line\n"}, nil
		}
		return tool.Result{Text: "the one line\n"}, nil
	}}
	crashtest.RunProcess(t, dir, nil, journal.Observer{}, func(r *hone.Run) hone.Round {
		r.Limits.Rounds = 2
		role := hone.Role{Name: "executor", Model: replies, Called: "test/model", System: "a system text", MaxOutput: 1000, Tools: []tool.Tool{read}}
		return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			_, err := r.Talk(ctx, role, []model.Message{{Role: model.User, Parts: []model.Part{{Text: "the task"}}}})
			return []check.Finding{{Source: "test", Text: "not yet"}}, err
		}
	})
	return dir
}

// TestShowConversation: each flag shows what its help says, and none shows a
// control character.
func TestShowConversation(t *testing.T) {
	dir := conversationRun(t)
	brief := []string{"  test  ✗ out of rounds, foreign  ", "s ago\n  no model\n✗ round 1 ", "  not yet ", "✗ round 2 ", "  ↻ nothing changed: not yet ", "\n  stopped: ", "  2k tokens · cost unknown · ", "  more: --round 2   --full   --html FILE\n"}
	for _, tt := range []struct {
		args       []string
		want, lack []string // want in this order; lack is not shown
	}{
		{nil, brief, []string{"words of", "round 1 of 2", "read one.txt", "the one line", "line of a long result", "the task", "\x1b"}},
		{[]string{"-v"}, []string{"round 1 of 2\n", "words of round one\n", "    read one.txt: ok, 13 bytes", "      | the one line\n", `words of round two \x1b[2J` + "\n", "    read long.txt: ok, 1001 lines", "      | line of a long result\n",
			"[993 more lines: hone show last --full -C ", "! nothing is refused: there is no tool"}, []string{"the last line", "the task", "\x1b"}},
		{[]string{"--round", "2"}, []string{"round 2 of 2\n", `words of round two \x1b[2J` + "\n", "      | line of a long result\n"}, []string{"round 1", "one.txt", "the last line", "\x1b"}},
		{[]string{"--full"}, []string{"---- system ----\na system text\n", "---- tool read ----\nreads a file\n", "---- user ----\nthe task\n", "---- reply ----\nwords of round one\n",
			"---- call of read ----\n{\"path\": \"one.txt\"}\n", "---- result ----\nthe one line\n", "---- the previous request, followed by: ----\n", "(the result of read, 13 bytes)", "---- reply ----\nan answer\n",
			strings.Repeat("c", 50_000) + `\u001b[2J`, strings.Repeat("line of a long result\n", 1000) + `\x1b[2J the last line`}, []string{"\x1b"}},
		{[]string{"--full", "-v"}, []string{"---- result ----\nthe one line\n"}, []string{"      | the one line"}},
	} {
		var out, errs bytes.Buffer
		a := &app{out: &out, err: &errs, env: func(string) string { return "" }}
		if status := a.run(t.Context(), append([]string{"show", "last", "-C", dir}, tt.args...)); status != 0 {
			t.Fatalf("show %v: exit %d, %s", tt.args, status, &errs)
		}
		rest := out.String()
		for _, want := range tt.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Fatalf("show %v: %.200q does not follow in\n%.5000s", tt.args, want, rest)
			}
			rest = after
		}
		for _, lack := range tt.lack {
			if strings.Contains(out.String(), lack) {
				t.Errorf("show %v: %q is shown", tt.args, lack)
			}
		}
	}
}

// TestShowCommitsAndServers: --diff prints how to show the diff of a commit, and
// a server belongs to the round in which it ran.
func TestShowCommitsAndServers(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	type made struct {
		Repo string `json:"repo"`
		ID   string `json:"id"`
		history.Report
	}
	crashtest.RunProcess(t, dir, nil, journal.Observer{}, func(r *hone.Run) hone.Round {
		r.Limits.Rounds = 2
		return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			_, err := hone.Step(ctx, r, "commit", nil, func(context.Context) (made, error) {
				return made{"src", "0123456789abcdef0123", history.Report{Said: "commit 0123456 in src: build"}}, nil
			})
			if err == nil && r.Round() == 2 {
				err = r.Served(history.Served{What: history.Reached, URL: "http://localhost:3000"})
			}
			return []check.Finding{{Source: "test", Text: "not yet"}}, err
		}
	})
	for _, tt := range []struct {
		args            []string
		commits, server int
	}{{nil, 0, 0}, {[]string{"-v"}, 2, 1}, {[]string{"--diff"}, 0, 0}, {[]string{"--round", "1"}, 1, 0}, {[]string{"--round", "2"}, 1, 1}} {
		var out, errs bytes.Buffer
		a := &app{out: &out, err: &errs, env: func(string) string { return "" }}
		if status := a.run(t.Context(), append([]string{"show", "last", "-C", dir}, tt.args...)); status != 0 {
			t.Fatalf("show %v: exit %d, %s", tt.args, status, &errs)
		}
		commits := strings.Count(out.String(), "  commit 0123456 in src: build\n")
		if server := strings.Count(out.String(), "the server was reached"); commits != tt.commits || server != tt.server {
			t.Errorf("show %v: %d commits to look at and %d servers, want %d and %d:\n%s", tt.args, commits, server, tt.commits, tt.server, &out)
		}
	}
}

// TestModelsOfARun: a phase has two models, which are listed separately if they
// differ.
func TestModelsOfARun(t *testing.T) {
	for settings, want := range map[string]string{
		`{"verifier_model": {"name": "b/2"}}`: "builder a/1 + verifier b/2",
		`{"verifier_model": {"name": "a/1"}}`: "a/1",
		`{"model": {"name": "a/1"}}`:          "a/1",
		`null`:                                "a/1",
	} {
		start := hone.Start{Loop: "phase", Model: "a/1", Settings: []byte(settings)}
		if got := strings.Join(kinds.ModelNames(kinds.Recorded(start), start), " + "); got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}

// TestOwnFilesOfALoop: every loop reports the files that it writes for the user.
func TestOwnFilesOfALoop(t *testing.T) {
	for loop, path := range map[string]string{"phase": "project_map.txt", "implement": "llm-user-output.txt", "task": "a.log"} {
		own := kinds.Own(hone.Start{Loop: loop, Dir: "/p", Settings: []byte(`{"log": "/p/a.log"}`)}, history.Read(nil))
		if !own(path) || own("main.go") {
			t.Errorf("%s: %s is not its own, or main.go is", loop, path)
		}
	}
	if kinds.Own(hone.Start{Loop: "reconcile"}, history.Read(nil)) != nil {
		t.Error("reconcile writes files for people")
	}
}

// TestOverviewFits: a run of any length fits the terminal: the rounds in the middle are
// left out. Nothing in its journal becomes a control character or a line.
func TestOverviewFits(t *testing.T) {
	t.Chdir(conversationRun(t))
	r, err := report.Open(".", "last")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		o := report.Of(r)
		r.Start.Loop, r.Start.Model, o.End.Kind = "l\x1b[2J\nforged", "m\x1b[2J\nforged", "k\x1b[2J\nforged"
		rounds := o.Rounds()
		for n := len(rounds) + 1; n <= 60; n++ {
			rounds = append(rounds, story.Round{Number: n, Outcome: story.Failed, Verdict: strings.Repeat("long verdict ", 20)})
		}
		lines := o.Lines(rounds, false, size[0], size[1])
		text := strings.Join(lines, "\n")
		got := 0
		for _, line := range lines {
			got += max(1, (render.Width(line)+size[0]-1)/size[0])
		}
		if got >= size[1] || got < size[1]-6 {
			t.Errorf("%v: %d rows", size, got)
		}
		if !strings.Contains(text, "round 1 ") || !strings.Contains(text, "round 60 ") || strings.Contains(text, "round 30 ") || !strings.Contains(text, " more rounds") {
			t.Errorf("%v: the first or the last round is not shown:\n%s", size, text)
		}
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\nforged") {
			t.Errorf("%v: control characters are shown:\n%q", size, text)
		}
	}
}

// TestWatchOnATerminal: finished rounds fold to a line, unless -v asks for every event.
func TestWatchOnATerminal(t *testing.T) {
	dir := conversationRun(t)
	for flag, want := range map[string]string{"--verbose=false": "✗ round 1 ", "-v": "round 1 of 2\n"} {
		var out, errs bytes.Buffer
		a := &app{out: &out, err: &errs, env: func(string) string { return "" }, outSize: func() (int, int) { return 100, 24 }}
		if status := a.run(t.Context(), []string{"watch", "-C", dir, flag}); status != 1 || errs.Len() > 0 {
			t.Fatalf("exit %d, %s", status, &errs)
		}
		if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, "✗ stopped: ") ||
			strings.Contains(got, "round 1 of 2") == (flag != "-v") || strings.Contains(got, "hash of the journal") == (flag != "-v") {
			t.Errorf("watch %s:\n%s", flag, got)
		}
	}
}
