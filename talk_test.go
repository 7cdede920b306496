package hone_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// actor is a model that returns the reply that the run does not have yet.
type actor struct {
	mu       sync.Mutex
	replies  []model.Reply
	requests []model.Request
}

func (a *actor) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, req)
	if req.Seq >= len(a.replies) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no reply %d", req.Seq+1)}
	}
	return a.replies[req.Seq], nil
}

// lastText returns the text in a request's last message, without results.
func (a *actor) lastText(i int) string {
	messages := a.requests[i].Messages
	var b strings.Builder
	for _, p := range messages[len(messages)-1].Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// results returns the results in the last message of a request.
func (a *actor) results(i int) []string {
	var list []string
	messages := a.requests[i].Messages
	for _, p := range messages[len(messages)-1].Parts {
		if p.Result != nil {
			list = append(list, p.Result.Text)
		}
	}
	return list
}

// calls is a reply that calls tools, by name and arguments.
func calls(pairs ...string) model.Reply {
	reply := model.Reply{Finish: model.Calls, Usage: &model.Usage{Input: 10, Output: 5}}
	for i := 0; i < len(pairs); i += 2 {
		reply.Parts = append(reply.Parts, model.Part{Call: &model.Call{ID: fmt.Sprintf("id%d", i/2), Name: pairs[i], Args: pairs[i+1]}})
	}
	return reply
}

// echo is a read-only tool that returns its arguments.
func echo() tool.Tool {
	return tool.Tool{Spec: model.Spec{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}, ReadOnly: true,
		Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
			return tool.Result{Text: "saw " + string(in.Args)}, nil
		}}
}

// handy is a role with tools.
func handy(m model.Model, tools ...tool.Tool) hone.Role {
	role := editor(m)
	role.Tools = tools
	return role
}

// talks is a round that holds one conversation.
func talks(role hone.Role, show func(hone.Conversation)) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		talk, err := r.Talk(ctx, role, user("do it"))
		show(talk)
		return nil, err
	}
}

// converse holds one conversation with a model that gives these replies, and
// checks what must hold for all conversations.
func converse(t testing.TB, dir string, role hone.Role, replies ...model.Reply) (hone.Conversation, *actor) {
	t.Helper()
	m := &actor{replies: replies}
	role.Model = m
	var talk hone.Conversation
	wantEnd(t, process{round: talks(role, func(got hone.Conversation) { talk = got })}.end(t, dir), hone.KindDone)
	if talk.Turns != len(m.requests) {
		t.Errorf("%d turns in %d requests", talk.Turns, len(m.requests))
	}
	holdRequests(t, dir)
	for i, asked := range of[history.Asked](t, events(t, dir), "ask", journal.Begin) {
		if diff := cmp.Diff(plain(m.requests[i]), plain(sent(t, dir, asked.Request)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("request %d, as it was sent and as it is kept (-sent +kept):\n%s", i, diff)
		}
		marked(t, m.requests[i])
	}
	return talk, m
}

// sent reads a whole request: a stored one may name an earlier one that it repeats.
func sent(t testing.TB, dir, object string) model.Request {
	t.Helper()
	home := must(journal.FindHome(dir))
	defer home.Close()
	return must(history.ReadWholeRequest(object, home.Get))
}

// plain returns a request without what is not stored.
func plain(req model.Request) model.Request {
	kept := model.Request{System: req.System, Tools: req.Tools, Reasoning: req.Reasoning}
	for _, m := range req.Messages {
		parts := slices.Clone(m.Parts)
		for i := range parts {
			parts[i].Cache = false
		}
		kept.Messages = append(kept.Messages, model.Message{Role: m.Role, Parts: parts})
	}
	return kept
}

// marked checks that a request's marks are where its stable parts end.
func marked(t testing.TB, req model.Request) {
	t.Helper()
	for i, m := range req.Messages {
		for j, p := range m.Parts {
			ends := (i == 0 || i == len(req.Messages)-3 || i == len(req.Messages)-1) && j == len(m.Parts)-1
			if p.Cache && !ends || ends && !p.Cache && len(req.Messages) > 1 {
				t.Errorf("of %d messages, part %d of message %d has the mark %v", len(req.Messages), j, i, p.Cache)
			}
		}
	}
}

// holdRequests checks all requests of a run: the sides alternate, each call is
// answered in its place, and each request of a conversation starts with the one
// before, byte for byte, unless output was omitted.
func holdRequests(t testing.TB, dir string) {
	t.Helper()
	elided := map[[2]int]bool{}
	before, turn := map[int]model.Request{}, map[int]int{} // by session
	for _, e := range events(t, dir) {
		if e.Step == nil {
			continue
		}
		if e.Step.Name == "elide" && e.Phase == journal.Record {
			elided[[2]int{e.Step.Session, e.Step.Turn}] = true
		}
		if e.Type != "ask" {
			continue
		}
		var asked history.Asked
		must(0, e.Decode(&asked))
		req := sent(t, dir, asked.Request)
		alternates(t, req.Messages)
		old, ok := before[e.Step.Session]
		if turn[e.Step.Session] == e.Step.Turn { // begun again
			if !cmp.Equal(old, req) {
				t.Errorf("turn %d was begun again with another request", e.Step.Turn)
			}
			continue
		}
		turn[e.Step.Session] = e.Step.Turn
		begins := ok && strings.HasPrefix(encoded(req.Messages), strings.TrimSuffix(encoded(old.Messages), "]"))
		if ok && begins == elided[[2]int{e.Step.Session, e.Step.Turn}] {
			t.Errorf("turn %d begins with the one before: %v", e.Step.Turn, begins)
		}
		if ok && !cmp.Equal(req.Tools, old.Tools) {
			t.Errorf("turn %d has other tools", e.Step.Turn)
		}
		before[e.Step.Session] = req
	}
}

func encoded(v any) string { return string(must(json.Marshal(v))) }

func alternates(t testing.TB, messages []model.Message) {
	t.Helper()
	var open []string
	for i, m := range messages {
		if want := []model.Role{model.User, model.Assistant}[i%2]; m.Role != want {
			t.Fatalf("message %d is of %s, want %s", i, m.Role, want)
		}
		var called, answered []string
		for _, p := range m.Parts {
			if p.Call != nil {
				called = append(called, p.Call.ID+p.Call.Name)
			}
			if p.Result != nil {
				answered = append(answered, p.Result.ID+p.Result.Name)
			}
		}
		if m.Role == model.User && !slices.Equal(open, answered) {
			t.Fatalf("message %d answers %q, and %q were called", i, answered, open)
		}
		open = called
	}
	if len(messages)%2 == 0 {
		t.Fatal("the last message is not the user's")
	}
}

// A conversation from its first message to the answer.
func TestTalk(t *testing.T) {
	dir := t.TempDir()
	opaque := model.Part{Opaque: &model.Opaque{Wire: "gemini", Data: json.RawMessage(`{"sig":"<&>","n":1.50}`)}}
	first := calls("look", `{"a":1}`, "look", `{"a":2}`)
	first.Parts = []model.Part{{Text: "let me see"}, opaque, first.Parts[0], opaque, first.Parts[1]}
	role := handy(nil, echo())
	role.Reasoning = model.Low
	talk, m := converse(t, dir, role, first, text("that is it"))
	if talk.Reply.Text() != "that is it" || talk.Ended != hone.EndedAnswer || talk.Usage != (model.Usage{Input: 20, Output: 10}) {
		t.Errorf("what came of it: %+v", talk)
	}
	want := []hone.Called{
		{Name: "look", Args: `{"a":1}`, Result: tool.Result{Text: `saw {"a":1}`}},
		{Name: "look", Args: `{"a":2}`, Result: tool.Result{Text: `saw {"a":2}`}},
	}
	if diff := cmp.Diff(want, talk.Calls); diff != "" {
		t.Errorf("its calls (-want +got):\n%s", diff)
	}
	opaque.Opaque.From = "test/model"
	if diff := cmp.Diff(first.Parts, plain(m.requests[1]).Messages[1].Parts); diff != "" {
		t.Errorf("the reply as it went back (-want +got):\n%s", diff)
	}
	if tools := m.requests[1].Tools; len(tools) != 1 || tools[0].Name != "look" || m.requests[1].System != "be brief" {
		t.Errorf("tools %+v, system %q", tools, m.requests[1].System)
	}
}

// Each conversation has its own session, separate from other questions.
func TestTalksAreApart(t *testing.T) {
	m := &actor{replies: []model.Reply{calls("look", "{}"), text("1"), text("2"), calls("look", "{}"), text("3")}}
	dir := t.TempDir()
	wantEnd(t, process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for i := range 3 {
			var err error
			if i == 1 {
				_, err = r.Ask(ctx, editor(m), user("and?"))
			} else {
				_, err = r.Talk(ctx, handy(m, echo()), user("do it"))
			}
			if err != nil {
				return nil, err
			}
		}
		_, err := hone.Step(ctx, r, "after", nil, func(context.Context) (seen, error) { return seen{}, nil })
		return nil, err
	}}.end(t, dir), hone.KindDone)
	holdRequests(t, dir)
	if after := *named(t, dir, "after")[0].Step; after != (journal.Identity{Round: 1, Name: "after"}) {
		t.Errorf("a step after them is %s", after)
	}
	var got []string
	for _, e := range events(t, dir) {
		if e.Type == "reply" || e.Type == "tool" && e.Phase == journal.Record {
			got = append(got, fmt.Sprintf("%s %d.%d.%d", e.Type, e.Step.Session, e.Step.Turn, e.Step.Call))
		}
	}
	want := []string{"reply 1.1.0", "tool 1.1.1", "reply 1.2.0", "reply 2.1.0", "reply 3.1.0", "tool 3.1.1", "reply 3.2.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}
}

// The bounds end a session, not the run (rulings S8, S11 and G11).
func TestBounds(t *testing.T) {
	one, two := calls("look", `{"a":1}`), calls("look", `{"a":2}`)
	spoken := calls("look", `{"a":3}`)
	spoken.Parts = append([]model.Part{{Text: "one more"}}, spoken.Parts...)
	stopped := spoken
	stopped.Finish = model.Stop
	short := text("half an ans")
	short.Finish = model.Length
	for _, tt := range []struct {
		name    string
		bounds  hone.Bounds
		replies []model.Reply
		ended   string
		ran     int
		says    string // the words added last
	}{
		{"the last turn's answer", hone.Bounds{Turns: 2}, []model.Reply{one, text("so")}, hone.EndedAnswer, 1, "last turn"},
		{"only one turn", hone.Bounds{Turns: 1}, []model.Reply{text("so")}, hone.EndedAnswer, 0, "last turn"},
		{"calls in the last turn", hone.Bounds{Turns: 2}, []model.Reply{one, spoken}, hone.EndedTurns, 1, "last turn"},
		{"calls in the last turn that say stop", hone.Bounds{Turns: 2}, []model.Reply{one, stopped}, hone.EndedTurns, 1, "last turn"},
		{"an empty last turn", hone.Bounds{Turns: 2}, []model.Reply{one, text(" \n")}, hone.EndedTurns, 1, "last turn"},
		{"a last turn that was cut", hone.Bounds{Turns: 2}, []model.Reply{one, short}, hone.EndedTurns, 1, "last turn"},
		{"no calls left", hone.Bounds{Calls: 2}, []model.Reply{one, two, text("so")}, hone.EndedAnswer, 2, "calls are used up"},
		{"no calls left, and one more", hone.Bounds{Calls: 2}, []model.Reply{one, two, spoken}, hone.EndedCalls, 2, "calls are used up"},
		{"neither turns nor calls left", hone.Bounds{Calls: 1, Turns: 2}, []model.Reply{one, text("so")}, hone.EndedAnswer, 1, "calls are used up"},
		{"too many at once", hone.Bounds{Calls: 1}, []model.Reply{calls("look", `{"a":1}`, "look", `{"a":2}`), text("so")}, hone.EndedAnswer, 1, "calls are used up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			role := handy(nil, echo())
			role.Bounds = tt.bounds
			talk, m := converse(t, t.TempDir(), role, tt.replies...)
			ran := 0
			for _, c := range talk.Calls {
				if c.Refused == "" {
					ran++
				}
			}
			if talk.Ended != tt.ended || ran != tt.ran || talk.Turns != len(tt.replies) {
				t.Errorf("ended by %q after %d turns and %d calls, want %q, %d and %d", talk.Ended, talk.Turns, ran, tt.ended, len(tt.replies), tt.ran)
			}
			if got := m.lastText(len(m.requests) - 1); !strings.Contains(got, tt.says) || strings.Count(got, "final answer") != 1 {
				t.Errorf("the model was told %q, want %q once", got, tt.says)
			}
			for i := range len(m.requests) - 1 {
				if strings.Contains(m.lastText(i), "final answer") {
					t.Errorf("turn %d was told %q already", i+1, m.lastText(i))
				}
			}
		})
	}
}

// The default bounds are 30 turns, 120 calls and 10 calls in a reply.
func TestStandardBounds(t *testing.T) {
	var turns, many []model.Reply
	for i := range 40 {
		turns = append(turns, calls("look", fmt.Sprintf(`{"a":%d}`, i)))
		var pairs []string
		for j := range 11 {
			pairs = append(pairs, "look", fmt.Sprintf(`{"a":"%d.%d"}`, i, j))
		}
		many = append(many, calls(pairs...))
	}
	if talk, _ := converse(t, t.TempDir(), handy(nil, echo()), turns...); talk.Turns != 30 || talk.Ended != hone.EndedTurns || len(talk.Calls) != 29 {
		t.Errorf("%d turns with %d calls, ended by %q", talk.Turns, len(talk.Calls), talk.Ended)
	}
	talk, _ := converse(t, t.TempDir(), handy(nil, echo()), many...)
	if talk.Turns != 13 || talk.Ended != hone.EndedCalls || len(talk.Calls) != 12*11 {
		t.Errorf("%d turns with %d calls, ended by %q", talk.Turns, len(talk.Calls), talk.Ended)
	}
	for i, c := range talk.Calls {
		if skipped := i%11 == 10; (c.Refused == hone.RefusedTurn) != skipped || c.Result.Failed != skipped {
			t.Errorf("call %d: %+v", i, c)
		}
	}
}

// A reply that ended early is discarded, and the model is told why.
func TestReplyThatEndedEarly(t *testing.T) {
	cut := calls("look", `{"a":1`)
	cut.Finish = model.Length
	filtered := text("I ca")
	filtered.Finish, filtered.Detail = model.Filtered, "SAFETY"
	talk, m := converse(t, t.TempDir(), handy(nil, echo()), calls("look", "{}"), cut, filtered, text("so"))
	if talk.Ended != hone.EndedAnswer || talk.Reply.Text() != "so" || len(talk.Calls) != 1 {
		t.Errorf("what came of it: %+v", talk)
	}
	for i, want := range []string{"", "", "it reached the output limit", "(filtered: SAFETY)"} {
		if got := m.lastText(i); !strings.Contains(got, want) || (want != "") != strings.Contains(got, "was discarded") {
			t.Errorf("request %d says %q, want %q in it", i, got, want)
		}
	}
	if s := encoded(m.requests[3]); strings.Contains(s, "I ca") || strings.Contains(s, `{\"a\":1`) {
		t.Errorf("what was not taken went back: %s", s)
	}
}

// Some servers report a discarded reply as an error. It is a turn like any other, and one that was rejected costs nothing.
func TestErrorThatIsAReply(t *testing.T) {
	dir := t.TempDir()
	m := speaker(fails(&model.Error{Kind: model.Malformed, Status: 400, Message: "failed to call a function"}),
		fails(&model.Error{Kind: model.Blocked, Status: 400, Message: "the content policy"}), says("so"))
	var talk hone.Conversation
	end := process{round: talks(handy(m, echo()), func(got hone.Conversation) { talk = got })}.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if talk.Ended != hone.EndedAnswer || talk.Reply.Text() != "so" || talk.Turns != 3 || end.Tokens != 15 {
		t.Errorf("what came of it: %+v, %d tokens", talk, end.Tokens)
	}
	for i, want := range []string{"", "(other: failed to call a function)", "(filtered: the content policy)"} {
		if got := (&actor{requests: m.requests}).lastText(i); !strings.Contains(got, want) {
			t.Errorf("request %d says %q, want %q in it", i, got, want)
		}
	}
	if retries := of[history.Retried](t, events(t, dir), "retry", ""); len(retries) > 0 {
		t.Errorf("%d retries", len(retries))
	}
}

// A model that neither calls tools nor answers is told to do so, at most twice
// in a row.
func TestNoAnswer(t *testing.T) {
	answered := func(text string) string {
		if strings.Contains(text, "DONE") {
			return ""
		}
		return "end with DONE"
	}
	thought := model.Reply{Finish: model.Stop, Parts: []model.Part{{Opaque: &model.Opaque{Wire: "w", Data: json.RawMessage(`1`)}}}}
	for _, tt := range []struct {
		name     string
		answered func(string) string
		replies  []model.Reply
		told     []string
	}{
		{"an empty reply", nil, []model.Reply{text(""), text("so")}, []string{"do it", "was empty"}},
		{"a thought", nil, []model.Reply{thought, calls(), text("so")}, []string{"do it", "was empty", "was empty"}},
		{"never a word", nil, []model.Reply{text(" "), text(""), text("")}, []string{"do it", "was empty", "was empty"}},
		{"an answer", answered, []model.Reply{text("DONE")}, []string{"do it"}},
		{"an answer when told", answered, []model.Reply{text("well"), text("DONE")}, []string{"do it", "end with DONE"}},
		{"never an answer", answered, []model.Reply{text("well"), text(""), text("well")}, []string{"do it", "end with DONE", "was empty"}},
		{"reasoning alone", answered, []model.Reply{text("<think>DONE"), text("no</think>DONE")}, []string{"do it", "was empty"}},
		{"a call as text", answered, []model.Reply{text("<tool_call>{}</tool_call>"), text("DONE")}, []string{"do it", "A call that is written as text is not read"}},
		{"a call as the answer", nil, []model.Reply{text("[look(path='a')]"), text("<tool_call> is a tag.")}, []string{"do it", "looks like a call. If it was your answer, repeat it without that. A call that is written as text is not read"}},
		{"a call between", answered, []model.Reply{text("a"), text("b"), calls("look", "{}"), text("c"), text("d"), text("e")},
			[]string{"do it", "end with DONE", "end with DONE", "", "end with DONE", "end with DONE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			role := handy(nil, echo())
			role.Answered = tt.answered
			talk, m := converse(t, t.TempDir(), role, tt.replies...)
			if talk.Ended != hone.EndedAnswer || talk.Turns != len(tt.replies) {
				t.Errorf("ended by %q after %d turns, want %d", talk.Ended, talk.Turns, len(tt.replies))
			}
			for i, want := range tt.told {
				if got := m.lastText(i); !strings.Contains(got, want) || want == "" && got != "" {
					t.Errorf("request %d says %q, want %q", i, got, want)
				}
				if want == "was empty" && m.requests[i].Messages[len(m.requests[i].Messages)-2].Parts[0].Text != "(no reply)" {
					t.Errorf("request %d holds the reply that said nothing", i)
				}
			}
		})
	}
}

// The user is told once of a model that writes its calls as text.
func TestCallsAsTextAreNoticed(t *testing.T) {
	role := handy(nil, echo())
	role.Answered = func(string) string { return "end with DONE" }
	call := text(`{"name": "look", "arguments": {}}`)
	dir := t.TempDir()
	converse(t, dir, role, call, call, call)
	notices := of[history.Notice](t, events(t, dir), "notice", "")
	if len(notices) != 1 || !strings.Contains(notices[0].Text, " writes tool calls as text, ") || !slices.Contains(notices[0].Next.Flags, hone.Flag{Name: "tools", Value: "text"}) {
		t.Errorf("notices: %v", notices)
	}
}

// ReadRequest fails if the object does not exist, or is not a request.
func TestReadRequestFails(t *testing.T) {
	home := must(journal.OpenHome(t.TempDir()))
	defer home.Close()
	pack := home.Pack("r")
	defer pack.Close()
	for _, name := range []string{strings.Repeat("0", 64), must(pack.Put([]byte("no JSON")))} {
		if req, err := history.ReadRequest(name, home.Get); err == nil {
			t.Errorf("a request was read: %+v", req)
		}
	}
}

// Ruling G4: the user is not asked about a file that a session has not seen.
func TestUnreadFileInACall(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "old"})
	m := &actor{replies: []model.Reply{calls("write", `{"path": "a", "content": "new"}`), text("done")}}
	h := &person{answer: yes}
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		role := editor(m)
		role.Tools = []tool.Tool{tool.Write(r.Tree, nil, r.Apply)}
		_, err := r.Talk(ctx, role, user("do it"))
		return nil, err
	}, set: approve(h)}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if got := m.results(1)[0]; !strings.HasSuffix(got, "Read it, then try again") || len(h.asked) != 0 || crashtest.ReadFile(dir, "a") != "old" {
		t.Errorf("the model was told %q, the user was asked %d times, the file is %q", got, len(h.asked), crashtest.ReadFile(dir, "a"))
	}
	p.replays(t, dir)
}

// The last call of a reply may end the session, if the reply has a text and all of its calls succeeded.
func TestTalkEndsWithACall(t *testing.T) {
	check := tool.Tool{Spec: model.Spec{Name: "check", Schema: json.RawMessage(`{"type":"object"}`)}, RunsCommands: true,
		Run: func(context.Context, tool.Input) (tool.Result, error) {
			return tool.Result{Text: "passes", Ends: true}, nil
		}}
	with := func(text string, reply model.Reply) model.Reply {
		reply.Parts = append([]model.Part{{Text: text}}, reply.Parts...)
		return reply
	}
	answered := text("nothing is left")
	for name, tt := range map[string]struct {
		reply model.Reply
		turns int
	}{
		"with a text":         {with("a was wrong; I changed it", calls("look", "{}", "check", "{}")), 1},
		"without a text":      {calls("check", "{}"), 2},
		"reasoning alone":     {with("<think>it will pass</think>", calls("check", "{}")), 2},
		"not the last call":   {with("a was wrong", calls("check", "{}", "look", "{}")), 2},
		"another call failed": {with("a was wrong", calls("edit", "{}", "check", "{}")), 2},
	} {
		talk, m := converse(t, t.TempDir(), handy(nil, echo(), check), tt.reply, answered)
		if talk.Ended != hone.EndedAnswer || talk.Turns != tt.turns || len(m.requests) != tt.turns {
			t.Errorf("%s: it ended with %s after %d turns", name, talk.Ended, talk.Turns)
		}
	}
	role := handy(nil, check)
	role.Answered = func(said string) string {
		if strings.HasPrefix(said, "STATUS") {
			return ""
		}
		return "give a status"
	}
	for said, turns := range map[string]int{"STATUS: COMPLETE": 1, "done": 2} {
		if talk, _ := converse(t, t.TempDir(), role, with(said, calls("check", "{}")), text("STATUS: COMPLETE")); talk.Turns != turns {
			t.Errorf("%s: %d turns", said, talk.Turns)
		}
	}
}
