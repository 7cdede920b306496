package hone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/model"
)

// Ask stores the request and the reply as objects that can be read again.
func TestAskKeepsRequestAndReply(t *testing.T) {
	dir := t.TempDir()
	reply := text("the answer")
	reply.Raw = json.RawMessage(`{"id":"r1","text":"the answer"}`)
	m := speaker(func(context.Context, model.Request) (model.Reply, error) { return reply, nil })
	role := editor(m)
	role.Reasoning = model.High
	wantEnd(t, process{round: asks(role, "the question")}.end(t, dir), hone.KindDone)
	all := events(t, dir)
	asked, replied := of[history.Asked](t, all, "ask", journal.Begin)[0], of[history.Replied](t, all, "reply", journal.Record)[0]
	var req model.Request
	must(0, json.Unmarshal(object(t, dir, asked.Request), &req))
	want := model.Request{System: "be brief", Messages: user("the question"), Reasoning: model.High}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Errorf("the recorded request (-want +got):\n%s", diff)
	}
	kept := must(history.ReadReply(replied, nil)) // a short one is in the line
	if kept.Text() != "the answer" || string(kept.Raw) != string(reply.Raw) {
		t.Errorf("the recorded reply: %+v", kept)
	}
	if *replied.Usage != *reply.Usage || replied.Finish != model.Stop || replied.Bytes != len("the answer") {
		t.Errorf("the reply's event: %+v", replied)
	}
	sent := m.requests[0]
	if sent.MaxOutput != role.MaxOutput || sent.Seq != 0 || sent.Attempt != 0 || sent.System != "be brief" {
		t.Errorf("what the model was sent: %+v", sent)
	}
}

// A reply that is too long for an event's line is an object.
func TestAskKeepsLongReply(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("the answer ", 2000)
	wantEnd(t, process{round: asks(editor(speaker(says(long))), "the question")}.end(t, dir), hone.KindDone)
	replied := of[history.Replied](t, events(t, dir), "reply", journal.Record)[0]
	kept := must(history.ReadReply(replied, func(name string) ([]byte, error) { return object(t, dir, name), nil }))
	if replied.Stored != "" || kept.Text() != long {
		t.Errorf("the recorded reply: %+v", replied)
	}
}

// A request that repeats parts of the request of the round before is stored as what it
// adds, and is read back as it was sent, also after a crash and after a part became shorter.
func TestAskStoresAddedParts(t *testing.T) {
	dir := t.TempDir()
	m := speaker(says("a"), says("b"), says("c"), says("d"), says("e"), says("f"), says("g"))
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		texts := []string{strings.Repeat("the code base ", 1000)}
		for i := range r.Round() {
			texts = append(texts, strings.Repeat(fmt.Sprintf("%d of ", i), 1000))
		}
		if r.Round() == 4 {
			texts[3] = "shorter"
		}
		_, err := r.Ask(ctx, editor(m), hone.Text(texts...))
		return []check.Finding{wrong("still")}, err
	}, set: func(r *hone.Run) { r.Limits.Rounds = 6 }}
	if !p.killedAt(t, dir, func(when string, typ journal.Type, _ journal.Phase) bool { return m.calls() == 3 && typ == "reply" }) {
		t.Fatal("the run was not killed")
	}
	p.end(t, dir)
	stored := 0
	list := of[history.Asked](t, events(t, dir), "ask", journal.Begin)
	list = slices.CompactFunc(list, func(a, b history.Asked) bool { return a.Request == b.Request })
	for i, asked := range list {
		stored += len(object(t, dir, asked.Request))
		if got := sent(t, dir, asked.Request).Messages[0].Parts; len(got) != i+2 || (got[i+1].Text[:1] != fmt.Sprint(i)) {
			t.Errorf("request %d has %d parts", i, len(got))
		}
	}
	if got := sent(t, dir, list[3].Request).Messages[0].Parts; got[3].Text != "shorter" {
		t.Errorf("the fourth request: %.40q", got[3].Text)
	}
	if len(list) != 6 || stored > 70_000 {
		t.Errorf("%d bytes are stored for %d requests", stored, len(list))
	}
}

// A recorded reply is not requested again, and is returned unchanged, with the
// provider's own bytes.
func TestAskReturnsTheRecord(t *testing.T) {
	dir := t.TempDir()
	const opaque, raw = `{"z":"<s>&AAA\u003d","a":12345678901234567890,"n":1.0e5}`, `[{"b":1},{"a":[1.50,null]}]`
	m := speaker(func(context.Context, model.Request) (model.Reply, error) {
		return model.Reply{Finish: model.Calls, Detail: "d", Usage: &model.Usage{Input: 1, Output: 2}, Raw: json.RawMessage(raw), Parts: []model.Part{
			{Opaque: &model.Opaque{Wire: "gemini", Data: json.RawMessage(opaque)}},
			{Call: &model.Call{ID: "1", Name: "read", Args: `{"path": "a"`}},
			{Text: "and\ttext\u2028"},
		}}, nil
	})
	var got []model.Reply
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		reply, err := r.Ask(ctx, editor(m), user("?"))
		got = append(got, reply)
		return nil, err
	}}
	if !p.killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed")
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if m.calls() != 1 {
		t.Errorf("%d calls, want 1", m.calls())
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("the first process's reply and the resumed one's:\n%s", diff)
	}
	if s := string(got[1].Parts[0].Opaque.Data); s != opaque {
		t.Errorf("opaque data came back as %s", s)
	}
	if s := string(got[1].Raw); s != raw {
		t.Errorf("the provider's body came back as %s", s)
	}
}

// A changed prompt stops the run, and the reason has both digests.
func TestAskWithAnotherPrompt(t *testing.T) {
	for _, kill := range []func(string, journal.Type, journal.Phase) bool{on("before", "round", ""), on("before", "reply", journal.Record)} {
		dir := t.TempDir()
		m := speaker(says("1"), says("2"))
		if !(process{round: asks(editor(m), "one")}).killedAt(t, dir, kill) {
			t.Fatal("the run was not killed")
		}
		end := process{round: asks(editor(m), "two")}.end(t, dir)
		wantEnd(t, end, hone.KindFailed)
		var begin journal.Event
		for _, e := range events(t, dir) {
			if e.Type == "ask" {
				begin = e
			}
		}
		if !strings.Contains(end.Why, begin.Input[:12]) || strings.Count(end.Why, "input ") != 1 || !strings.Contains(end.Why, "run with ") {
			t.Errorf("the reason names not both digests, one of them %.12s: %s", begin.Input, end.Why)
		}
		if m.calls() != 1 || end.Next.IsZero() {
			t.Errorf("%d calls, next %+v", m.calls(), end.Next)
		}
	}
}

// After a temporary error there is another attempt, each time later, and not
// before the provider allows it.
func TestRetry(t *testing.T) {
	dir := t.TempDir()
	busy := &model.Error{Kind: model.Overloaded, Message: "busy"}
	after := &model.Error{Kind: model.RateLimited, Message: "slow down", Status: 429, RetryAfter: 40 * time.Millisecond}
	m := speaker(fails(busy), fails(after), fails(busy), says("at last"))
	wantEnd(t, process{round: asks(editor(m), "?")}.end(t, dir), hone.KindDone)
	retries := of[history.Retried](t, events(t, dir), "retry", "")
	if len(retries) != 3 || retries[0].Attempt != 0 || retries[2].Attempt != 2 {
		t.Fatalf("retries: %+v", retries)
	}
	if retries[1].Wait < 40 || !strings.Contains(retries[1].Error, "slow down") {
		t.Errorf("the wait that the provider asked for: %+v", retries[1])
	}
	attempts := []int{}
	for _, req := range m.requests {
		attempts = append(attempts, req.Attempt)
	}
	if !slices.Equal(attempts, []int{0, 1, 2, 3}) {
		t.Errorf("attempts are numbered %v", attempts)
	}
	if n := len(of[history.Reserve](t, events(t, dir), "reserve", "")); n != 4 {
		t.Errorf("the reply took %d attempts, want 4", n)
	}
}

// Unless the provider says how long to wait, the waits grow to the maximum.
func TestBackOffGrows(t *testing.T) {
	dir := t.TempDir()
	m := speaker(slices.Repeat([]answer{fails(&model.Error{Kind: model.Cut, Message: "cut"})}, 8)...)
	end := process{round: asks(editor(m), "?"), set: func(r *hone.Run) {
		r.Retry = hone.Retry{Attempts: 8, First: 4 * time.Millisecond, Most: 32 * time.Millisecond}
	}}.end(t, dir)
	wantEnd(t, end, hone.KindFailed)
	retries := of[history.Retried](t, events(t, dir), "retry", "")
	if len(retries) != 7 {
		t.Fatalf("%d waits between 8 attempts", len(retries))
	}
	for i, r := range retries {
		least, most := min(int64(4)<<i, 32)/2, min(int64(4)<<i, 32)*3/2
		if r.Wait < least || r.Wait > most {
			t.Errorf("wait %d is %d ms, want %d to %d", i, r.Wait, least, most)
		}
	}
	if !strings.Contains(end.Why, "8 attempts") || !strings.Contains(end.Why, "cut") || end.Next.IsZero() {
		t.Errorf("why and next: %q, %+v", end.Why, end.Next)
	}
}

// How a run ends after an error that another attempt cannot fix.
func TestFault(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault error
		after int // replies before
		kind  hone.Kind
		says  []string // in reason or next action
	}{
		{"a wrong key", &model.Error{Kind: model.Auth, Status: 401, Message: "no such key", Hint: "set TEST_API_KEY"}, 0,
			hone.KindFailed, []string{"test/model", "no such key", "set TEST_API_KEY"}},
		{"a refused request", &model.Error{Kind: model.Invalid, Message: "no such model"}, 0,
			hone.KindFailed, []string{"no such model", "Verb:resume"}},
		{"an empty account", &model.Error{Kind: model.Quota, Message: "no credit"}, 0,
			hone.KindFailed, []string{"no credit"}},
		{"a first prompt that is too long", &model.Error{Kind: model.TooLong, Message: "too many tokens"}, 0,
			hone.KindPrompt, []string{"too many tokens"}},
		{"a later prompt that is too long", &model.Error{Kind: model.TooLong, Message: "too many tokens"}, 1,
			hone.KindContext, []string{"too many tokens"}},
		{"more patience than there is", &model.Error{Kind: model.RateLimited, Message: "come back", RetryAfter: 2 * time.Hour}, 0,
			hone.KindFailed, []string{"2h,", "Verb:resume"}},
		{"an error of another kind", errors.New("a defect"), 0,
			hone.KindFailed, []string{"a defect"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := speaker(append(slices.Repeat([]answer{says("fine")}, tt.after), fails(tt.fault))...)
			// An engine that waits after all is not waited for.
			end := process{ctx: patient(t), round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				for range 2 {
					if _, err := r.Ask(ctx, editor(m), user("?")); err != nil {
						return nil, err
					}
				}
				return nil, nil
			}}.end(t, t.TempDir())
			wantEnd(t, end, tt.kind)
			for _, s := range tt.says {
				if !strings.Contains(fmt.Sprintf("%s\n%+v", end.Why, end.Next), s) {
					t.Errorf("%q is said neither in %q nor in %+v", s, end.Why, end.Next)
				}
			}
			if m.calls() != tt.after+1 {
				t.Errorf("%d calls, want %d: a fault like this is not tried again", m.calls(), tt.after+1)
			}
		})
	}
}

// The engine shows what the loop says about the size of a prompt.
func TestLoopSaysWhatTakesTheRoom(t *testing.T) {
	role := editor(speaker())
	role.Context = 4000
	end := process{round: func(_ context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		if err := role.Fits(4 * 3500); err != nil {
			return nil, err
		}
		err := role.Fits(4 * 3501)
		var room *hone.ContextError
		if errors.As(err, &room) {
			room.Room, room.Remedy = "src/ takes most of it", "leave src/ out"
		}
		return nil, err
	}}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindPrompt)
	if !strings.HasPrefix(end.Next.First, "leave src/ out, ") || !strings.Contains(end.Next.First, "[model]") || !strings.HasSuffix(end.Why, "\nsrc/ takes most of it") || !strings.Contains(end.Why, "4001") || !strings.Contains(end.Why, "4000") {
		t.Errorf("why %q, next %+v", end.Why, end.Next)
	}
	role.Context = 0
	fits := process{round: func(_ context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		return nil, role.Fits(1 << 40)
	}}
	wantEnd(t, fits.end(t, t.TempDir()), hone.KindDone)
}

// The usage of a canceled call is unknown, so it stays charged in full.
func TestCancelledCallStaysCharged(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	m := speaker(func(ctx context.Context, _ model.Request) (model.Reply, error) {
		cancel()
		return model.Reply{}, ctx.Err()
	}, says("fine"))
	end := process{ctx: ctx, round: asks(editor(m), "?")}.end(t, dir)
	wantEnd(t, end, hone.KindInterrupted)
	reserve := of[history.Reserve](t, events(t, dir), "reserve", "")[0]
	if end.Tokens != reserve.Tokens || end.Tokens < 1000 {
		t.Errorf("%d tokens are charged and %d were reserved", end.Tokens, reserve.Tokens)
	}
	again := process{round: asks(editor(m), "?")}.end(t, dir)
	wantEnd(t, again, hone.KindDone)
	if again.Tokens != reserve.Tokens+15 {
		t.Errorf("%d tokens after the call was made again, want %d", again.Tokens, reserve.Tokens+15)
	}
}

// An error of a canceled call does not count as the provider's error.
func TestFaultOfACancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := speaker(func(context.Context, model.Request) (model.Reply, error) {
		cancel()
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: "cut in the middle of the request"}
	})
	end := process{ctx: ctx, round: asks(editor(m), "?")}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindInterrupted)
}

// A reply that arrives after the context is canceled is recorded.
func TestReplyIsRecordedThoughCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	m := speaker(func(context.Context, model.Request) (model.Reply, error) {
		cancel()
		return text("paid for"), nil
	})
	look := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		reply, err := r.Ask(ctx, editor(m), user("?"))
		if err != nil {
			return nil, err
		}
		_, err = hone.Step(ctx, r, "next", reply.Text(), func(context.Context) (seen, error) { return seen{}, nil })
		return nil, err
	}
	wantEnd(t, process{ctx: ctx, round: look}.end(t, dir), hone.KindInterrupted)
	wantEnd(t, process{round: look}.end(t, dir), hone.KindDone)
	if m.calls() != 1 {
		t.Errorf("%d calls, want 1", m.calls())
	}
}
