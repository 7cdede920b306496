package hone_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// A call of a read-only tool is repeated; a command is not.
func TestCallsAfterACrash(t *testing.T) {
	for _, tt := range []struct {
		name   string
		flag   func(*tool.Tool)
		before string // what the model is told
		ran    int
	}{
		{"a look", func(one *tool.Tool) { one.ReadOnly = true }, "ran", 2},
		{"a change", func(*tool.Tool) {}, "ran", 2},
		{"a command", func(one *tool.Tool) { one.RunsCommands = true }, "interrupted", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"old": "1", "kept": "1"})
			ran := 0
			one := doing("do", func(context.Context, tool.Input) (tool.Result, error) {
				ran++
				crashtest.WriteFile(dir, "sub/new", "2")
				crashtest.WriteFile(dir, "old", "2")
				return tool.Result{Text: "ran"}, nil
			})
			tt.flag(&one)
			m := &actor{replies: []model.Reply{calls("do", "{}"), text("so")}}
			var talk hone.Conversation
			p := process{round: talks(handy(m, one), func(got hone.Conversation) { talk = got })}
			if !p.killedAt(t, dir, on("before", "tool", journal.Record)) {
				t.Fatal("the run was not killed")
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if ran != tt.ran || len(m.requests) != 2 || len(talk.Calls) != 1 {
				t.Errorf("run %d times in %d model calls, want %d in 2", ran, len(m.requests), tt.ran)
			}
			got := m.results(1)[0]
			cut := strings.Contains(got, "old, sub/new.") && !strings.Contains(got, "kept")
			if !strings.Contains(got, tt.before) || cut != (tt.ran == 1) || talk.Calls[0].Result.Failed != (tt.ran == 1) {
				t.Errorf("the model was told %q", got)
			}
			if o := of[history.Outside](t, events(t, dir), "outside", ""); (len(o) == 0) != (tt.ran == 1) {
				t.Errorf("told as changed by others: %v", o)
			}
		})
	}
}

// workshop returns tools of every kind over a run. They are as careful as the
// real ones, and each command adds a line to a file outside the workspace.
func workshop(dir string, r *hone.Run) []tool.Tool {
	commands := doing("bash", func(_ context.Context, in tool.Input) (tool.Result, error) {
		f := must(os.OpenFile(dir+".ran", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
		defer f.Close()
		must(fmt.Fprintf(f, "%s\n", in.Args))
		crashtest.WriteFile(dir, "made", string(in.Args))
		return tool.Result{Text: "ran"}, nil
	})
	commands.RunsCommands = true
	return []tool.Tool{
		looker("read", func(_ context.Context, in tool.Input) (tool.Result, error) {
			var path string
			must(0, json.Unmarshal(in.Args, &path))
			b, image, err := r.Tree.Read(path)
			if err != nil {
				return tool.Failure("there is no such file"), nil
			}
			return tool.Result{Text: string(b), Shown: map[string]string{path: image.Digest}}, nil
		}),
		doing("write", func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var files map[string]string
			must(0, json.Unmarshal(in.Args, &files))
			var ch workspace.Change
			for path, content := range files {
				ch.Edits = append(ch.Edits, edit(path, content))
			}
			slices.SortFunc(ch.Edits, func(a, b workspace.Edit) int { return strings.Compare(a.Path, b.Path) })
			vs, err := r.Apply(ctx, ch, in.Seen)
			said := tool.Result{Shown: map[string]string{}}
			for _, v := range vs {
				said.Text += fmt.Sprintf("%s: %s %s\n", v.Path, v.Ruling, v.Reason)
				said.Failed = said.Failed || v.Ruling != workspace.Allow
				said.Shown[v.Path] = v.After.Digest
			}
			return said, err
		}),
		doing("append", func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var line string
			must(0, json.Unmarshal(in.Args, &line))
			b, ok := in.Original("a")
			if !ok {
				b, _, _ = r.Tree.Read("a")
			}
			_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", string(b)+line)}}, in.Seen)
			return tool.Result{Text: "appended"}, err
		}),
		commands,
	}
}

// mixed is a conversation that uses the whole workshop. At the end the model
// itself writes what an interrupted command may have left out. It reads the file
// first: a file that it has not seen is not overwritten (ruling G4).
func mixed() []model.Reply {
	cut := calls("read", `"a"`)
	cut.Finish = model.Length
	return []model.Reply{
		calls("read", `"a"`, "read", `"none"`, "read", `"b"`, "write", `{"a":"a1","b":"b1"}`, "bash", `1`),
		cut,
		calls("bash", `2`, "write", `no`, "write", `{"../out":"x","asked":"1"}`, "nothing", `{}`, "read", `"a"`, "read", `"b"`),
		calls("append", `" and"`, "append", `" so"`, "read", `"made"`, "write", `{"made":"in the end","sub/new":"n"}`),
		text("so"),
	}
}

// work is one life of a process that holds the mixed conversation.
func stepWork(dir string, m model.Model) process {
	return process{
		round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			_, err := r.Talk(ctx, handy(m, workshop(dir, r)...), user("do it"))
			return nil, err
		},
		set: func(r *hone.Run) {
			r.Human = hone.Always{}
			r.Rules.Approve = []string{"asked"}
		},
	}
}

// afterWork checks what must hold wherever the process was killed.
func afterWork(t testing.TB, dir string) {
	t.Helper()
	holdRequests(t, dir)
	ran := strings.Fields(string(must(os.ReadFile(dir + ".ran"))))
	if slices.Sort(ran); len(slices.Compact(slices.Clone(ran))) != len(ran) {
		t.Errorf("commands were run again: %v", ran)
	}
	all := events(t, dir)
	if o := of[history.Outside](t, all, "outside", ""); len(o) != 0 {
		t.Errorf("told as changed by others: %v", o)
	}
	for _, e := range all {
		if e.Type == "change" && (e.Step.Session != 1 || e.Step.Turn == 0 || e.Step.Call == 0) {
			t.Errorf("a change is not of the call that made it: %s", e.Step)
		}
	}
}

func furnishWork(_ testing.TB, dir string) {
	crashtest.WriteFile(dir, "a", "a0")
	crashtest.WriteFile(dir, "b", "b0")
	must(0, os.WriteFile(dir+".ran", nil, 0o644))
}

func TestTalkAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		Setup:   furnishWork,
		Replies: mixed(),
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			p := stepWork(dir, m)
			p.observe = o
			end := p.end(t, dir)
			afterWork(t, dir)
			return end
		},
	}.Run(t)
}

// The resumed process is killed too, early or late, and so is the one after it.
// A run whose processes all die early still reaches its end.
func TestTalkKilledAgain(t *testing.T) {
	want := killedAfter(t)
	stride := 24
	if testing.Short() {
		stride = 5 * 24
	}
	for first := 5; first < want.points; first += stride {
		for _, then := range [][]int{{2}, {3 + first%9}} {
			same(t, want, killedAfter(t, append([]int{first}, then...)...))
		}
	}
	for every := 14; every < 24; every += stride / 8 {
		same(t, want, killedAfter(t, slices.Repeat([]int{every}, want.points)...))
	}
}

// killings is the result of a run whose processes were killed.
type killings struct {
	tree   map[string]string
	end    hone.End
	points int // in the last process
	calls  int
	lost   int // replies that were in and not on record
	at     []int
}

// killedAfter plays the mixed conversation, and kills each process after so
// many points, until there are no more or the run has ended.
func killedAfter(t *testing.T, points ...int) killings {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	furnishWork(t, dir)
	m := &actor{replies: mixed()}
	k := killings{at: points}
	for _, left := range points {
		if !stepWork(dir, m).killedAt(t, dir, func(string, journal.Type, journal.Phase) bool { left--; return left < 0 }) {
			break
		}
		k.lost = len(m.requests) - len(of[history.Replied](t, events(t, dir), "reply", journal.Record))
	}
	p := stepWork(dir, m)
	p.observe = journal.Observer{Before: func(journal.Entry) { k.points++ }, After: func(journal.Event) { k.points++ }}
	k.end = p.end(t, dir)
	afterWork(t, dir)
	k.tree, k.calls = crashtest.Tree(t, dir), len(m.requests)
	return k
}

func same(t *testing.T, want, got killings) {
	t.Helper()
	at := got.at[:min(len(got.at), 3)]
	if diff := cmp.Diff(want.tree, got.tree); diff != "" {
		t.Errorf("the tree after kills at %v (-undisturbed +resumed):\n%s", at, diff)
	}
	if got.end.Kind != want.end.Kind {
		t.Errorf("the end after kills at %v: %+v", at, got.end)
	}
	if got.calls != want.calls+got.lost {
		t.Errorf("%d model calls after kills at %v, want %d and %d whose replies were lost", got.calls, at, want.calls, got.lost)
	}
}
