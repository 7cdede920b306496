package hone_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/model"
)

// down is what an overloaded provider answers.
var down = &model.Error{Kind: model.Overloaded, Status: 503, Message: "no room"}

// retryQuickly makes the waits of a run so short that none is noticed.
func retryQuickly(r *hone.Run) { r.Retry = hone.Retry{First: 1, Most: 1} }

// asksTwice is a round that asks two questions.
func asksTwice(first, second hone.Role) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		if _, err := r.Ask(ctx, first, user("one")); err != nil {
			return nil, err
		}
		_, err := r.Ask(ctx, second, user("two"))
		return nil, err
	}
}

// G17. A model that has replied in the run is waited for, however often it fails,
// and failures that cost nothing use nothing of the budget.
func TestOutageIsWaitedOut(t *testing.T) {
	dir := t.TempDir()
	failures := slices.Repeat([]answer{fails(down)}, 30)
	m := speaker(slices.Concat([]answer{says("1")}, failures, []answer{says("2")})...)
	end := process{round: asksTwice(editor(m), editor(m)), set: func(r *hone.Run) { retryQuickly(r); r.Limits.Tokens = 5000 }}.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	all := events(t, dir)
	retries := of[history.Retried](t, all, "retry", "")
	if len(retries) != 30 || retries[0].Limit != 0 || end.Tokens != 30 {
		t.Errorf("%d waits, the first %+v; %d tokens charged, want 30 waits without a limit, and the 30 tokens of the replies", len(retries), retries[0], end.Tokens)
	}
}

// G17. That a model has replied is read from the journal: another process knows it.
func TestOutageIsWaitedOutAfterResume(t *testing.T) {
	dir := t.TempDir()
	m := speaker(slices.Concat([]answer{says("1")}, slices.Repeat([]answer{fails(down)}, 20), []answer{says("2")})...)
	p := process{round: asksTwice(editor(m), editor(m)), set: retryQuickly}
	if !p.killedAt(t, dir, on("after", "retry", "")) {
		t.Fatal("the run was not killed")
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if m.calls() != 22 {
		t.Errorf("%d calls, want 22", m.calls())
	}
}

// G17. Before a model's first reply its address may be wrong: six attempts are the
// limit, whatever other models replied. An explicit limit applies always.
func TestAttemptsAreLimited(t *testing.T) {
	replies := slices.Concat([]answer{says("1")}, slices.Repeat([]answer{fails(down)}, 50))
	first := speaker(replies...)
	other := editor(speaker(replies[1:]...))
	other.Name, other.Called = "reviewer", "test/other"
	for _, tt := range []struct {
		name     string
		second   hone.Role
		attempts int // explicit limit
		want     int
	}{
		{"only another model has replied", other, 0, 6},
		{"an explicit limit", editor(first), 3, 3},
	} {
		first.requests = nil
		dir := t.TempDir()
		end := process{round: asksTwice(editor(first), tt.second), set: func(r *hone.Run) { retryQuickly(r); r.Retry.Attempts = tt.attempts }}.end(t, dir)
		wantEnd(t, end, hone.KindFailed)
		retries := of[history.Retried](t, events(t, dir), "retry", "")
		if len(retries) != tt.want-1 || retries[0].Limit != tt.want || !strings.Contains(end.Why, fmt.Sprintf("(%d attempts)", tt.want)) {
			t.Errorf("%s: retries %+v, why %q; want %d attempts", tt.name, retries, end.Why, tt.want)
		}
	}
}

// An error that another attempt cannot fix is no outage, although the model worked
// before.
func TestKeyThatStopsWorkingIsNoOutage(t *testing.T) {
	m := speaker(says("1"), fails(down), fails(&model.Error{Kind: model.Auth, Status: 401, Message: "the key has expired"}))
	end := process{round: asksTwice(editor(m), editor(m)), set: retryQuickly}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindFailed)
	if !strings.Contains(end.Why, "the key has expired") {
		t.Errorf("why: %q", end.Why)
	}
}

// A model that has replied may ask for any delay that fits into the run's time.
func TestLongRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		limit, after time.Duration
		kind         hone.Kind
	}{
		{4 * time.Hour, 3 * time.Hour, hone.KindInterrupted}, // by the test: it is waited for
		{0, 23 * time.Hour, hone.KindInterrupted},
		{4 * time.Hour, 5 * time.Hour, hone.KindFailed},
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		m := speaker(says("1"), fails(&model.Error{Kind: model.RateLimited, Status: 429, Message: "come back later", RetryAfter: tt.after}))
		end := process{ctx: ctx, round: asksTwice(editor(m), editor(m)), set: func(r *hone.Run) { retryQuickly(r); r.Limits.Time = tt.limit },
			observe: journal.Observer{After: func(e journal.Event) {
				if e.Type == "retry" {
					cancel()
				}
			}}}.end(t, dir)
		wantEnd(t, end, tt.kind)
		retries := of[history.Retried](t, events(t, dir), "retry", "")
		if waited := len(retries) == 1 && retries[0].Wait == tt.after.Milliseconds(); waited != (tt.kind == hone.KindInterrupted) {
			t.Errorf("%v of %v: %+v", tt.after, tt.limit, retries)
		}
		if tt.kind == hone.KindFailed && end.Next.First != "wait 5h, as the provider asks" {
			t.Errorf("next: %+v", end.Next)
		}
	}
}

// G17. An outage of eight hours is waited out within the run's time, with some hundred
// attempts; when the time is used up, the run says since when there was no reply.
func TestOutageOfANight(t *testing.T) {
	for _, tt := range []struct {
		limit time.Duration
		kind  hone.Kind
	}{{10 * time.Hour, hone.KindDone}, {4 * time.Hour, hone.KindBudget}} {
		synctest.Test(t, func(t *testing.T) {
			dir, over := t.TempDir(), time.Now().Add(8*time.Hour)
			provider := func(context.Context, model.Request) (model.Reply, error) {
				if time.Now().Before(over) {
					return model.Reply{}, down
				}
				return text("2"), nil
			}
			m := speaker(slices.Concat([]answer{says("1")}, slices.Repeat([]answer{provider}, 1000))...)
			end := process{round: asksTwice(editor(m), editor(m)), set: func(r *hone.Run) { r.Limits.Time, r.Retry = tt.limit, hone.Retry{} }}.end(t, dir)
			wantEnd(t, end, tt.kind)
			retries := of[history.Retried](t, events(t, dir), "retry", "")
			if n := len(retries); n < 50 || n > 400 {
				t.Errorf("%d attempts failed", n)
			}
			for _, r := range retries {
				if r.Wait > (5 * time.Minute).Milliseconds() {
					t.Errorf("a wait of %d ms", r.Wait)
				}
			}
			if tt.kind == hone.KindBudget && !strings.HasSuffix(end.Why, "; no reply since "+over.Add(-8*time.Hour).Local().Format("15:04")+": overloaded (HTTP 503): no room") {
				t.Errorf("why: %q", end.Why)
			}
		})
	}
}

// dripping is a model that fails once, and then replies slowly.
type dripping struct{ asked int }

func (d *dripping) Generate(context.Context, model.Request) (model.Reply, error) {
	if d.asked++; d.asked == 1 {
		return model.Reply{}, down
	}
	time.Sleep(4 * time.Minute)
	return text("done"), nil
}

// An outage is over when the attempt that gets the reply begins, however long that takes.
func TestOutageEndsWithTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		end := process{round: asks(editor(&dripping{}), "one"), set: retryQuickly}.end(t, dir)
		wantEnd(t, end, hone.KindDone)
		var all []history.Event
		for _, e := range events(t, dir) {
			all = append(all, history.Decode(e))
		}
		if got := history.Outages(all, time.Now()); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	})
}
