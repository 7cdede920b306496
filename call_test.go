package hone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// doing is a tool of a name that does something.
func doing(name string, do func(context.Context, tool.Input) (tool.Result, error)) tool.Tool {
	return tool.Tool{Spec: model.Spec{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}, Run: do}
}

// looker is a read-only tool.
func looker(name string, do func(context.Context, tool.Input) (tool.Result, error)) tool.Tool {
	one := doing(name, do)
	one.ReadOnly = true
	return one
}

// pairs returns so many calls of one tool, each with its own arguments.
func pairs(name string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, name, fmt.Sprint(i))
	}
	return list
}

// patient returns a context that ends before the test would hang.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	t.Cleanup(cancel)
	return ctx
}

// Calls of read-only tools run at the same time. Results and records are in the
// order of the calls, whichever ends first.
func TestLooksRunBeside(t *testing.T) {
	dir := t.TempDir()
	ctx := patient(t)
	ready := make([]chan struct{}, 9)
	for i := range ready {
		ready[i] = make(chan struct{})
	}
	close(ready[8])
	look := looker("look", func(_ context.Context, in tool.Input) (tool.Result, error) {
		var i int
		must(0, json.Unmarshal(in.Args, &i))
		select {
		case <-ready[i+1]: // the last is ready first
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		close(ready[i])
		return tool.Result{Text: fmt.Sprint("saw ", i)}, nil
	})
	talk, m := converse(t, dir, handy(nil, look), calls(pairs("look", 8)...), text("so"))
	var want, recorded []string
	for i := range 8 {
		want = append(want, fmt.Sprint("saw ", i))
	}
	for i, e := range named(t, dir, "tool") {
		if at := i%8 + 1; e.Step.Call != at || (e.Phase == journal.Begin) != (i < 8) {
			t.Errorf("event %d: %s %s", i, e.Step, e.Phase)
		}
	}
	for _, r := range of[tool.Result](t, events(t, dir), "tool", journal.Record) {
		recorded = append(recorded, r.Text)
	}
	for what, got := range map[string][]string{"the model was sent": m.results(1), "on record are": recorded, "the loop was given": outputs(talk)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func outputs(talk hone.Conversation) []string {
	var list []string
	for _, c := range talk.Calls {
		list = append(list, c.Result.Text)
	}
	return list
}

// Eight calls run at the same time, and not more.
func TestAtMostEightBeside(t *testing.T) {
	ctx := patient(t)
	var now, most, begun atomic.Int64
	eight := make(chan struct{})
	look := looker("look", func(context.Context, tool.Input) (tool.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if begun.Add(1) == 8 {
			for range 100_000 {
				runtime.Gosched() // a ninth would come now
			}
			close(eight)
		}
		select {
		case <-eight:
		case <-ctx.Done():
		}
		return tool.Result{Text: "saw"}, ctx.Err()
	})
	role := handy(nil, look)
	role.Bounds.PerTurn = 30
	converse(t, t.TempDir(), role, calls(pairs("look", 30)...), text("so"))
	if most.Load() != 8 || begun.Load() != 30 {
		t.Errorf("%d calls were run, at most %d beside each other; want 30 and 8", begun.Load(), most.Load())
	}
}

// A call that changes something waits for those before it, and those after it
// wait for it.
func TestOnlyLooksRunBeside(t *testing.T) {
	var now, edits atomic.Int64
	look := looker("look", func(context.Context, tool.Input) (tool.Result, error) {
		now.Add(1)
		defer now.Add(-1)
		return tool.Result{Text: fmt.Sprint("after ", edits.Load())}, nil
	})
	alter := doing("alter", func(context.Context, tool.Input) (tool.Result, error) {
		if n := now.Load(); n != 0 {
			t.Errorf("%d calls look meanwhile", n)
		}
		return tool.Result{Text: fmt.Sprint("made ", edits.Add(1))}, nil
	})
	role := handy(nil, look, alter)
	role.Bounds.Calls = 7 // each counts once
	talk, _ := converse(t, t.TempDir(), role,
		calls("look", "1", "look", "2", "alter", "1", "nothing", "1", "look", "3", "look", "4", "alter", "2", "look", "5"), text("so"))
	want := []string{"after 0", "after 0", "made 1", `Error: there is no tool "nothing"; there are: look, alter`, "after 1", "after 1", "made 2", "after 2"}
	if diff := cmp.Diff(want, outputs(talk)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// An error of a tool stops the run, and nothing of the call is recorded. A
// resumed run does not repeat earlier calls.
func TestErrorOfATool(t *testing.T) {
	for _, group := range []struct {
		name  string
		looks bool
		ran   []int64 // how often each call was run in the end
	}{
		{"beside each other", true, []int64{1, 2, 2}},
		{"one after the other", false, []int64{1, 2, 1}},
	} {
		t.Run(group.name, func(t *testing.T) {
			dir := t.TempDir()
			ran := make([]atomic.Int64, 3)
			one := doing("do", func(_ context.Context, in tool.Input) (tool.Result, error) {
				var i int
				must(0, json.Unmarshal(in.Args, &i))
				if ran[i].Add(1) == 1 && i == 1 {
					return tool.Result{}, errors.New("the disk is gone")
				}
				return tool.Result{Text: "done"}, nil
			})
			one.ReadOnly = group.looks
			m := &actor{replies: []model.Reply{calls(pairs("do", 3)...), text("so")}}
			p := process{round: talks(handy(m, one), func(hone.Conversation) {})}
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindFailed)
			if !strings.Contains(end.Why, "the disk is gone") {
				t.Errorf("why: %s", end.Why)
			}
			if n := len(of[tool.Result](t, events(t, dir), "tool", journal.Record)); n != 1 {
				t.Errorf("%d results are on record, want the first", n)
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			for i, want := range group.ran {
				if got := ran[i].Load(); got != want {
					t.Errorf("call %d was run %d times, want %d", i, got, want)
				}
			}
			if len(m.requests) != 2 {
				t.Errorf("%d model calls, want 2", len(m.requests))
			}
		})
	}
}

// Each refused call is answered in its place and recorded, and the model
// continues.
func TestRefusals(t *testing.T) {
	evil := "rm -rf /\x00\x1b[2J\n../../" + strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name, tool, args string
		refused          string
		says             string
	}{
		{"an unknown tool", "shell", "{}", hone.RefusedName, `no tool "shell"; there are: look, often`},
		{"no name", "", "{}", hone.RefusedName, `no tool ""`},
		{"a name in other letters", "Look", "{}", "", "saw {}"},
		{"a name of another program", "view", "{}", hone.RefusedName, `no tool "view"; there are: look`},
		{"a hostile name", evil, "{}", hone.RefusedName, `no tool "rm -rf /\x00\x1b[2J\n../../x`},
		{"no arguments", "look", "", "", "saw {}"},
		{"no JSON", "look", `{"a":`, hone.RefusedJSON, `They were: {"a":`},
		{"more than JSON", "look", `{} {}`, hone.RefusedJSON, "after top-level value"},
		{"long and no JSON", "look", strings.Repeat("é", 1<<19), hone.RefusedJSON, "…"},
		{"JSON that fits no schema", "look", `[null]`, "", "saw [null]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			talk, m := converse(t, dir, handy(nil, echo(), often("often", 3)),
				calls("look", `{"before":1}`, tt.tool, tt.args, "look", `{"after":1}`), text("so"))
			got := m.results(1)
			if len(got) != 3 || got[0] != `saw {"before":1}` || got[2] != `saw {"after":1}` || !strings.Contains(got[1], tt.says) {
				t.Errorf("results: %.200q", got)
			}
			if c := talk.Calls[1]; c.Refused != tt.refused || c.Result.Failed != (tt.refused != "") || c.Args != tt.args && tt.args != "" {
				t.Errorf("refused %q, failed %v", c.Refused, c.Result.Failed)
			}
			for i, s := range got {
				if len(s) > 1000 {
					t.Errorf("result %d has %d bytes", i, len(s))
				}
			}
			begun := of[history.ToolCall](t, events(t, dir), "tool", journal.Begin)
			if len(begun) != 3 || begun[1].Refused != tt.refused || begun[0].Refused != "" || len(of[tool.Result](t, events(t, dir), "tool", journal.Record)) != 3 {
				t.Errorf("on record: %+v", begun)
			}
		})
	}
}

// often is a tool that allows a number of repeats.
func often(name string, repeats int) tool.Tool {
	one := echo()
	one.Name, one.MaxRepeats = name, repeats
	return one
}

// The same call is answered twice, or as often as its tool allows, until
// something has changed.
func TestRepeats(t *testing.T) {
	var dir string
	alter := doing("alter", func(_ context.Context, in tool.Input) (tool.Result, error) {
		return tool.Result{Text: "made", Failed: string(in.Args) == "false"}, nil
	})
	command := alter
	command.Name, command.RunsCommands = "bash", true
	changes := 0
	changing := doing("format", func(context.Context, tool.Input) (tool.Result, error) {
		changes++
		return tool.Result{Text: "made"}, os.WriteFile(filepath.Join(dir, "formatted"), []byte(strings.Repeat("x", changes)), 0o644)
	})
	changing.RunsCommands = true
	const same = "look"
	for _, tt := range []struct {
		name  string
		calls []string // in turns of their own
		want  string   // o: answered, x: refused
	}{
		{"twice", []string{same, "{}", same, "{}", same, "{}", same, "{}"}, "ooxx"},
		{"written otherwise", []string{same, `{"a":1,"b":2}`, same, `{ "b": 2, "a": 1 }`, same, `{"b":2,"a":1}`}, "oox"},
		{"large numbers", []string{same, `{"a":12345678901234567890}`, same, `{"a":12345678901234567891}`, same, `{"a":12345678901234567892}`}, "ooo"},
		{"other arguments", []string{same, "1", same, "2", same, "1", same, "2", same, "3"}, "ooooo"},
		{"other tools", []string{same, "1", "often", "1", same, "1", "often", "1", same, "1", "often", "1", "often", "1"}, "ooooxox"},
		{"after a change", []string{same, "1", same, "1", "alter", "true", same, "1", same, "1", same, "1"}, "oooo" + "ox"},
		{"after a change that failed", []string{same, "1", same, "1", "alter", "false", same, "1"}, "ooox"},
		{"after a command", []string{same, "1", same, "1", "bash", "true", same, "1"}, "ooox"},
		{"after a command that changed a file", []string{"bash", "1", "bash", "1", "format", "1", "bash", "1", "format", "1", "format", "1"}, "ooooox"},
		{"behind looks", []string{same, "1", "bash", "true", same, "2", "bash", "true", same, "3", "bash", "true"}, "ooooox"},
		{"the same change", []string{"alter", "true", "alter", "true", "alter", "true"}, "ooo"},
		{"the same command", []string{"bash", "true", "bash", "true", "bash", "true"}, "oox"},
	} {
		for _, turns := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, in turns: %v", tt.name, turns), func(t *testing.T) {
				replies := []model.Reply{calls(tt.calls...)}
				if turns {
					replies = nil
					for i := 0; i < len(tt.calls); i += 2 {
						replies = append(replies, calls(tt.calls[i], tt.calls[i+1]))
					}
				}
				dir = t.TempDir()
				talk, _ := converse(t, dir, handy(nil, echo(), often("often", 3), alter, command, changing), append(replies, text("so"))...)
				got := ""
				for _, c := range talk.Calls {
					got += map[string]string{"": "o", hone.RefusedRepeat: "x"}[c.Refused]
				}
				if got != tt.want {
					t.Errorf("answered and refused: %s, want %s", got, tt.want)
				}
			})
		}
	}
}

// Long arguments are stored as an object.
func TestLongArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: megabytes in one goroutine")
	}
	args := `"` + strings.Repeat("x", 1<<20) + `"`
	command := doing("bash", func(_ context.Context, in tool.Input) (tool.Result, error) {
		return tool.Result{Text: fmt.Sprint(len(in.Args))}, nil
	})
	command.RunsCommands = true
	for _, one := range []tool.Tool{echo(), doing("do", command.Run), command} {
		one.Run = command.Run
		dir := t.TempDir()
		_, m := converse(t, dir, handy(nil, one), calls(one.Name, args, one.Name, "1", one.Name, args), text("so"))
		if want := fmt.Sprint(len(args)); m.results(1)[0] != want || m.results(1)[2] != want {
			t.Errorf("%s: results %v", one.Name, m.results(1))
		}
		begun := of[history.ToolCall](t, events(t, dir), "tool", journal.Begin)
		if begun[0].Args != "" || string(object(t, dir, begun[0].Object)) != args || begun[1].Args != "1" || begun[1].Object != "" {
			t.Errorf("%s: on record are arguments of %d bytes and object %s", one.Name, len(begun[0].Args), begun[0].Object)
		}
	}
}

// The middle of a long output is omitted, and the model can read all of it.
func TestOutputs(t *testing.T) {
	long := "first line\n" + strings.Repeat("0123456789 é\n", 80_000) + "last line\n"
	dense := strings.Repeat("é", 1<<19)
	bad := "a\xff\xfeb\x00c\x1b[2J\u2028"
	const repaired = "a\ufffd\ufffdb\x00c\x1b[2J\u2028"
	made := []string{long, dense, bad, "", strings.Repeat("x", 16<<10)}
	var again []string
	say := looker("say", func(_ context.Context, in tool.Input) (tool.Result, error) {
		var i int
		must(0, json.Unmarshal(in.Args, &i))
		return tool.Result{Text: made[i]}, nil
	})
	whole := doing("whole", func(_ context.Context, in tool.Input) (tool.Result, error) {
		for i := range 7 {
			s, ok := in.Output(i)
			again = append(again, fmt.Sprintf("%v %s", ok, workspace.Digest([]byte(s))[:8]))
		}
		return tool.Result{Text: "fine"}, nil
	})
	small := say
	small.Name, small.MaxText = "small", 100
	talk, m := converse(t, t.TempDir(), handy(nil, say, whole, small), calls(pairs("say", 5)...), calls("whole", "{}", "small", "0"), text("so"))
	got := m.results(1)
	if s := got[0]; len(s) > 17<<10 || len(s) < 15<<10 || !strings.HasPrefix(s, "first line\n0123456789 é\n") || !strings.HasSuffix(s, "9 é\nlast line\n") || !strings.Contains(s, `"output:1"`) {
		t.Errorf("a long output as it is sent has %d bytes: %.100q … %.100q", len(s), s, s[len(s)-100:])
	}
	if s := got[1]; len(s) > 17<<10 || strings.Contains(s, "\ufffd") || !strings.Contains(s, `"output:2"`) {
		t.Errorf("a long line as it is sent has %d bytes", len(s))
	}
	if got[2] != repaired || got[3] != "" || got[4] != made[4] {
		t.Errorf("short outputs as they are sent: %q, %q, %d bytes", got[2], got[3], len(got[4]))
	}
	if s := m.results(2)[1]; len(s) > 300 || !strings.Contains(s, `"output:7"`) {
		t.Errorf("a small tool's output as it is sent: %q", s)
	}
	want := []string{"false e3b0c442"}
	for _, s := range []string{long, dense, repaired, "", made[4]} {
		want = append(want, "true "+workspace.Digest([]byte(s))[:8])
	}
	if diff := cmp.Diff(append(want, "false e3b0c442"), again); diff != "" {
		t.Errorf("whole outputs, from number 0 on (-want +got):\n%s", diff)
	}
	if talk.Calls[0].Result.Text != long {
		t.Error("the loop was not given the whole output")
	}
}

// A tool learns which contents of a file the session was shown last. Another
// session learns nothing of that.
func TestSeen(t *testing.T) {
	var got []string
	ask := func(_ context.Context, in tool.Input) (tool.Result, error) {
		digest, ok := in.Seen("a")
		_, other := in.Seen("b")
		got = append(got, fmt.Sprintf("%s %v %v", digest, ok, other))
		return tool.Result{Text: "fine", Shown: map[string]string{"a": string(in.Args)}}, nil
	}
	m := &actor{replies: []model.Reply{calls("do", "1", "do", "2"), calls("do", "3"), text("so"), calls("do", "4"), text("so")}}
	wantEnd(t, process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for range 2 {
			if _, err := r.Talk(ctx, handy(m, doing("do", ask)), user("do it")); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}.end(t, t.TempDir()), hone.KindDone)
	if diff := cmp.Diff([]string{" false false", "1 true false", "2 true false", " false false"}, got); diff != "" {
		t.Errorf("what calls were told (-want +got):\n%s", diff)
	}
}

// A canceled call is interrupted, and resumed as its kind of tool allows.
func TestCancelledCall(t *testing.T) {
	for _, tt := range []struct {
		name string
		flag func(*tool.Tool)
		ran  int64
	}{
		{"looks", func(one *tool.Tool) { one.ReadOnly = true }, 4},
		{"changes", func(*tool.Tool) {}, 3},
		{"commands", func(one *tool.Tool) { one.RunsCommands = true }, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ran atomic.Int64
			one := doing("do", func(ctx context.Context, in tool.Input) (tool.Result, error) {
				if ran.Add(1); string(in.Args) == "0" {
					cancel()
				}
				return tool.Result{Text: "done"}, ctx.Err()
			})
			tt.flag(&one)
			m := &actor{replies: []model.Reply{calls("do", "1", "do", "0"), text("so")}}
			if one.ReadOnly { // both are under way when the first one cancels
				m.replies[0] = calls("do", "0", "do", "0")
			}
			p := process{ctx: ctx, round: talks(handy(m, one), func(hone.Conversation) {})}
			wantEnd(t, p.end(t, dir), hone.KindInterrupted)
			p.ctx = nil
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if ran.Load() != tt.ran || len(m.requests) != 2 {
				t.Errorf("run %d times in %d model calls, want %d in 2", ran.Load(), len(m.requests), tt.ran)
			}
			if cut := strings.Contains(m.results(1)[1], "interrupted"); cut != one.RunsCommands {
				t.Errorf("the model was told %q", m.results(1))
			}
		})
	}
}

// After the context is canceled the result of a call is kept, and the calls
// after it do not start.
func TestNothingBeginsOnceCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	did := 0
	last := doing("do", func(context.Context, tool.Input) (tool.Result, error) {
		did++
		cancel()
		return tool.Result{Text: "done"}, nil
	})
	m := &actor{replies: []model.Reply{calls("do", "{}", "look", "1", "look", "2"), text("so")}}
	p := process{ctx: ctx, round: talks(handy(m, last, echo()), func(hone.Conversation) {})}
	wantEnd(t, p.end(t, dir), hone.KindInterrupted)
	if n := len(named(t, dir, "tool")); n != 2 {
		t.Errorf("%d events of calls, want the two of the first", n)
	}
	p.ctx = nil
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if did != 1 || len(m.results(1)) != 3 {
		t.Errorf("the first call was run %d times, and the model was told %v", did, m.results(1))
	}
}

// A key in a tool's output or a model's reply is not stored, not sent, and not
// given to a tool (ruling G6).
func TestKeysOfTools(t *testing.T) {
	const key = "sk-0123456789abcdef"
	dir := t.TempDir()
	leak := func(_ context.Context, in tool.Input) (tool.Result, error) {
		if strings.Contains(string(in.Args), key) {
			t.Errorf("a tool was given the key: %.100s", in.Args)
		}
		pad := strings.Repeat("x", 16<<10*2/3-8) // a cut goes through it
		return tool.Result{Text: pad + key + strings.Repeat("y", 16<<10)}, nil
	}
	command := doing("bash", leak)
	command.RunsCommands = true
	m := &actor{replies: []model.Reply{
		calls("look", `"`+key+`"`, "look", `"1"`, "bash", `"`+key+strings.Repeat("z", 20<<10)+`"`, key, "{}", "look", "no "+key),
		text("so " + key),
		text("and"),
	}}
	role := handy(m, looker("look", leak), command)
	role.System, role.Tools[0].Description = "system "+key, "says "+key
	role.Answered = func(s string) string { return map[bool]string{true: "not " + key}[strings.HasPrefix(s, "so")] }
	var talk hone.Conversation
	wantEnd(t, process{
		round: func(ctx context.Context, r *hone.Run, _ []check.Finding) (_ []check.Finding, err error) {
			talk, err = r.Talk(ctx, role, user("the key is "+key))
			return nil, err
		},
		set: func(r *hone.Run) { r.Redact = func(s string) string { return strings.ReplaceAll(s, key, "[key]") } },
	}.end(t, dir), hone.KindDone)
	if s := encoded(m.requests); strings.Contains(s, key[:8]) || !strings.Contains(s, "[ke") {
		t.Error("the model was sent the key, or nothing of it")
	}
	if s := encoded(talk); strings.Contains(s, key) || len(talk.Calls) != 5 {
		t.Error("the loop was given the key")
	}
	must(0, filepath.WalkDir(filepath.Join(dir, journal.HomeName), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(string(must(os.ReadFile(path))), key) {
			t.Errorf("%s holds the key", path)
		}
		return err
	}))
	holdRequests(t, dir)
}
