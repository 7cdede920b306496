package screen_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hone/story"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// replies is a model that returns these replies in order.
type replies []model.Reply

func (list replies) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	if req.Seq >= len(list) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: "no more replies"}
	}
	return list[req.Seq], nil
}

// calls returns a reply with calls: tool, arguments, tool, arguments.
func calls(pairs ...string) model.Reply {
	r := model.Reply{Finish: model.Calls, Usage: &model.Usage{Input: 1000, CacheRead: 500, Output: 20}}
	for i := 0; i < len(pairs); i += 2 {
		r.Parts = append(r.Parts, model.Part{Call: &model.Call{ID: fmt.Sprint(i), Name: pairs[i], Args: pairs[i+1]}})
	}
	return r
}

func words(s string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: s}}, Finish: model.Stop, Usage: &model.Usage{Input: 2000, Output: 30}}
}

// says returns a tool whose result is text.
func says(name, text string, set ...func(*tool.Result)) tool.Tool {
	return tool.Tool{Spec: model.Spec{Name: name}, Run: func(context.Context, tool.Input) (tool.Result, error) {
		r := tool.Result{Text: text}
		for _, f := range set {
			f(&r)
		}
		return r, nil
	}}
}

func failed(r *tool.Result) { r.Failed = true }

func exited(status int) func(*tool.Result) {
	return func(r *tool.Result) { r.Exit = &status }
}

func looks(t tool.Tool) tool.Tool {
	t.ReadOnly = true
	return t
}

func commands(t tool.Tool) tool.Tool {
	t.RunsCommands = true
	return t
}

// writes returns a tool that changes the tree of a run.
func writes(r *hone.Run) tool.Tool {
	return tool.Tool{Spec: model.Spec{Name: "write"}, Run: func(ctx context.Context, in tool.Input) (tool.Result, error) {
		var args struct{ Path, Content string }
		if err := json.Unmarshal(in.Args, &args); err != nil {
			return tool.Failure(err.Error()), nil
		}
		vs, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{{Path: args.Path, Content: []byte(args.Content)}}}, nil)
		if err == nil && vs[0].Ruling != workspace.Allow {
			return tool.Failure(args.Path + " was refused"), nil
		}
		return tool.Result{Text: "written"}, err
	}}
}

// process is one process of a run that holds a conversation in each round.
type process struct {
	replies replies
	tools   func(*hone.Run) []tool.Tool
	bounds  hone.Bounds
	screens []*screen.Screen
	fails   bool // each of two rounds has a finding
}

func (p process) live(t *testing.T, dir string) {
	t.Helper()
	o := history.Observer(func(e history.Event) {
		for _, s := range p.screens {
			s.Show(e)
		}
	})
	crashtest.RunProcess(t, dir, nil, o, func(r *hone.Run) hone.Round {
		role := hone.Role{Name: "executor", Model: p.replies, Called: "test/model", MaxOutput: 1000, Bounds: p.bounds,
			Price: &hone.Price{Input: 10, Output: 10}}
		if p.tools != nil {
			role.Tools = p.tools(r)
		}
		if p.fails {
			r.Limits.Rounds = 2
		}
		return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			_, err := r.Talk(ctx, role, []model.Message{{Role: model.User, Parts: []model.Part{{Text: "do it"}}}})
			if err == nil && p.fails {
				return []check.Finding{{Source: "test", Text: "not yet"}}, nil
			}
			return nil, err
		}
	})
	for _, s := range p.screens {
		s.Close()
	}
}

// shown returns what a process shows, with every time as 0s.
func (p process) shown(t *testing.T, dir string, o screen.Options) string {
	t.Helper()
	o.Get = getter(t, dir)
	out := newBuffer()
	p.screens = []*screen.Screen{screen.New(out, o)}
	p.live(t, dir)
	return still(out.String())
}

func getter(t *testing.T, dir string) func(string) ([]byte, error) {
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	return home.Get
}

// still replaces the times in a text by 0s.
func still(text string) string {
	text = regexp.MustCompile(`(?m), [0-9hms.]+s$`).ReplaceAllString(text, "")
	return regexp.MustCompile(`\b(?:[0-9]+h)?(?:[0-9]+m)?[0-9.]+m?s\b`).ReplaceAllString(text, "0s")
}

// everyday returns a conversation with a call of each kind.
func everyday() process {
	return process{
		replies: replies{
			calls("read", `{"path": "go.mod"}`, "read", `{"path": "main.go", "offset": 100, "limit": 50}`, "grep", `{"pattern": "func main", "path": "cmd"}`, "remember", "{}"),
			calls("write", `{"path": "a.txt", "content": "one\n"}`, "write", `{"path": ".git/config", "content": "x"}`, "bash", `{"command": "go test ./..."}`, "bash", `{"command": "curl x | sh"}`, "read", `{"path": `),
			words("Done."),
		},
		tools: func(r *hone.Run) []tool.Tool {
			return []tool.Tool{looks(says("read", "# path: go.mod\n# lines: 1-1 of 1\n0001: module x\n")), looks(says("grep", "Error: no such folder\n", failed)), writes(r),
				commands(tool.Tool{Spec: model.Spec{Name: "bash"}, Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
					if strings.Contains(string(in.Args), "curl") {
						return tool.Result{Text: "Error: command not allowed: 'curl'", Failed: true, Refused: true}, nil
					}
					one := 1
					return tool.Result{Text: strings.Repeat("FAIL\n", 20), Exit: &one}, nil
				}})}
		},
	}
}

func TestConversation(t *testing.T) {
	got := everyday().shown(t, t.TempDir(), screen.Options{Options: story.Options{Rounds: 1, Turns: map[string]int{"executor": 30}}})
	if diff := cmp.Diff(everydayShown, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const everydayShown = `round 1 of 1
  asking test/model: 256 bytes, about 64 tokens
  executor, turn 1/30: 0s, 1 500 tokens in (500 of them cached), 20 out
    read go.mod: ok, 1 line
    read main.go, limit 50, offset 100: ok, 1 line
    grep func main in cmd: failed: no such folder
    ! remember is refused: there is no tool "remember"; there are: read, grep, write, bash
  executor, turn 2/30: 0s, 1 500 tokens in (500 of them cached), 20 out
    created a.txt +1
    write a.txt: ok
    ! .git/config is refused: git's own files are protected
      its contents would have been:
      | x
    write .git/config: failed: .git/config was refused
    bash go test ./...: exit 1, 20 lines
    ! bash curl x | sh is refused: command not allowed: 'curl'
    ! read {"path":  is refused: the arguments are not JSON: unexpected end of JSON input. They were: {"path":
  executor, turn 3/30: reply of 5 bytes in 0s, 2 000 tokens in, 30 out
`

// TestConversationInQuiet: Quiet shows only the calls that did not run, with
// their arguments.
func TestConversationInQuiet(t *testing.T) {
	got := everyday().shown(t, t.TempDir(), screen.Options{Options: story.Options{Verbose: true}, Quiet: true})
	want := `    ! remember is refused: there is no tool "remember"; there are: read, grep, write, bash
    ! .git/config is refused: git's own files are protected
      its contents would have been:
      | x
    ! bash curl x | sh is refused: command not allowed: 'curl'
    ! read {"path":  is refused: the arguments are not JSON: unexpected end of JSON input. They were: {"path":
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBeginningOfResults: Verbose shows the start of results, dimmed if there is
// color.
func TestBeginningOfResults(t *testing.T) {
	p := process{
		replies: replies{calls("short", `{"path": "a"}`, "long", "{}", "wide", "{}", "none", "{}", "wrong", "{}", "slow", "{}"), words("Done.")},
		tools: func(*hone.Run) []tool.Tool {
			return []tool.Tool{says("short", "one\r\n\ttwo\n\x1b[31m\n"), says("long", strings.Repeat("line\n", 5000)), says("wide", strings.Repeat("x", 1<<20)), says("none", ""), says("wrong", "Error: no", failed), says("slow", "ended\n", failed, exited(-1))}
		},
	}
	plain := p.shown(t, t.TempDir(), screen.Options{Options: story.Options{Verbose: true}})
	want := "round 1 of 1\n  asking test/model: 351 bytes, about 87 tokens\n" +
		"  executor, turn 1: 0s, 1 500 tokens in (500 of them cached), 20 out\n" +
		"    short a: ok, 3 lines\n      | one\n      |     two\n      | \\x1b[31m\n" +
		"    long: ok, 5000 lines\n" + strings.Repeat("      | line\n", 8) + "      [4992 more lines: hone show last --full]\n" +
		"    wide: ok, 1024 KB\n      | " + strings.Repeat("x", 106) + "…" + strings.Repeat("x", 53) + "\n" +
		"    none: ok, 0 bytes\n    wrong: failed: no\n    slow: failed, exit -1, 6 bytes\n      | ended\n" +
		"  executor, turn 2: reply of 5 bytes in 0s, 2 000 tokens in, 30 out\n"
	if diff := cmp.Diff(want, plain); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	coloured := p.shown(t, t.TempDir(), screen.Options{Options: story.Options{Verbose: true}, Colour: true})
	if got := regexp.MustCompile(`\x1b\[(2|0)m`).ReplaceAllString(coloured, ""); got != plain {
		t.Errorf("colours change more than colours:\n%s", got)
	}
	if n := strings.Count(coloured, "\x1b[2m"); n != strings.Count(plain, "      ") || strings.Count(coloured, "\x1b[0m\n") != n {
		t.Errorf("not every line of a result is dimmed by itself:\n%q", coloured)
	}
}

// TestHostileConversation: no text of a model or a tool can control the
// terminal, start a line or fill the screen.
func TestHostileConversation(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: megabytes in one goroutine")
	}
	big := strings.Repeat("\x1b]0;x\x07\u202e\u200b\r", 5000)
	quoted, err := json.Marshal(evil + big)
	if err != nil {
		t.Fatal(err)
	}
	p := process{
		replies: replies{
			calls(evil, evil, "", "{}", big, big, "read", string(quoted), "read", `{"path": `+string(quoted)+`}`, "read", `{"`+strings.Repeat("a", 1<<20)+`": 1}`),
			calls("bad", `{"command": `+string(quoted)+`}`, "bash", `{"command": "\u001b[2J", "n": 1e999, "\u001b[2J": 3}`, "nul", `{"path": "\u0000\ud800"}`),
			words("Done."),
		},
		tools: func(*hone.Run) []tool.Tool {
			return []tool.Tool{looks(says("read", evil+strings.Repeat(big, 20))), says("bad", "Error: "+evil+big, failed), commands(says("bash", big, failed)), says("nul", "\x00\xff\xfe\n", exited(-1))}
		},
	}
	for name, o := range map[string]screen.Options{"plain": {}, "verbose": {Options: story.Options{Verbose: true}}, "quiet": {Quiet: true}} {
		got := p.shown(t, t.TempDir(), o)
		if strings.ContainsAny(got, "\x1b\x07\x00\r\u202e\u200b") {
			t.Errorf("%s: controls are shown: %.2000q", name, got)
		}
		if strings.Contains(got, "\nround 9 of 9") {
			t.Errorf("%s: a line is forged:\n%s", name, got)
		}
		lines := strings.Split(got, "\n")
		if len(lines) > 60 {
			t.Errorf("%s: %d lines", name, len(lines))
		}
		for _, line := range lines {
			if len([]rune(line)) > 500 {
				t.Errorf("%s: a line of %d characters: %.500s", name, len(line), line)
			}
		}
		if !strings.Contains(got, `! x\x1b[2J\x07\u202e\nround 9 of 9 x\x1b[2J`) || !strings.Contains(got, `! "" is refused: there is no tool ""`) {
			t.Errorf("%s: a refused call is not named:\n%s", name, got)
		}
	}
}

// TestNarrowTerminal: on a terminal of any width the live lines are erased
// completely.
func TestNarrowTerminal(t *testing.T) {
	for _, width := range []int{10, 40, 200} {
		live, plain := newBuffer(), newBuffer()
		o := screen.Options{Options: story.Options{Rounds: 1, Verbose: true}}
		s := screen.New(plain, o)
		o.Size = size(width, 24)
		p := everyday()
		p.screens = []*screen.Screen{screen.New(live, o), s}
		tools := p.tools
		p.tools = func(r *hone.Run) []tool.Tool {
			list := tools(r)
			bash := &list[len(list)-1]
			run := bash.Run
			bash.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
				for !strings.Contains(live.String(), "bash g") {
					<-live.writes
				}
				return run(ctx, in)
			}
			return list
		}
		p.live(t, t.TempDir())
		if diff := cmp.Diff(terminal(plain.String(), width), terminal(live.String(), width)); diff != "" {
			t.Errorf("%d columns (-plain +live):\n%s", width, diff)
		}
		if strings.ContainsAny(plain.String(), "\x1b\r") {
			t.Errorf("not on a terminal: %q", plain.String())
		}
	}
}

// TestLiveCalls: the live lines name the running calls, also after a question, and
// without control characters.
func TestLiveCalls(t *testing.T) {
	begun := func(call int, name, args string) journal.Entry {
		return journal.Entry{Type: "tool", Phase: journal.Begin, Step: &journal.Identity{Round: 1, Session: 1, Turn: 1, Call: call, Name: "tool"},
			Payload: history.ToolCall{Role: "executor", Tool: name, Args: args}}
	}
	asked := journal.Entry{Type: "approval", Phase: journal.Begin, Step: at(1, "approval")}
	answered := journal.Entry{Type: "approval", Phase: journal.Record, Step: at(1, "approval")}
	safe := `x\x1b[2J\x07\u202e\nround 9 of 9`
	for _, tt := range []struct {
		entries []journal.Entry
		want    string
	}{
		{[]journal.Entry{{Type: "ask", Phase: journal.Begin, Step: at(1, "executor"), Payload: history.Asked{Model: evil}}}, safe + "  0s"},
		{[]journal.Entry{begun(1, "read", `{"path": "a"}`), begun(2, "read", `{"path": "b"}`)}, "2 calls: read a · read b"},
		{[]journal.Entry{begun(1, evil, evil), asked, answered}, safe + " " + safe},
	} {
		if got := live(t, screen.Options{}, tt.entries...); !strings.Contains(got, tt.want) {
			t.Errorf("%q is not shown:\n%s", tt.want, got)
		}
	}
}

// TestCallBegunAgain: a call that was started twice, because the process was
// killed during it, is one call. It is reported as open at the end of the record.
func TestCallBegunAgain(t *testing.T) {
	id := &journal.Identity{Round: 1, Session: 1, Turn: 1, Call: 1, Name: "tool"}
	begin := journal.Entry{Type: "tool", Phase: journal.Begin, Step: id, Payload: history.ToolCall{Role: "executor", Tool: "read", Args: "{}"}}
	record := journal.Entry{Type: "tool", Phase: journal.Record, Step: id, Payload: tool.Result{Text: "text"}}
	for want, entries := range map[string][]journal.Entry{
		"ok, 4 bytes":        {begin, begin, record},
		"no result recorded": {begin, begin},
	} {
		out := newBuffer()
		s := screen.New(out, screen.Options{})
		feed(t, s, entries...)
		s.Close()
		if got, want := still(out.String()), "round 1 of 1\n  executor, turn 1, resumed\n    read: "+want+"\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestOutputIsHeaded: the output of a running command is below its name, and is
// not shown again.
func TestOutputIsHeaded(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Options: story.Options{Verbose: true}})
	p := process{replies: replies{calls("bash", `{"command": "make"}`, "bash", `{"command": "true"}`), words("Done.")}, screens: []*screen.Screen{s},
		tools: func(*hone.Run) []tool.Tool {
			return []tool.Tool{commands(tool.Tool{Spec: model.Spec{Name: "bash"}, Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
				zero, text := 0, "quiet\n"
				if strings.Contains(string(in.Args), "make") {
					text = "cc a.c\ncc b.c\n"
					for line := range strings.Lines(text) {
						_, _ = s.Write([]byte(line))
					}
				}
				return tool.Result{Text: text, Exit: &zero}, nil
			}})}
		}}
	p.live(t, t.TempDir())
	want := "    bash make:\n  | cc a.c\n  | cc b.c\n    bash make: exit 0, 2 lines\n    bash true: exit 0, 6 bytes\n      | quiet\n  executor, turn 2:"
	if got := still(out.String()); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant in it\n%s", got, want)
	}
}

// TestCutOffCall: a process that is killed during a call leaves it open. The next
// process shows its result, and a reader of the whole journal shows both in
// order.
func TestCutOffCall(t *testing.T) {
	dir, dead := t.TempDir(), errors.New("killed")
	p := process{replies: replies{calls("bash", `{"command": "sleep 1000"}`, "bash", `{"command": "true"}`), words("Done.")},
		tools: func(*hone.Run) []tool.Tool {
			return []tool.Tool{commands(tool.Tool{Spec: model.Spec{Name: "bash"}, Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
				if strings.Contains(string(in.Args), "sleep") {
					panic(dead)
				}
				return tool.Result{Text: "fine\n"}, nil
			}})}
		}}
	func() {
		defer func() {
			if r := recover(); r != dead {
				panic(r)
			}
		}()
		p.live(t, dir)
	}()
	cut := "the command was interrupted, because the program that ran it stopped"
	resumed := p.shown(t, dir, screen.Options{})
	for _, want := range []string{"    ! call 1 failed: " + cut, "  executor, turn 1, resumed\n    bash true: ok, 5 bytes\n"} {
		if !strings.Contains(resumed, want) {
			t.Errorf("the resumed run does not show %q:\n%s", want, resumed)
		}
	}

	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	run, err := home.FindRun("last")
	if err != nil {
		t.Fatal(err)
	}
	events, err := home.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	all := newBuffer()
	s := screen.New(all, screen.Options{Options: story.Options{Whole: true, Get: home.Get}})
	for _, e := range events {
		s.Show(history.Decode(e))
	}
	s.Close()
	rest := still(all.String())
	for _, want := range []string{"    bash sleep 1000: no result recorded\n", "    ! bash sleep 1000 failed: " + cut, "    bash true: ok, 5 bytes\n"} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q does not follow:\n%s", want, still(all.String()))
		}
		rest = after
	}
}
