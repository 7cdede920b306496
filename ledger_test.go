package hone_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/check"
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
		var r hone.Reserve
		must(0, e.Decode(&r))
		b.put(e.Seq, r.Tokens, r.Cost)
	case "commit":
		var c hone.Commit
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

// TestReserveStandsBeforeTheRequestLeaves, before every attempt.
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
			order = append(order, e.Type)
		}
	}}}.end(t, t.TempDir())
	want := []string{"reserve", "generate", "commit", "reserve", "generate", "commit", "reply"}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// TestCharge: what an attempt is charged, by what is known of it.
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
			res, com := of[hone.Reserve](t, all, "reserve", "")[0], of[hone.Commit](t, all, "commit", "")[0]
			tokens, cost, basis := int64(200), 100*1e-6+50*10e-6+30*0.5e-6+20*2e-6, "provider"
			if tt.inFull {
				tokens, cost, basis = res.Tokens, *res.Cost, "assumed in full"
			}
			if end.Tokens != tokens || !near(*end.Cost, cost) || com.Tokens != tokens || !near(*com.Cost, cost) || com.Basis != basis {
				t.Errorf("charged %d tokens and $%g, committed %+v, want %d and $%g (%s)", end.Tokens, *end.Cost, com, tokens, cost, basis)
			}
			sums := of[hone.Usage](t, all, "usage", "")[0]
			if sums.Tokens != tokens || !near(*sums.Cost, cost) || (sums.Known == used) == tt.inFull {
				t.Errorf("the sums afterwards: %+v", sums)
			}
		})
	}
}

// TestRejectedRequestIsFree: what was turned away by its status has used
// nothing; the same word inside a stream may come after work.
func TestRejectedRequestIsFree(t *testing.T) {
	for _, tt := range []struct {
		fault model.Error
		basis string
	}{
		{model.Error{Kind: model.RateLimited, Status: 429}, "nothing was generated"},
		{model.Error{Kind: model.Auth, Status: 401}, "nothing was generated"},
		{model.Error{Kind: model.TooLong, Status: 400}, "nothing was generated"},
		{model.Error{Kind: model.Unreachable}, "nothing was generated"},
		{model.Error{Kind: model.RateLimited}, "assumed in full"},
		{model.Error{Kind: model.Overloaded, Status: 503}, "assumed in full"},
		{model.Error{Kind: model.Cut, Status: 200}, "assumed in full"},
	} {
		dir := t.TempDir()
		role := editor(speaker(fails(&tt.fault), says("x")))
		role.Price = &hone.Price{Input: 1, Output: 1}
		process{round: asks(role, "?")}.end(t, dir)
		com := of[hone.Commit](t, events(t, dir), "commit", "")[0]
		free := tt.basis == "nothing was generated"
		if com.Basis != tt.basis || (com.Tokens == 0) != free || com.Cost == nil || (*com.Cost == 0) != free {
			t.Errorf("%v: committed %+v", &tt.fault, com)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

// TestReserveIsTheMost: a token a byte, the wire's framing and the output
// limit, at the dearest price.
func TestReserveIsTheMost(t *testing.T) {
	dir := t.TempDir()
	role := editor(speaker(says("x")))
	role.Price = &hone.Price{Input: 1, Output: 10, CacheRead: 0.5, CacheWrite: 2}
	process{round: asks(role, "a question of some length")}.end(t, dir)
	all := events(t, dir)
	res, asked := of[hone.Reserve](t, all, "reserve", "")[0], of[hone.Asked](t, all, "ask", journal.Begin)[0]
	in := res.Tokens - role.MaxOutput
	if in < asked.Bytes || asked.Bytes != int64(len(object(t, dir, asked.Request))) {
		t.Errorf("%d tokens are reserved for a request of %d bytes", in, asked.Bytes)
	}
	if want := float64(in)*2e-6 + 1000*10e-6; !near(*res.Cost, want) {
		t.Errorf("$%g are reserved, want $%g", *res.Cost, want)
	}
}

// TestOutputLimitIsLoweredToFit what is left of the budget, and nothing is
// asked where no useful reply fits.
func TestOutputLimitIsLoweredToFit(t *testing.T) {
	priced := &hone.Price{Input: 1, Output: 10}
	for _, tt := range []struct {
		name   string
		limits func(in int64) hone.Limits // in: what the request is reserved at
		price  *hone.Price
		out    int64 // the limit sent; 0: nothing is asked
		hint   string
	}{
		{"room enough", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 1000} }, nil, 1000, ""},
		{"less room", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 400} }, nil, 400, ""},
		{"the least", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 256} }, nil, 256, ""},
		{"too little", func(in int64) hone.Limits { return hone.Limits{Tokens: in + 255} }, nil, 0, "hone resume last --max-tokens "},
		{"less money", func(in int64) hone.Limits { return hone.Limits{Cost: float64(in)*1e-6 + 400.5*10e-6} }, priced, 400, ""},
		{"too little money", func(in int64) hone.Limits { return hone.Limits{Cost: float64(in)*1e-6 + 200*10e-6} }, priced, 0, "hone resume last --max-cost "},
		{"no money for the request", func(in int64) hone.Limits { return hone.Limits{Cost: float64(in) * 0.5e-6} }, &hone.Price{Input: 1}, 0, "hone resume last --max-cost "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			probe := t.TempDir()
			process{round: asks(editor(speaker(says("x"))), "?")}.end(t, probe)
			in := of[hone.Reserve](t, events(t, probe), "reserve", "")[0].Tokens - 1000
			m := speaker(says("x"))
			role := editor(m)
			role.Price = tt.price
			end := process{round: asks(role, "?"), set: func(r *hone.Run) { r.Limits = tt.limits(in) }}.end(t, t.TempDir())
			if tt.out == 0 {
				wantEnd(t, end, hone.ExitBudget, "budget")
				if !strings.HasPrefix(end.Hint, tt.hint) || m.calls() != 0 {
					t.Errorf("hint %q after %d calls", end.Hint, m.calls())
				}
				return
			}
			wantEnd(t, end, hone.ExitDone, "done")
			if got := m.requests[0].MaxOutput; got != tt.out {
				t.Errorf("the output limit is %d, want %d", got, tt.out)
			}
		})
	}
}

// TestSmallRole: a role that needs little is not refused for that.
func TestSmallRole(t *testing.T) {
	role := editor(speaker(says("x")))
	role.MaxOutput = 100
	end := process{round: asks(role, "?"), set: func(r *hone.Run) { r.Limits.Tokens = 5_000_000 }}.end(t, t.TempDir())
	wantEnd(t, end, hone.ExitDone, "done")
}

func TestRoleWithoutOutputLimit(t *testing.T) {
	m := speaker(says("x"))
	role := editor(m)
	role.MaxOutput = 0
	wantEnd(t, process{round: asks(role, "?")}.end(t, t.TempDir()), hone.ExitUsage, "usage")
	if m.calls() != 0 {
		t.Error("a model was asked without a limit")
	}
}

func TestCostLimitNeedsAPrice(t *testing.T) {
	m := speaker(says("x"))
	end := process{round: asks(editor(m), "?"), set: func(r *hone.Run) { r.Limits.Cost = 5 }}.end(t, t.TempDir())
	wantEnd(t, end, hone.ExitUsage, "usage")
	if !strings.Contains(end.Hint, `[prices."test/model"]`) || m.calls() != 0 {
		t.Errorf("hint %q after %d calls", end.Hint, m.calls())
	}
}

// TestRaisedBudgetGoesOn from where the run stopped, with what the hint says.
func TestRaisedBudgetGoesOn(t *testing.T) {
	for _, limits := range []hone.Limits{{Tokens: 1}, {Cost: 0.0001}} {
		dir := t.TempDir()
		role := editor(speaker(says("x")))
		role.Price = &hone.Price{Input: 1, Output: 10}
		p := process{round: asks(role, "?"), set: func(r *hone.Run) { r.Limits = limits }}
		end := p.end(t, dir)
		wantEnd(t, end, hone.ExitBudget, "budget")
		if limits.Tokens > 0 {
			must(fmt.Sscanf(end.Hint, "hone resume last --max-tokens %d", &limits.Tokens))
		} else {
			must(fmt.Sscanf(end.Hint, "hone resume last --max-cost %f", &limits.Cost))
		}
		wantEnd(t, p.end(t, dir), hone.ExitDone, "done")
	}
}

// TestProviderThatKeepsNoLimit is charged what it used, and ends the run.
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
			wantEnd(t, end, hone.ExitBudget, "budget")
			if end.Tokens != 1011 || m.calls() != 1 || !strings.Contains(end.Why, "1001") || !strings.Contains(end.Why, "1000") || end.Hint == "" {
				t.Errorf("%d calls, end %+v", m.calls(), end)
			}
		})
	}
}

// schedule is one random life of a run: replies, faults and kills.
type schedule struct {
	rng     *rand.Rand
	books   *books
	used    int64   // what the provider really used, told or not
	spent   float64 // and what that cost
	price   hone.Price
	limits  hone.Limits
	t       *testing.T
	reserve hone.Reserve // the newest
}

// Generate uses some of what it may, and says so or not, and answers or fails.
func (s *schedule) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	in := s.rng.Int64N(s.reserve.Tokens - req.MaxOutput + 1)
	cached := s.rng.Int64N(in + 1)
	u := model.Usage{Input: in - cached, CacheRead: cached, Output: s.rng.Int64N(req.MaxOutput + 1)}
	s.used += u.Total()
	s.spent += (float64(u.Input)*s.price.Input + float64(u.CacheRead)*s.price.CacheRead + float64(u.Output)*s.price.Output) / 1e6
	told := &u
	if s.rng.IntN(3) == 0 {
		told = nil
	}
	switch s.rng.IntN(4) {
	case 0:
		return model.Reply{}, &model.Error{Kind: model.Overloaded, Message: "busy", Usage: told}
	case 1:
		return model.Reply{}, &model.Error{Kind: model.Cut, Message: "cut", Usage: told}
	}
	return model.Reply{Parts: []model.Part{{Text: "x"}}, Finish: model.Stop, Usage: told}, nil
}

// hold checks the books after an event.
func (s *schedule) hold(e journal.Event) {
	s.books.take(e)
	if e.Type == "reserve" {
		must(0, e.Decode(&s.reserve))
	}
	const cent = 1e-9 // floating point
	tokens, cost := s.books.sum()
	if tokens > s.limits.Tokens || cost > s.limits.Cost+cent {
		s.t.Errorf("after event %d (%s): %d of %d tokens, $%g of $%g", e.Seq, e.Type, tokens, s.limits.Tokens, cost, s.limits.Cost)
	}
	if tokens < s.used || cost < s.spent-cent {
		s.t.Errorf("after event %d (%s): %d tokens and $%g are on the books, and %d and $%g were used", e.Seq, e.Type, tokens, cost, s.used, s.spent)
	}
}

// run plays processes until the run is over.
func (s *schedule) run(dir string) {
	role := hone.Role{Name: "editor", Model: s, Called: "test/model", MaxOutput: 300 + s.rng.Int64N(3000), Price: &s.price}
	round := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for i := range 3 {
			if _, err := r.Ask(ctx, role, user(strings.Repeat("?", 100*i))); err != nil {
				return nil, err
			}
		}
		return []check.Finding{wrong("never right")}, nil
	}
	p := process{round: round, set: func(r *hone.Run) {
		r.Limits = s.limits
		r.Retry.First = 1 // ns
		r.Journal.Observe(journal.Observer{After: s.hold})
	}}
	for range 20 {
		left := s.rng.IntN(60)
		dead := p.killedAt(s.t, dir, func(string, string, journal.Phase) bool {
			left--
			return left == 0
		})
		if !dead {
			break
		}
	}
	end := p.end(s.t, dir)
	tokens, cost := s.books.sum()
	if end.Tokens != tokens || !near(*end.Cost, cost) {
		s.t.Errorf("the run ended at %d tokens and $%g, and the books say %d and $%g", end.Tokens, *end.Cost, tokens, cost)
	}
}

// TestLedgerHolds, whatever the provider answers and wherever the process is
// killed: what was really used never passes what is on the books, and that
// never passes the limits.
func TestLedgerHolds(t *testing.T) {
	schedules := 60
	if os.Getenv("HONE_TEST_ALL") != "" {
		schedules = 600
	}
	seed := rand.Uint64()
	for i := range uint64(schedules) {
		rng := rand.New(rand.NewPCG(seed, i))
		s := &schedule{rng: rng, books: newBooks(), t: t, price: hone.Price{Input: rng.Float64() * 3, CacheRead: rng.Float64(), Output: rng.Float64() * 15}}
		s.limits = hone.Limits{Rounds: 1 + rng.IntN(4), Tokens: 2000 + rng.Int64N(60000), Cost: 0.005 + rng.Float64()/4}
		s.run(t.TempDir())
		if t.Failed() {
			t.Fatalf("schedule %d of seed %d", i, seed)
		}
	}
}
