package hone_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
)

// withSpare is a role with one fallback, test/spare, whose tokens cost twice as much.
func withSpare(role hone.Role, spare model.Model) hone.Role {
	role.Price = &hone.Price{Input: 1, Output: 1}
	role.Fallbacks = []hone.Candidate{{Model: spare, Called: "test/spare", MaxOutput: 500, Price: &hone.Price{Input: 2, Output: 2}}}
	return role
}

// outOfService are answers of a provider that is down for good.
func outOfService(n int) []answer { return slices.Repeat([]answer{fails(down)}, n) }

// G17. A model that replied and is then overloaded gets six attempts, not the rest of
// the night, because another model can take its place; that one is asked from then on.
func TestFailover(t *testing.T) {
	dir := t.TempDir()
	first := speaker(slices.Concat([]answer{says("1")}, outOfService(50))...)
	spare := speaker(says("2"), says("3"))
	role := withSpare(editor(first), spare)
	p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if _, err := asksTwice(role, role)(ctx, r, prior); err != nil {
			return nil, err
		}
		_, err := r.Ask(ctx, role, user("three"))
		return nil, err
	}, set: func(r *hone.Run) { retryQuickly(r); r.Limits.Tokens, r.Limits.Cost = 100_000, 1 }}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if first.calls() != 7 || spare.calls() != 2 {
		t.Errorf("%d calls of the first model, %d of the other; want 1 + 6 and 2", first.calls(), spare.calls())
	}
	all := events(t, dir)
	var repliedBy []string
	for _, r := range of[history.Replied](t, all, "reply", journal.Record) {
		repliedBy = append(repliedBy, r.Model)
	}
	if diff := cmp.Diff([]string{"test/model", "test/spare", "test/spare"}, repliedBy); diff != "" {
		t.Errorf("the models that replied (-want +got):\n%s", diff)
	}
	want := []history.FailedOver{{Round: 1, Role: "editor", From: "test/model", To: "test/spare", Error: "overloaded (HTTP 503): no room"}}
	if diff := cmp.Diff(want, of[history.FailedOver](t, all, "failover", "")); diff != "" {
		t.Errorf("the failover (-want +got):\n%s", diff)
	}
	if note := "test/spare took the place of test/model in round 1: overloaded (HTTP 503): no room"; !slices.Contains(end.Notes, note) {
		t.Errorf("the notes of the end are %q", end.Notes)
	}
	reserves := of[history.Reserve](t, all, "reserve", "")
	if last := reserves[len(reserves)-1]; last.Model != "test/spare" || *last.Cost != 2*float64(last.Tokens)/1e6 {
		t.Errorf("the last reserve is %+v with cost %v", last, *last.Cost)
	}
	if cost := (15*1 + 2*15*2) / 1e6; end.Tokens != 45 || math.Abs(*end.Cost-cost) > 1e-12 {
		t.Errorf("%d tokens for $%v, want 45 for $%v", end.Tokens, *end.Cost, cost)
	}
	if done := p.replays(t, dir); done.Requests != 3 || done.Open {
		t.Errorf("replayed %+v", done)
	}
}

// Only what another provider can remedy is a reason.
func TestReasonsForFailover(t *testing.T) {
	late := &model.Error{Kind: model.RateLimited, Status: 429, Message: "come back later", RetryAfter: 2 * time.Minute}
	for _, tt := range []struct {
		fault *model.Error
		calls int // of the first model; 0 if that ends the run
	}{
		{down, 6},
		{&model.Error{Kind: model.RateLimited, Status: 429, Message: "too fast"}, 6},
		{&model.Error{Kind: model.Unreachable, Message: "connection refused"}, 6},
		{&model.Error{Kind: model.Silent, Message: "nothing for 20 minutes"}, 6},
		{late, 1}, // it is not worth the wait
		{&model.Error{Kind: model.Quota, Status: 429, Message: "insufficient_quota"}, 1},
		{&model.Error{Kind: model.Auth, Status: 401, Message: "wrong key"}, 0},
		{&model.Error{Kind: model.Invalid, Status: 400, Message: "no"}, 0},
		{&model.Error{Kind: model.TooLong, Status: 400, Message: "too long"}, 0},
	} {
		first, spare := speaker(slices.Repeat([]answer{fails(tt.fault)}, 20)...), speaker(says("1"))
		end := process{round: asks(withSpare(editor(first), spare), "one"), set: retryQuickly}.end(t, t.TempDir())
		if tt.calls == 0 {
			if end.Kind == hone.KindDone || spare.calls() > 0 {
				t.Errorf("%v: the run ended %q with %d calls of the spare", tt.fault, end.Kind, spare.calls())
			}
			continue
		}
		wantEnd(t, end, hone.KindDone)
		if first.calls() != tt.calls || spare.calls() != 1 {
			t.Errorf("%v: %d and %d calls, want %d and 1", tt.fault, first.calls(), spare.calls(), tt.calls)
		}
	}
}

// A request that is far smaller than the context does not fit something else, such as a proxy.
func TestLimitOfARequestsSize(t *testing.T) {
	tooLarge := model.StatusError(413, nil, "", "")
	for _, tt := range []struct {
		context int64
		size    int // of the question
		want    hone.Kind
	}{
		{0, 10, hone.KindFailed},
		{0, 40_000, hone.KindPrompt},
		{100_000, 100_000, hone.KindFailed},
		{40_000, 100_000, hone.KindPrompt},
	} {
		role := editor(speaker(fails(tooLarge)))
		role.Context = tt.context
		end := process{round: asks(role, strings.Repeat("x", tt.size))}.end(t, t.TempDir())
		if end.Kind != tt.want || end.Kind == hone.KindFailed && !strings.Contains(end.Next.First, "limit for the size of a request") {
			t.Errorf("%+v: the run ended %q (%s; %+v)", tt, end.Kind, end.Why, end.Next)
		}
	}
}

// G17. The last model of a role is waited for like an only one: before its first reply
// for six attempts, then as long as the run has time.
func TestLastModelHasNoSubstitute(t *testing.T) {
	first, never := speaker(outOfService(20)...), speaker(outOfService(20)...)
	end := process{round: asks(withSpare(editor(first), never), "one"), set: retryQuickly}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindFailed)
	if first.calls() != 6 || never.calls() != 6 || !strings.HasPrefix(end.Why, "test/spare did not answer") {
		t.Errorf("%d and %d calls: %s", first.calls(), never.calls(), end.Why)
	}
	spare := speaker(slices.Concat([]answer{says("1")}, outOfService(30), []answer{says("2")})...)
	role := withSpare(editor(speaker(outOfService(6)...)), spare)
	wantEnd(t, process{round: asksTwice(role, role), set: retryQuickly}.end(t, t.TempDir()), hone.KindDone)
	if spare.calls() != 32 {
		t.Errorf("%d calls of the last model, want 32", spare.calls())
	}
}

// The budget counts each call of the substitute before it is made.
func TestBudgetOfFailover(t *testing.T) {
	first := speaker(outOfService(6)...)
	spare := speaker(says("1"))
	role := withSpare(editor(first), spare)
	role.Fallbacks[0].Price = &hone.Price{Input: 1000, Output: 1000}
	end := process{round: asks(role, "one"), set: func(r *hone.Run) { retryQuickly(r); r.Limits.Cost = 0.5 }}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindBudget)
	if spare.calls() != 0 || *end.Cost != 0 {
		t.Errorf("%d calls, $%v", spare.calls(), *end.Cost)
	}
}

// A model gets no opaque part of another one, and all of its own.
func TestOpaquePartsStayWithTheirModel(t *testing.T) {
	opaque := func(data string) model.Part {
		return model.Part{Opaque: &model.Opaque{Wire: "same", Data: json.RawMessage(data)}}
	}
	signed := func(data, args string) model.Reply {
		reply := calls("look", args)
		reply.Parts = append([]model.Part{opaque(data)}, reply.Parts...)
		return reply
	}
	first := speaker(slices.Concat([]answer{gives(signed(`"a"`, `{"n":1}`)), gives(signed(`"b"`, `{"n":2}`))}, outOfService(6))...)
	spare := speaker(gives(signed(`"c"`, `{"n":3}`)), says("done"))
	dir := t.TempDir()
	p := process{round: talks(withSpare(handy(first, echo()), spare), func(hone.Conversation) {}), set: retryQuickly}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	for _, tt := range []struct {
		who  *answers
		n    int
		want string
	}{{first, 1, `"a"`}, {first, 2, `"a" "b"`}, {spare, 0, ""}, {spare, 1, `"c"`}} {
		var got []string
		turns := 0
		for _, m := range tt.who.requests[tt.n].Messages {
			for _, part := range m.Parts {
				switch {
				case part.Opaque != nil:
					got = append(got, string(part.Opaque.Data))
				case part.Result != nil:
					turns++
				}
			}
		}
		if strings.Join(got, " ") != tt.want || tt.who == spare && turns != 2+tt.n {
			t.Errorf("request %d has the opaque parts %q and %d results; want %s", tt.n, got, turns, tt.want)
		}
	}
	p.replays(t, dir)
}

// gives answers with a reply.
func gives(reply model.Reply) answer {
	return func(context.Context, model.Request) (model.Reply, error) { return reply, nil }
}

// A kill at any point around a failover pays for no reply twice, and goes on with the
// model that was asked last.
func TestCrashAroundFailover(t *testing.T) {
	crashtest.Scene{
		Replies:         []model.Reply{calls("look", `{"n":1}`), calls("look", `{"n":2}`), text("done"), text("more")},
		Setup:           func(testing.TB, string) {},
		CompareRequests: true,
		MaxPoints:       40,
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			role := withSpare(handy(until(1, m), echo()), m)
			end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				if _, err := r.Talk(ctx, role, user("do it")); err != nil {
					return nil, err
				}
				_, err := r.Ask(ctx, role, user("one more"))
				return nil, err
			}, observe: o, set: func(r *hone.Run) { retryQuickly(r); r.Limits.Cost = 1 }}.end(t, dir)
			if n := len(of[history.FailedOver](t, events(t, dir), "failover", "")); n != 1 {
				t.Errorf("%d failovers", n)
			}
			return end
		},
	}.Run(t)
}

// A role's cache key is the same in all processes of a run, and another one for another
// role and in another run.
func TestCacheKeys(t *testing.T) {
	var keys []string
	for range 2 {
		dir := t.TempDir()
		first, second := speaker(says("1"), says("3")), speaker(says("2"))
		other := editor(second)
		other.Name = "reviewer"
		p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
			if _, err := asksTwice(editor(first), other)(ctx, r, prior); err != nil {
				return nil, err
			}
			_, err := r.Ask(ctx, editor(first), user("three"))
			return nil, err
		}}
		if !p.killedAt(t, dir, func(when string, typ journal.Type, _ journal.Phase) bool {
			return when == "before" && typ == "reply" && second.calls() > 0
		}) {
			t.Fatal("the run was not killed")
		}
		second.list = append(second.list, says("2"))
		wantEnd(t, p.end(t, dir), hone.KindDone)
		if a, b := first.requests[0].CacheKey, first.requests[1].CacheKey; a != b || len(a) != 32 {
			t.Errorf("the keys of one role are %q and %q", a, b)
		}
		keys = append(keys, first.requests[0].CacheKey, second.requests[0].CacheKey)
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 4 {
		t.Errorf("two roles in two runs have the keys %q", keys)
	}
}

// until is a model that is down once the run has so many replies.
func until(replies int, m model.Model) model.Model { return failing{replies, m} }

type failing struct {
	from int
	model.Model
}

func (f failing) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if req.Seq >= f.from {
		return model.Reply{}, down
	}
	return f.Model.Generate(ctx, req)
}
