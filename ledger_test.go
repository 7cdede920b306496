package hone_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/model"
)

// books are a test's own fold of reserves and commits.
type books struct {
	tokens map[int64]int64 // by the reserve's sequence number
	cost   map[int64]float64
}

func newBooks() *books { return &books{map[int64]int64{}, map[int64]float64{}} }

func (b *books) take(e journal.Event) {
	switch e.Type {
	case "reserve":
		var r history.Reserve
		must(0, e.Decode(&r))
		b.put(e.Seq, r.Tokens, r.Cost)
	case "commit":
		var c history.Commit
		must(0, e.Decode(&c))
		b.put(c.Reserve, c.Tokens, c.Cost)
	}
}

func (b *books) put(seq, tokens int64, cost *float64) {
	b.tokens[seq] = tokens
	if cost != nil {
		b.cost[seq] = *cost
	}
}

func (b *books) sum() (tokens int64, cost float64) {
	for seq, n := range b.tokens {
		tokens += n
		cost += b.cost[seq]
	}
	return tokens, cost
}

// The reserve of an attempt is recorded before its request is sent.
func TestReserveStandsBeforeTheRequestLeaves(t *testing.T) {
	var order []string
	enter := func(a answer) answer {
		return func(ctx context.Context, req model.Request) (model.Reply, error) {
			order = append(order, "generate")
			return a(ctx, req)
		}
	}
	m := speaker(enter(fails(&model.Error{Kind: model.Silent, Message: "silent"})), enter(says("hello")))
	process{round: asks(editor(m), "?"), observe: journal.Observer{Before: func(n journal.Entry) {
		if n.Type == "reserve" && !n.Sync {
			t.Error("a reserve is not durable when the request leaves")
		}
	}, After: func(e journal.Event) {
		if e.Type == "reserve" || e.Type == "commit" || e.Type == "reply" {
			order = append(order, string(e.Type))
		}
	}}}.end(t, t.TempDir())
	want := []string{"reserve", "generate", "commit", "reserve", "generate", "commit", "reply"}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// What an attempt is charged, depending on what is known about it.
func TestCharge(t *testing.T) {
	used := model.Usage{Input: 100, Output: 50, Reasoning: 20, CacheRead: 30, CacheWrite: 20}
	price := &hone.Price{Input: 1, Output: 10, CacheRead: 0.5, CacheWrite: 2}
	reply := text("x")
	for _, tt := range []struct {
		name   string
		usage  *model.Usage
		fault  error
		inFull bool
	}{
		{"a reply with its usage", &used, nil, false},
		{"a reply without", nil, nil, true},
		{"a fault with its usage", nil, &model.Error{Kind: model.Invalid, Message: "m", Usage: &used}, false},
		{"a fault without", nil, &model.Error{Kind: model.Invalid, Message: "m"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			role := editor(speaker(func(context.Context, model.Request) (model.Reply, error) {
				reply.Usage = tt.usage
				return reply, tt.fault
			}))
			role.Price = price
			end := process{round: asks(role, "?")}.end(t, dir)
			all := events(t, dir)
			res, com := of[history.Reserve](t, all, "reserve", "")[0], of[history.Commit](t, all, "commit", "")[0]
			tokens, cost, basis := int64(200), 100*1e-6+50*10e-6+30*0.5e-6+20*2e-6, "provider"
			if tt.inFull {
				tokens, cost, basis = res.Tokens, *res.Cost, "assumed in full"
			}
			if end.Tokens != tokens || !near(*end.Cost, cost) || com.Tokens != tokens || !near(*com.Cost, cost) || com.Basis != basis {
				t.Errorf("charged %d tokens and $%g, committed %+v, want %d and $%g (%s)", end.Tokens, *end.Cost, com, tokens, cost, basis)
			}
			sums := of[history.Usage](t, all, "usage", "")[0]
			if sums.Tokens != tokens || !near(*sums.Cost, cost) || (sums.Known == used) == tt.inFull {
				t.Errorf("the sums afterwards: %+v", sums)
			}
		})
	}
}

// A request that was rejected by its status used nothing. The same error inside
// a stream may come after work.
func TestRejectedRequestIsFree(t *testing.T) {
	for _, tt := range []struct {
		fault model.Error
		basis string
	}{
		{model.Error{Kind: model.RateLimited, Status: 429}, "nothing was generated"},
		{model.Error{Kind: model.Auth, Status: 401}, "nothing was generated"},
		{model.Error{Kind: model.TooLong, Status: 400}, "nothing was generated"},
		{model.Error{Kind: model.Unreachable}, "nothing was generated"},
		{model.Error{Kind: model.Overloaded, Status: 503}, "nothing was generated"},
		{model.Error{Kind: model.Overloaded, Status: 529}, "nothing was generated"},
		{model.Error{Kind: model.Overloaded, Status: 409}, "nothing was generated"},
		{model.Error{Kind: model.RateLimited}, "assumed in full"},
		{model.Error{Kind: model.Overloaded, Status: 408}, "assumed in full"},
		{model.Error{Kind: model.Overloaded, Status: 499}, "assumed in full"},
		{model.Error{Kind: model.Overloaded, Status: 500}, "assumed in full"},
		{model.Error{Kind: model.Overloaded, Status: 503, Streamed: true}, "assumed in full"},
		{model.Error{Kind: model.Cut, Status: 200}, "assumed in full"},
	} {
		dir := t.TempDir()
		role := editor(speaker(fails(&tt.fault), says("x")))
		role.Price = &hone.Price{Input: 1, Output: 1}
		process{round: asks(role, "?")}.end(t, dir)
		com := of[history.Commit](t, events(t, dir), "commit", "")[0]
		free := tt.basis == "nothing was generated"
		if com.Basis != tt.basis || (com.Tokens == 0) != free || com.Cost == nil || (*com.Cost == 0) != free {
			t.Errorf("%v: committed %+v", &tt.fault, com)
		}
	}
}

// If a reply breaks off, the reported input counts, and the reported output is
// a minimum. Impossible numbers are ignored.
func TestChargeOfWhatIsNotFinal(t *testing.T) {
	price := &hone.Price{Input: 1, Output: 10, CacheRead: 0.5}
	soFar := &model.Usage{Input: 100, CacheRead: 30, Output: 50}
	for _, tt := range []struct {
		name   string
		usage  *model.Usage
		fault  error
		tokens int64 // charged; 0: in full
		cost   float64
	}{
		{"cut", nil, &model.Error{Kind: model.Cut, Usage: soFar}, 130 + 1000, 100e-6 + 30*0.5e-6 + 1000*10e-6},
		{"an error in the stream", nil, &model.Error{Kind: model.Overloaded, Usage: soFar}, 130 + 1000, 100e-6 + 30*0.5e-6 + 1000*10e-6},
		{"cut before anything was said of the request", nil, &model.Error{Kind: model.Cut, Usage: &model.Usage{Output: 1}}, 0, 0},
		{"a reply that took nothing", &model.Usage{}, nil, 0, 0},
		{"less than nothing", &model.Usage{Input: -1000, Output: 5}, nil, 0, 0},
		{"more than there is", &model.Usage{Input: 1 << 62, Output: 1 << 62, CacheRead: 1 << 62}, nil, 0, 0},
		{"less than nothing, with a fault", nil, &model.Error{Kind: model.Invalid, Usage: &model.Usage{Output: -1}}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			role := editor(speaker(func(context.Context, model.Request) (model.Reply, error) {
				reply := text("x")
				reply.Usage = tt.usage
				return reply, tt.fault
			}, says("x")))
			role.Price = price
			process{round: asks(role, "?")}.end(t, dir)
			all := events(t, dir)
			res, com := of[history.Reserve](t, all, "reserve", "")[0], of[history.Commit](t, all, "commit", "")[0]
			if tt.tokens == 0 {
				tt.tokens, tt.cost = res.Tokens, *res.Cost
			}
			if com.Tokens != tt.tokens || !near(*com.Cost, tt.cost) || com.Usage != nil || com.Basis != "assumed in full" {
				t.Errorf("committed %+v ($%g), want %d tokens and $%g", com, *com.Cost, tt.tokens, tt.cost)
			}
		})
	}
}

// The report of an agent whose calls are forwarded does not count, even if none
// could be paid for.
func TestAgentsWordBesideTheLedger(t *testing.T) {
	for name, tt := range map[string]struct {
		asks   bool
		says   model.Usage
		tokens int64
	}{
		"all refused": {true, model.Usage{Input: 5000}, 0},
		"no requests": {false, model.Usage{Input: 5000}, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			round := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				_, err := r.Delegate(ctx, agent(func(context.Context, model.Request) (model.Reply, error) {
					if tt.asks {
						if _, _, err := r.Account().Reserve("builder", hone.Candidate{Called: "gemini/x", MaxOutput: 1000}, 100_000); err == nil {
							t.Error("the call was let pass")
						}
					}
					reply := text("worked")
					reply.Usage = &tt.says
					return reply, nil
				}), user("do it"))
				return nil, err
			}
			end := process{round: round, set: func(r *hone.Run) { r.Limits.Tokens = 10_000 }}.end(t, t.TempDir())
			if wantEnd(t, end, hone.KindDone); end.Tokens != tt.tokens {
				t.Errorf("%d tokens are charged, want %d", end.Tokens, tt.tokens)
			}
		})
	}
}

func near(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

// A reserve counts one token for each byte, the framing and the output limit,
// at the highest price.
func TestReserveIsTheMost(t *testing.T) {
	dir := t.TempDir()
	role := editor(speaker(says("x")))
	role.Price = &hone.Price{Input: 1, Output: 10, CacheRead: 0.5, CacheWrite: 2}
	process{round: asks(role, "a question of some length")}.end(t, dir)
	all := events(t, dir)
	res, asked := of[history.Reserve](t, all, "reserve", "")[0], of[history.Asked](t, all, "ask", journal.Begin)[0]
	in := res.Tokens - role.MaxOutput
	if in < asked.Bytes || asked.Bytes != int64(len(object(t, dir, asked.Request))) {
		t.Errorf("%d tokens are reserved for a request of %d bytes", in, asked.Bytes)
	}
	if want := float64(in)*2e-6 + 1000*10e-6; !near(*res.Cost, want) {
		t.Errorf("$%g are reserved, want $%g", *res.Cost, want)
	}
}

// The output limit is lowered to what the budget pays for. If no useful reply
// fits, no request is sent.
func TestOutputLimitIsLoweredToFit(t *testing.T) {
	priced := &hone.Price{Input: 1, Output: 10}
	for _, tt := range []struct {
		name   string
		limits func(in int64) hone.Limits // in: what the request is reserved at
		price  *hone.Price
		out    int64  // the limit sent; 0: nothing is asked
		flag   string // that raises the limit
	}{
		{"room enough", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 1000} }, nil, 1000, ""},
		{"less room", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 400} }, nil, 400, ""},
		{"the least", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 256} }, nil, 256, ""},
		{"too little", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 255} }, nil, 0, "max-tokens"},
		{"less money", func(in int64) hone.Limits { return hone.Limits{Cost: float64(in)*1e-6 + 400.5*10e-6} }, priced, 400, ""},
		{"next to no price", func(in int64) hone.Limits { return hone.Limits{Cost: 100} }, &hone.Price{Input: 1, Output: 1e-15}, 1000, ""},
		{"too little money", func(in int64) hone.Limits { return hone.Limits{Cost: float64(in)*1e-6 + 200*10e-6} }, priced, 0, "max-cost"},
		{"no money for the request", func(in int64) hone.Limits { return hone.Limits{Cost: float64(in) * 0.5e-6} }, &hone.Price{Input: 1}, 0, "max-cost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			probe := t.TempDir()
			process{round: asks(editor(speaker(says("x"))), "?")}.end(t, probe)
			in := of[history.Reserve](t, events(t, probe), "reserve", "")[0].Tokens - 1000
			m := speaker(says("x"))
			role := editor(m)
			role.Price = tt.price
			end := process{round: asks(role, "?"), set: func(r *hone.Run) { r.Limits = tt.limits(in) }}.end(t, t.TempDir())
			if tt.out == 0 {
				wantEnd(t, end, hone.KindBudget)
				if flag(end.Next, tt.flag) == "" || m.calls() != 0 {
					t.Errorf("next %+v after %d calls", end.Next, m.calls())
				}
				return
			}
			wantEnd(t, end, hone.KindDone)
			if got := m.requests[0].MaxOutput; got != tt.out {
				t.Errorf("the output limit is %d, want %d", got, tt.out)
			}
		})
	}
}

// A role that needs little is not refused for that.
func TestSmallRole(t *testing.T) {
	role := editor(speaker(says("x")))
	role.MaxOutput = 100
	end := process{round: asks(role, "?"), set: func(r *hone.Run) { r.Limits.Tokens = 5_000_000 }}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindDone)
}

func TestRoleWithoutOutputLimit(t *testing.T) {
	m := speaker(says("x"))
	role := editor(m)
	role.MaxOutput = 0
	wantEnd(t, process{round: asks(role, "?")}.end(t, t.TempDir()), hone.KindUsage)
	if m.calls() != 0 {
		t.Error("a model was asked without a limit")
	}
}

func TestCostLimitNeedsAPrice(t *testing.T) {
	m := speaker(says("x"))
	end := process{round: asks(editor(m), "?"), set: func(r *hone.Run) { r.Limits.Cost = 5 }}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindUsage)
	if !strings.Contains(end.Next.First, `[prices."test/model"]`) || m.calls() != 0 {
		t.Errorf("next %+v after %d calls", end.Next, m.calls())
	}
}

// With the advice to the user, the run continues from where it stopped.
func TestRaisedBudgetGoesOn(t *testing.T) {
	for _, limits := range []hone.Limits{{Tokens: 1}, {Cost: 0.0001}} {
		dir := t.TempDir()
		role := editor(speaker(says("x")))
		role.Price = &hone.Price{Input: 1, Output: 10}
		p := process{round: asks(role, "?"), set: func(r *hone.Run) { r.Limits = limits }}
		end := p.end(t, dir)
		wantEnd(t, end, hone.KindBudget)
		if limits.Tokens > 0 {
			must(fmt.Sscan(flag(end.Next, "max-tokens"), &limits.Tokens))
		} else {
			must(fmt.Sscan(flag(end.Next, "max-cost"), &limits.Cost))
		}
		wantEnd(t, p.end(t, dir), hone.KindDone)
	}
}

// A provider that ignores the output limit is charged for what it used, and the
// run ends.
func TestProviderThatKeepsNoLimit(t *testing.T) {
	used := &model.Usage{Input: 10, Output: 1001}
	for name, a := range map[string]answer{
		"a reply": func(context.Context, model.Request) (model.Reply, error) {
			return model.Reply{Parts: []model.Part{{Text: "x"}}, Finish: model.Stop, Usage: used}, nil
		},
		"a fault": fails(&model.Error{Kind: model.Cut, Message: "cut", Usage: used}),
	} {
		t.Run(name, func(t *testing.T) {
			m := speaker(a, says("never asked"))
			end := process{round: asks(editor(m), "?")}.end(t, t.TempDir())
			wantEnd(t, end, hone.KindBudget)
			if end.Tokens != 1011 || m.calls() != 1 || !strings.Contains(end.Why, "1001") || !strings.Contains(end.Why, "1000") || end.Next.IsZero() {
				t.Errorf("%d calls, end %+v", m.calls(), end)
			}
		})
	}
}
