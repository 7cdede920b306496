package hone_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// actor is a model that gives the reply that the run has not got yet.
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

// told is the text of a request's last message that is no result.
func (a *actor) told(i int) string {
	messages := a.requests[i].Messages
	var b strings.Builder
	for _, p := range messages[len(messages)-1].Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// results are what the last message of a request answers.
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

// echo is a tool that looks, and says its arguments.
func echo() tool.Tool {
	return tool.Tool{Spec: model.Spec{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}, Looks: true,
		Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
			return tool.Result{Text: "saw " + string(in.Args)}, nil
		}}
}

// handy is a role that has tools.
func handy(m model.Model, tools ...tool.Tool) hone.Role {
	role := editor(m)
	role.Tools = tools
	return role
}

// talks is a round that holds one conversation.
func talks(role hone.Role, show func(hone.Talk)) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		talk, err := r.Talk(ctx, role, user("do it"))
		show(talk)
		return nil, err
	}
}

// converse holds one conversation with a model that gives these replies, and
// checks what holds for all.
func converse(t testing.TB, dir string, role hone.Role, replies ...model.Reply) (hone.Talk, *actor) {
	t.Helper()
	m := &actor{replies: replies}
	role.Model = m
	var talk hone.Talk
	wantEnd(t, process{round: talks(role, func(got hone.Talk) { talk = got })}.end(t, dir), hone.ExitDone, "done")
	if talk.Turns != len(m.requests) {
		t.Errorf("%d turns in %d requests", talk.Turns, len(m.requests))
	}
	holdRequests(t, dir)
	for i, asked := range of[hone.Asked](t, events(t, dir), "ask", journal.Begin) {
		if diff := cmp.Diff(plain(m.requests[i]), plain(sent(t, dir, asked.Request)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("request %d, as it was sent and as it is kept (-sent +kept):\n%s", i, diff)
		}
		marked(t, m.requests[i])
	}
	return talk, m
}

// sent reads a request.
func sent(t testing.TB, dir, object string) model.Request {
	t.Helper()
	home := must(journal.FindHome(dir))
	defer home.Close()
	req, err := hone.Sent(home, object)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// plain is a request without what is not kept.
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
			ends := (i == 0 || i == len(req.Messages)-1) && j == len(m.Parts)-1
			if p.Cache && !ends || ends && !p.Cache && len(req.Messages) > 1 {
				t.Errorf("of %d messages, part %d of message %d has the mark %v", len(req.Messages), j, i, p.Cache)
			}
		}
	}
}

// holdRequests checks all requests of a run: sides alternate, each call is
// answered in its place, and each request of a conversation begins with the
// one before, byte for byte, unless output was taken out.
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
		var asked hone.Asked
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

// TestTalk: a conversation from its first message to the answer.
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
	if diff := cmp.Diff(first.Parts, plain(m.requests[1]).Messages[1].Parts); diff != "" {
		t.Errorf("the reply as it went back (-want +got):\n%s", diff)
	}
	if tools := m.requests[1].Tools; len(tools) != 1 || tools[0].Name != "look" || m.requests[1].System != "be brief" {
		t.Errorf("tools %+v, system %q", tools, m.requests[1].System)
	}
}

// TestTalksAreApart: each has a session of its own, beside other questions.
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
		return nil, nil
	}}.end(t, dir), hone.ExitDone, "done")
	holdRequests(t, dir)
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

// TestBounds: a session ends, the run does not (rulings S8, S11 and G11).
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
			if got := m.told(len(m.requests) - 1); !strings.Contains(got, tt.says) || strings.Count(got, "final answer") != 1 {
				t.Errorf("the model was told %q, want %q once", got, tt.says)
			}
			for i := range len(m.requests) - 1 {
				if strings.Contains(m.told(i), "final answer") {
					t.Errorf("turn %d was told %q already", i+1, m.told(i))
				}
			}
		})
	}
}

// TestStandardBounds: 30 turns, 120 calls and 10 in a reply.
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

// TestReplyThatEndedEarly is not taken, and the model told why.
func TestReplyThatEndedEarly(t *testing.T) {
	cut := calls("look", `{"a":1`)
	cut.Finish = model.Length
	filtered := text("I ca")
	filtered.Finish, filtered.Detail = model.Filtered, "SAFETY"
	talk, m := converse(t, t.TempDir(), handy(nil, echo()), calls("look", "{}"), cut, filtered, text("so"))
	if talk.Ended != hone.EndedAnswer || talk.Reply.Text() != "so" || len(talk.Calls) != 1 {
		t.Errorf("what came of it: %+v", talk)
	}
	for i, want := range []string{"", "", "(length)", "(filtered: SAFETY)"} {
		if got := m.told(i); !strings.Contains(got, want) || (want != "") != strings.Contains(got, "was not taken") {
			t.Errorf("request %d says %q, want %q in it", i, got, want)
		}
	}
	if s := encoded(m.requests[3]); strings.Contains(s, "I ca") || strings.Contains(s, `{\"a\":1`) {
		t.Errorf("what was not taken went back: %s", s)
	}
}

// TestNoAnswer: a model that neither calls nor answers is told to, twice in a
// row and no more.
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
				if got := m.told(i); !strings.Contains(got, want) || want == "" && got != "" {
					t.Errorf("request %d says %q, want %q", i, got, want)
				}
			}
		})
	}
}

// wordy is a tool that looks and says so many letters.
func wordy(bytes int) tool.Tool {
	one := echo()
	one.Run = func(_ context.Context, in tool.Input) (tool.Result, error) {
		s := string(in.Args) + strings.Repeat("x", bytes)
		return tool.Result{Text: s[:bytes]}, nil
	}
	return one
}

// looking are replies that look at one thing after the other, and then answer.
func looking(n, each int) []model.Reply {
	var replies []model.Reply
	for i := 0; i < n; i += each {
		var pairs []string
		for j := i; j < min(n, i+each); j++ {
			pairs = append(pairs, "look", fmt.Sprintf(`{"at":%d}`, j))
		}
		replies = append(replies, calls(pairs...))
	}
	return append(replies, text("so"))
}

// roomy is a role with a context of so many tokens.
func roomy(context int64, tools ...tool.Tool) hone.Role {
	role := handy(nil, tools...)
	role.Context = context
	return role
}

// TestElision: at four fifths of the context old output gives way, down to two
// fifths, in one go (ruling G13).
func TestElision(t *testing.T) {
	const context, size = 10_000, 3_000 // tokens, bytes
	dir := t.TempDir()
	talk, m := converse(t, dir, roomy(context, wordy(size)), looking(20, 1)...)
	gone := 0
	for i, req := range m.requests {
		whole, now := int64(len(encoded(plain(req)))), 0
		for _, message := range req.Messages {
			for _, p := range message.Parts {
				if p.Result != nil && strings.Contains(p.Result.Text, "not shown any more") {
					now++
				}
			}
		}
		if whole/4 > context*8/10 {
			t.Errorf("request %d takes %d bytes", i, whole)
		}
		if least := int64(context*4*4/10) - size; now > gone && (whole < least || whole > least+size+1000) {
			t.Errorf("request %d takes %d bytes after output was taken out", i, whole)
		}
		if now > gone && now-gone < 4 {
			t.Errorf("request %d had %d results taken out at a time", i, now-gone)
		}
		if got := m.results(i); i > 0 && (len(got) != 1 || len(got[0]) != size) {
			t.Errorf("request %d does not end with the last results", i)
		}
		if req.Messages[0].Parts[0].Text != "do it" {
			t.Errorf("request %d does not begin with the first message", i)
		}
		gone = now
	}
	elisions := of[struct{ Results, Bytes int }](t, named(t, dir, "elide"), "step", journal.Record)
	if len(elisions) != 2 || elisions[0].Results+elisions[1].Results != gone {
		t.Errorf("elisions on record: %+v; %d results are gone", elisions, gone)
	}
	for i, e := range of[tool.Result](t, events(t, dir), "tool", journal.Record) {
		if len(e.Text) != size || talk.Calls[i].Result.Text != e.Text {
			t.Errorf("output %d is not kept whole", i)
		}
	}
}

// named are the events of steps of a name.
func named(t testing.TB, dir, name string) []journal.Event {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(events(t, dir)), func(e journal.Event) bool { return e.Step == nil || e.Step.Name != name })
}

// TestElidedOutputCanBeHadAgain: what the model is told to call again is not
// refused as a repetition.
func TestElidedOutputCanBeHadAgain(t *testing.T) {
	same := calls("look", `{}`)
	replies := append(slices.Concat([]model.Reply{same, same}, looking(10, 1)[:10]), same, text("so"))
	dir := t.TempDir()
	talk, _ := converse(t, dir, roomy(10_000, wordy(3000)), replies...)
	if len(named(t, dir, "elide")) == 0 {
		t.Fatal("nothing was taken out")
	}
	if c := talk.Calls[12]; c.Refused != "" {
		t.Errorf("the call was refused: %+v", c)
	}
}

// TestElisionOfLittle: where old output is not what takes the room, it is not
// taken out turn by turn.
func TestElisionOfLittle(t *testing.T) {
	role := roomy(10_000, wordy(400))
	role.System = strings.Repeat("s", 33_000)
	dir := t.TempDir()
	if talk, _ := converse(t, dir, role, looking(4, 1)...); talk.Ended != hone.EndedAnswer {
		t.Errorf("ended by %q", talk.Ended)
	}
	if n := len(named(t, dir, "elide")); n != 0 {
		t.Errorf("%d events of elisions", n)
	}
}

// TestLastResultsStay though a reply that was not taken came after them.
func TestLastResultsStay(t *testing.T) {
	short := text("half")
	short.Finish, short.Detail = model.Length, strings.Repeat("d", 12_000)
	_, m := converse(t, t.TempDir(), roomy(10_000, wordy(10_000)), append(looking(2, 1)[:2], short, text("so"))...)
	var got []int
	for _, message := range m.requests[3].Messages {
		if p := message.Parts[0]; p.Result != nil {
			got = append(got, len(p.Result.Text))
		}
	}
	if len(got) != 2 || got[0] > 1000 || got[1] != 10_000 {
		t.Errorf("results have %v bytes, want the first taken out and the second whole", got)
	}
}

// TestElisionAtEveryPoint kills around it.
func TestElisionAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		Replies: looking(4, 1),
		Furnish: func(testing.TB, string) {},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			role := roomy(1000, wordy(1000))
			role.Model, role.MaxOutput = m, 100
			end := process{round: talks(role, func(hone.Talk) {}), observe: o}.end(t, dir)
			holdRequests(t, dir)
			if len(of[struct{}](t, named(t, dir, "elide"), "step", journal.Record)) != 1 {
				t.Error("output was not taken out once")
			}
			return end
		},
	}.Run(t)
}

// TestContextOutgrown: exit 2 where the first prompt does not fit, and exit 3
// where it outgrows the context later and nothing is left to take out.
func TestContextOutgrown(t *testing.T) {
	tooLong := fails(&model.Error{Kind: model.TooLong, Message: "too many tokens"})
	look := func(context.Context, model.Request) (model.Reply, error) { return calls("look", "{}"), nil }
	for _, tt := range []struct {
		name    string
		context int64
		first   int // bytes
		result  int
		answers []answer
		exit    int
		calls   int
	}{
		{"the first prompt", 1000, 4000, 0, []answer{says("so")}, hone.ExitUsage, 0},
		{"the first prompt, says the provider", 0, 4000, 0, []answer{tooLong}, hone.ExitUsage, 1},
		{"the last results", 1000, 100, 4000, []answer{look, says("so")}, hone.ExitBudget, 1},
		{"the last results, says the provider", 0, 100, 4000, []answer{look, tooLong}, hone.ExitBudget, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := speaker(tt.answers...)
			role := roomy(tt.context, wordy(tt.result))
			role.Model = m
			end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				_, err := r.Talk(ctx, role, user(strings.Repeat("x", tt.first)))
				return nil, err
			}}.end(t, t.TempDir())
			wantEnd(t, end, tt.exit, "context")
			if m.calls() != tt.calls {
				t.Errorf("%d calls, want %d", m.calls(), tt.calls)
			}
		})
	}
}

// TestReserveOfATurn is of the whole request, not of what it adds.
func TestReserveOfATurn(t *testing.T) {
	dir := t.TempDir()
	_, m := converse(t, dir, handy(nil, wordy(5000)), looking(4, 1)...)
	asked, reserves := of[hone.Asked](t, events(t, dir), "ask", journal.Begin), of[hone.Reserve](t, events(t, dir), "reserve", "")
	for i, req := range m.requests {
		whole := int64(len(encoded(plain(req))))
		if asked[i].Bytes != whole || reserves[i].Tokens != whole+1024+1000 {
			t.Errorf("request %d has %d bytes; %d are told, and %d tokens reserved", i, whole, asked[i].Bytes, reserves[i].Tokens)
		}
	}
}

// TestBudgetInTheMiddle stops with exit 3, and a larger one goes on.
func TestBudgetInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	m := &actor{replies: looking(5, 1)}
	ran := 0
	look := wordy(3000)
	run := look.Run
	look.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
		ran++
		return run(ctx, in)
	}
	p := process{round: talks(handy(m, look), func(hone.Talk) {}), set: func(r *hone.Run) { r.Limits.Tokens = 8000 }}
	wantEnd(t, p.end(t, dir), hone.ExitBudget, "budget")
	if n := len(m.requests); n < 2 || n > 4 || ran != n {
		t.Fatalf("%d requests and %d calls before the budget was used up", n, ran)
	}
	p.set = func(r *hone.Run) { r.Limits.Tokens = 1e6 }
	wantEnd(t, p.end(t, dir), hone.ExitDone, "done")
	if len(m.requests) != 6 || ran != 5 {
		t.Errorf("%d requests and %d calls in all, want 6 and 5", len(m.requests), ran)
	}
	holdRequests(t, dir)
}

// long holds a conversation of n calls, so many a turn, with a kilobyte of
// output each; last is called when the model is asked last.
func long(t testing.TB, dir string, n, each int, last func()) {
	t.Helper()
	replies := looking(n, each)
	m := &quick{replies: replies, last: last}
	role := handy(m, wordy(1000))
	role.Bounds = hone.Bounds{Turns: n + 2, Calls: n + 1, PerTurn: each}
	var talk hone.Talk
	wantEnd(t, process{round: talks(role, func(got hone.Talk) { talk = got })}.end(t, dir), hone.ExitDone, "done")
	if len(talk.Calls) != n || talk.Ended != hone.EndedAnswer {
		t.Fatalf("%d calls, ended by %q", len(talk.Calls), talk.Ended)
	}
}

// quick is an actor that remembers nothing.
type quick struct {
	replies []model.Reply
	last    func()
}

func (q *quick) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	if req.Seq == len(q.replies)-1 {
		q.last()
	}
	return q.replies[req.Seq], nil
}

// TestLongTalk: what a session keeps, on disk and in memory, grows with what
// it is about, not with its square; and nothing goes on after it.
func TestLongTalk(t *testing.T) {
	before := runtime.NumGoroutine()
	var start, end runtime.MemStats
	kept := func(n int) int64 {
		dir := t.TempDir()
		runtime.GC()
		runtime.ReadMemStats(&start)
		long(t, dir, n, 10, func() {
			runtime.GC()
			runtime.ReadMemStats(&end)
		})
		return size(dir)
	}
	half, whole := kept(500), kept(1000)
	if whole > half*22/10 {
		t.Errorf("500 calls keep %d bytes and 1000 keep %d", half, whole)
	}
	// A thousand outputs of 1 kB, kept as such, in the history, as lines, and
	// in a request under way; a hundred whole requests would be 60 MB.
	if used := int64(end.HeapAlloc) - int64(start.HeapAlloc); used > 20<<20 {
		t.Errorf("%d bytes of memory at the end of 1000 calls", used)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// size is how many bytes a workspace's home holds.
func size(dir string) (n int64) {
	must(0, filepath.WalkDir(filepath.Join(dir, journal.HomeName), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n += must(d.Info()).Size()
		}
		return err
	}))
	return n
}

// BenchmarkTalk1000 is a session of a thousand calls, ten to a turn and one.
func BenchmarkTalk1000(b *testing.B) {
	for _, each := range []int{10, 1} {
		b.Run(fmt.Sprintf("%d a turn", each), func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				long(b, dir, 1000, each, func() {})
				b.ReportMetric(float64(size(dir)), "kept-bytes")
			}
		})
	}
}

// TestSentOfNothing: an object that is not there, or is no request.
func TestSentOfNothing(t *testing.T) {
	home := must(journal.OpenHome(t.TempDir()))
	defer home.Close()
	none := strings.Repeat("0", 64)
	for _, name := range []string{none, must(home.Put([]byte("no JSON"))), must(home.Put([]byte(`{"after":"` + none + `","messages":[]}`)))} {
		if req, err := hone.Sent(home, name); err == nil {
			t.Errorf("a request was made of nothing: %+v", req)
		}
	}
}
