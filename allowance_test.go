package hone_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
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
	"hone/workspace"
)

const answerNow = "The budget is nearly used up. Give your final answer now"

// thrifty is a process that holds a conversation within limits.
func thrifty(role hone.Role, limits hone.Limits, talk *hone.Conversation) process {
	limits.Rounds = 3
	return process{round: talks(role, func(got hone.Conversation) { *talk = got }), set: func(r *hone.Run) { r.Limits = limits }}
}

// unsaid returns replies without usage, so that they are charged in full.
func unsaid(replies ...model.Reply) []model.Reply {
	for i := range replies {
		replies[i].Usage = nil
	}
	return replies
}

// Before the budget is used up the model is asked for its answer, once, while
// the budget can pay for it.
func TestAnswerInTime(t *testing.T) {
	answer := text("so")
	for _, tt := range []struct {
		name   string
		limits hone.Limits
		last   *model.Reply // nil: it calls again
		ended  string
	}{
		{"tokens", hone.Limits{Tokens: 30_000}, &answer, hone.EndedAnswer},
		{"cost", hone.Limits{Cost: 0.15}, &answer, hone.EndedAnswer},
		{"both", hone.Limits{Tokens: 30_000, Cost: 9}, &answer, hone.EndedAnswer},
		{"a model that goes on", hone.Limits{Tokens: 30_000}, nil, hone.EndedBudget},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := &eager{answer: tt.last}
			role := handy(m, wordy(100))
			role.Price = &hone.Price{Input: 1, Output: 10, CacheWrite: 2}
			var talk hone.Conversation
			end := thrifty(role, tt.limits, &talk).end(t, dir)
			wantEnd(t, end, hone.KindDone)
			n := len(m.requests)
			if talk.Ended != tt.ended || talk.Turns != n || n < 4 || len(talk.Calls) != n-1 {
				t.Errorf("ended by %q after %d turns in %d requests with %d calls", talk.Ended, talk.Turns, n, len(talk.Calls))
			}
			for i, req := range m.requests {
				if last := i == n-1; strings.Contains(m.lastText(i), answerNow) != last || !last && req.MaxOutput != 1000 || req.MaxOutput < 256 {
					t.Errorf("request %d of %d says %q, with %d tokens for the reply", i+1, n, m.lastText(i), req.MaxOutput)
				}
			}
			within(t, end, tt.limits)
			holdRequests(t, dir)
			thrifty(role, tt.limits, &talk).replays(t, dir)
		})
	}
}

// within checks that a run kept its limits.
func within(t testing.TB, end hone.End, limits hone.Limits) {
	t.Helper()
	if limits.Tokens > 0 && end.Tokens > limits.Tokens || limits.Cost > 0 && *end.Cost > limits.Cost {
		t.Errorf("%d tokens and $%v are on the ledger of a run with the limits %+v", end.Tokens, *end.Cost, limits)
	}
}

// eager is a model that calls tools until it is asked for its answer, and
// reports no usage.
type eager struct {
	actor
	answer *model.Reply
}

func (e *eager) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	e.requests = append(e.requests, req)
	if e.answer != nil && strings.Contains(e.lastText(len(e.requests)-1), "final answer now") {
		return *e.answer, nil
	}
	return unsaid(calls("look", fmt.Sprintf(`{"n":%d}`, len(e.requests))))[0], nil
}

// A limit that is far away changes nothing that is sent.
func TestNoDanger(t *testing.T) {
	var plainly, limited []model.Request
	for _, one := range []struct {
		limits hone.Limits
		into   *[]model.Request
	}{{hone.Limits{}, &plainly}, {hone.Limits{Tokens: 5_000_000, Cost: 50}, &limited}} {
		m := &actor{replies: append(looking(4, 2), text("so"))}
		role := handy(m, wordy(2000))
		role.Price = &hone.Price{Input: 1, Output: 10}
		var talk hone.Conversation
		wantEnd(t, thrifty(role, one.limits, &talk).end(t, t.TempDir()), hone.KindDone)
		*one.into = m.requests
	}
	// Two runs have different cache keys, and each counts what it receives.
	if diff := cmp.Diff(plainly, limited, cmpopts.IgnoreFields(model.Request{}, "CacheKey", "Received")); diff != "" || len(plainly) != 3 {
		t.Errorf("%d requests without limits and with (-without +with):\n%s", len(plainly), diff)
	}
}

// A conversation that could only be ended does not start, and the advice to the
// user lets it start.
func TestNotBegun(t *testing.T) {
	for _, limits := range []hone.Limits{{Tokens: 3000}, {Cost: 0.01}} {
		dir := t.TempDir()
		m := &actor{replies: append(looking(1, 1), text("so"))}
		role := handy(m, wordy(100))
		role.Price = &hone.Price{Input: 1, Output: 10}
		var talk hone.Conversation
		end := thrifty(role, limits, &talk).end(t, dir)
		wantEnd(t, end, hone.KindBudget)
		if len(m.requests) != 0 || !strings.Contains(end.Why, "the next turn may ") {
			t.Errorf("%d requests; %s", len(m.requests), end.Why)
		}
		if limits.Tokens > 0 {
			must(fmt.Sscan(flag(end.Next, "max-tokens"), &limits.Tokens))
		} else {
			must(fmt.Sscan(flag(end.Next, "max-cost"), &limits.Cost))
		}
		wantEnd(t, thrifty(role, limits, &talk).end(t, dir), hone.KindDone)
		if len(talk.Calls) != 1 || strings.Contains(m.lastText(0), answerNow) {
			t.Errorf("%d calls; the first request says %q", len(talk.Calls), m.lastText(0))
		}
		thrifty(role, limits, &talk).replays(t, dir)
	}
}

// A role without tools answers at once, as long as the budget pays for it.
func TestWithoutTools(t *testing.T) {
	m := &actor{replies: []model.Reply{text("so")}}
	var talk hone.Conversation
	wantEnd(t, thrifty(editor(m), hone.Limits{Tokens: 3000}, &talk).end(t, t.TempDir()), hone.KindDone)
	if m.lastText(0) != "do it" || m.requests[0].MaxOutput != 1000 {
		t.Errorf("the request says %q, with %d tokens for the reply", m.lastText(0), m.requests[0].MaxOutput)
	}
}

// If tool output leaves no budget for the answer, the oldest output is omitted.
func TestOutputGivesWayToTheAnswer(t *testing.T) {
	dir := t.TempDir()
	m := &actor{replies: append(unsaid(looking(2, 2)...), text("so"))}
	var talk hone.Conversation
	p := thrifty(handy(m, wordy(12_000)), hone.Limits{Tokens: 20_000}, &talk)
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	within(t, end, hone.Limits{Tokens: 20_000})
	results := m.results(1)
	if len(m.requests) != 2 || len(results) != 2 || !strings.HasPrefix(results[0], "[12000 bytes of output omitted") || len(results[1]) != 12_000 {
		t.Errorf("%d requests, the last with results %.60q", len(m.requests), results)
	}
	p.replays(t, dir)
}

// If a lost call took the budget of the answer the run stops there. With a
// larger budget it continues as if nothing had happened.
func TestLostCallInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	cut := fails(&model.Error{Kind: model.Cut, Message: "cut"})
	look := func(context.Context, model.Request) (model.Reply, error) { return calls("look", "{}"), nil }
	m := speaker(look, cut, cut, cut, cut, cut, cut, says("so"))
	limits := hone.Limits{Tokens: 13_000}
	var talk hone.Conversation
	end := thrifty(handy(m, wordy(100)), limits, &talk).end(t, dir)
	wantEnd(t, end, hone.KindBudget)
	within(t, end, limits)
	if end.Rounds != 1 || m.calls() < 4 || m.calls() > 6 {
		t.Errorf("%d calls, %+v", m.calls(), end)
	}
	for m.calls() < 7 {
		m.requests = append(m.requests, model.Request{})
	}
	p := thrifty(handy(m, wordy(100)), hone.Limits{Tokens: 1e6}, &talk)
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if len(talk.Calls) != 1 || talk.Reply.Text() != "so" || strings.Contains(string(journalOf(t, dir)), "nearly used up") {
		t.Errorf("what came of it: %+v", talk)
	}
	holdRequests(t, dir)
	p.replays(t, dir)
}

// Unless a call is lost, a conversation that has started is always asked for
// its answer, whatever replies and tools return. HONE_TEST_SEED repeats one
// case.
func TestAnswerIsAlwaysPaid(t *testing.T) {
	began, talks := 0, 60
	if testing.Short() {
		talks = 12
	}
	for n := range talks {
		seed := rand.Uint64()
		if again := os.Getenv("HONE_TEST_SEED"); again != "" {
			seed = must(strconv.ParseUint(again, 10, 64))
		}
		w := &wasteful{rng: rand.New(rand.NewPCG(seed, 1))}
		role := handy(w, doing("work", w.work), looker("look", w.work))
		role.MaxOutput = 100 + w.rng.Int64N(8000)
		role.Price = &hone.Price{Input: w.rng.Float64() * 5, Output: w.rng.Float64() * 20, CacheWrite: w.rng.Float64() * 6}
		role.Bounds = hone.Bounds{Turns: 2 + w.rng.IntN(20)}
		limits := hone.Limits{Tokens: 8000 + w.rng.Int64N(300_000)}
		if n%2 == 0 {
			limits = hone.Limits{Cost: 0.01 + w.rng.Float64()}
		}
		var talk hone.Conversation
		end := thrifty(role, limits, &talk).end(t, t.TempDir())
		within(t, end, limits)
		if w.asked == 0 {
			wantEnd(t, end, hone.KindBudget)
			continue
		}
		began++
		if end.Kind != hone.KindDone || talk.Ended == "" {
			t.Fatalf("after %d requests: %s (HONE_TEST_SEED=%d)", w.asked, end.Why, seed)
		}
	}
	if began < talks/3 {
		t.Errorf("%d of %d conversations began", began, talks)
	}
}

// wasteful is a model that uses as many tokens as it may, and never answers.
type wasteful struct {
	rng   *rand.Rand
	asked int
}

func (w *wasteful) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	w.asked++
	var pairs []string
	room := int(req.MaxOutput) * 4
	for range 1 + w.rng.IntN(4) {
		size := w.rng.IntN(max(1, room/2))
		if room -= size + 120; room < 0 {
			break
		}
		pairs = append(pairs, []string{"work", "look"}[w.rng.IntN(2)], fmt.Sprintf(`{"n":"%d %s"}`, w.asked, strings.Repeat("x", size)))
	}
	if pairs == nil {
		return model.Reply{Finish: model.Length}, nil
	}
	reply := calls(pairs...)
	reply.Usage = nil
	if w.rng.IntN(2) == 0 {
		reply.Usage = &model.Usage{Input: w.rng.Int64N(contents(req) + 1024), Output: w.rng.Int64N(req.MaxOutput + 1)}
	}
	return reply, nil
}

func (w *wasteful) work(context.Context, tool.Input) (tool.Result, error) {
	return tool.Result{Text: strings.Repeat("y", 20_000)}, nil
}

// spent is a reply that used so many tokens.
func spent(tokens int64, reply model.Reply) model.Reply {
	reply.Usage = &model.Usage{Input: tokens}
	return reply
}

// refunded raises a limit by the cost of the lost calls, so that a killed run
// has as much left as an undisturbed one.
func refunded(r *hone.Run, tokens int64) int64 {
	var pending int64
	for _, e := range r.Journal.Events() {
		var c history.Commit
		switch {
		case e.Type == "reserve" || e.Type == "end":
			tokens += pending
			pending = 0
		case e.Type == "commit" && e.Decode(&c) == nil && c.Tokens > 10_000:
			pending = c.Tokens
		case e.Type == "reply":
			pending = 0
		}
	}
	return tokens + pending
}

// Whether the budget is short is decided once for each turn, whatever a lost
// call has cost since.
func TestAnswerInTimeAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Setup:           func(testing.TB, string) {},
		Replies:         []model.Reply{calls("look", `{"n":1}`), spent(28_500, calls("look", `{"n":2}`)), text("so")},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			var talk hone.Conversation
			p := thrifty(handy(m, wordy(100)), hone.Limits{}, &talk)
			var limits hone.Limits
			p.set = func(r *hone.Run) {
				limits = hone.Limits{Rounds: 3, Tokens: refunded(r, 40_000)}
				r.Limits = limits
			}
			p.observe = o
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindDone)
			within(t, end, limits)
			if n := strings.Count(string(journalOf(t, dir)), `"last":true`); n != 1 {
				t.Errorf("the budget was said to be nearly used up %d times", n)
			}
			p.replays(t, dir)
			return end
		},
	}.Run(t)
}

// reviewed is a process whose rounds do work and have it reviewed. The check
// wants "works" in the file a, which the first round writes.
func reviewed(dir string, m model.Model, limits hone.Limits) process {
	return process{
		round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			worker := handy(m, workshop(dir, r)...)
			if _, err := r.Talk(ctx, worker, user("do it")); err != nil {
				return nil, err
			}
			reviewer := handy(m, echo())
			reviewer.Name = "reviewer"
			_, err := r.Talk(ctx, reviewer, user("is it right?"))
			if hone.OutOfBudget(err) {
				return []check.Finding{wrong("nobody has reviewed it")}, err
			}
			return nil, err
		},
		set: func(r *hone.Run) {
			r.Limits = limits
			r.Limits.Tokens = refunded(r, limits.Tokens)
			r.Check = func(context.Context) ([]check.Finding, error) {
				if crashtest.ReadFile(dir, "a") == "works" {
					return nil, nil
				}
				return []check.Finding{wrong("a does not work")}, nil
			}
		},
	}
}

// work writes a, and leaves nothing for a review.
func working(content string) []model.Reply {
	return []model.Reply{spent(30_000, calls("write", fmt.Sprintf(`{"a":%q}`, content))), text("done")}
}

// If the budget does not pay for the rest of a round, the work that is done
// stays.
func TestRoundWithoutItsEnd(t *testing.T) {
	for _, tt := range []struct {
		name, content, check string
		rounds               int
	}{
		{"the check passes", "works", "; the check passes, but the round is incomplete", 3},
		{"the check fails", "breaks", "", 3},
		{"in the last round", "works", "; the check passes", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			must(0, os.WriteFile(dir+".ran", nil, 0o644))
			m := &actor{replies: append(working(tt.content), calls("read", `"a"`), calls("write", `{"a":"works"}`), text("done"), text("right"))}
			limits := hone.Limits{Rounds: tt.rounds, Tokens: 40_000}
			p := reviewed(dir, m, limits)
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindBudget)
			within(t, end, limits)
			left := []string{"nobody has reviewed it"}
			if tt.check == "" {
				left = append(left, "a does not work")
			}
			if end.Rounds != 1 || !strings.Contains(end.Why, " of the limit of ") || !strings.Contains(end.Why, tt.check) || tt.check == "" && strings.Contains(end.Why, "passes") {
				t.Errorf("%+v", end)
			}
			if diff := cmp.Diff(left, texts(end.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			p.replays(t, dir)
			must(fmt.Sscan(flag(end.Next, "max-tokens"), &limits.Tokens))
			tt.rounds, _ = strconv.Atoi(flag(end.Next, "rounds"))
			if (tt.rounds > 0) != (limits.Rounds == 1) {
				t.Fatalf("next: %+v", end.Next)
			}
			limits.Rounds = max(tt.rounds, limits.Rounds)
			wantEnd(t, reviewed(dir, m, limits).end(t, dir), hone.KindDone)
			if len(m.requests) != 6 || len(of[hone.State](t, events(t, dir), "round", "")) != 2 {
				t.Errorf("%d requests", len(m.requests))
			}
			p.replays(t, dir)
		})
	}
}

// Such a round ends in the same way wherever it is killed, and can be replayed.
func TestRoundWithoutItsEndAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Setup:           func(_ testing.TB, dir string) { must(0, os.WriteFile(dir+".ran", nil, 0o644)) },
		Replies:         working("works"),
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			p := reviewed(dir, m, hone.Limits{Rounds: 3, Tokens: 40_000})
			p.observe = o
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindBudget)
			p.replays(t, dir)
			return end
		},
	}.Run(t)
}

// A call, or an agent's session that already changed files, may turn out to be
// unpayable in the middle. Such a round can be replayed too.
func TestRoundWithoutALostCall(t *testing.T) {
	lost := fails(&model.Error{Kind: model.Cut, Message: "cut"})
	for name, tt := range map[string]struct {
		reviewer func(dir string) hone.Role
		tokens   int64
	}{
		"a call": {func(string) hone.Role { return handy(speaker(slices.Repeat([]answer{lost}, 9)...), echo()) }, 13_000},
		"a session": {func(dir string) hone.Role {
			return agent(func(context.Context, model.Request) (model.Reply, error) {
				crashtest.WriteFile(dir, "b", "half a review")
				return model.Reply{}, &hone.Stop{Kind: hone.KindBudget, Why: "all of the limit of tokens is used"}
			})
		}, 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := process{
				round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
					if _, err := r.Apply(ctx, change("a", "works"), nil); err != nil {
						return nil, err
					}
					ask, role := r.Talk, tt.reviewer(dir)
					if role.Agent {
						ask = r.Delegate
					}
					_, err := ask(ctx, role, user("is it right?"))
					return []check.Finding{wrong("nobody has reviewed it")}, err
				},
				set: func(r *hone.Run) { r.Limits.Tokens, r.Retry.Attempts = tt.tokens, 9 },
			}
			for life := 1; life < 3; life++ {
				end := p.end(t, dir)
				wantEnd(t, end, hone.KindBudget)
				if end.Rounds != life || len(end.Findings) != 1 || !strings.Contains(end.Why, " of the limit of ") {
					t.Errorf("life %d: %+v", life, end)
				}
				if done := p.replays(t, dir); done.Rounds != life || done.Open {
					t.Errorf("gone through again after life %d: %+v", life, done)
				}
			}
		})
	}
}

// OutOfBudget is true only of budget stops.
func TestOutOfBudget(t *testing.T) {
	for _, err := range []error{nil, context.Canceled, &hone.Stop{Kind: hone.KindContext}, &model.Error{Kind: model.RateLimited}} {
		if hone.OutOfBudget(err) {
			t.Errorf("%v", err)
		}
	}
	if !hone.OutOfBudget(fmt.Errorf("review: %w", &hone.Stop{Kind: hone.KindBudget})) {
		t.Error("a budget that is used up")
	}
}

func change(path, content string) workspace.Change {
	return workspace.Change{Edits: []workspace.Edit{edit(path, content)}}
}
