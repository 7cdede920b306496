package hone_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hone"
	"hone/check"
	"hone/journal"
	"hone/model"
)

// schedule is one random run: roles with their own prices, faults, crashes, and
// limits that are raised. It keeps two independent accounts: what the journal
// says, and what the providers read and wrote.
type schedule struct {
	t     *testing.T
	seed  uint64
	n     uint64 // which schedule of the seed
	roles []hone.Role

	mu     sync.Mutex
	rng    *rand.Rand
	books  *books
	limits hone.Limits
	used   account // by the providers' own account
	beyond account // of used: beyond the output limit that was sent
	breaks bool    // one of the providers will keep no limit, once
	broke  bool    // in this life
	left   int     // points of this life until it is killed; negative: it is not
	dead   bool
}

// account is tokens and their cost.
type account struct {
	tokens int64
	cost   float64
}

// Actual use never exceeds the ledger, and the ledger never exceeds the limits, for
// all answers of providers, with several roles, and after kills at any point. Only a
// provider that ignores the output limit exceeds them, by one
// call. HONE_TEST_SEED and HONE_TEST_SCHEDULE repeat one schedule, except for
// the order of an agent's concurrent calls.
func TestLedgerHolds(t *testing.T) {
	schedules := uint64(24)
	if os.Getenv("HONE_TEST_ALL") != "" {
		schedules = 400
	} else if testing.Short() {
		schedules = 4
	}
	seed, first := rand.Uint64(), uint64(0)
	if again := os.Getenv("HONE_TEST_SEED"); again != "" {
		seed = must(strconv.ParseUint(again, 10, 64))
		first = must(strconv.ParseUint(os.Getenv("HONE_TEST_SCHEDULE"), 10, 64))
		schedules = first + 1
	}
	var all tally
	t.Run("schedule", func(t *testing.T) {
		for n := first; n < schedules; n++ {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				all.add(newSchedule(t, seed, n).run(t.TempDir()))
				if t.Failed() {
					t.Fatalf("HONE_TEST_SEED=%d HONE_TEST_SCHEDULE=%d plays it again", seed, n)
				}
			})
		}
	})
	t.Logf("seed %d: %v", seed, all.of)
	for what, least := range map[string]int{"killed": 20, "rounds": 5, "budget": 10, "failed": 10, "no limit kept": 1, "asked": 300} {
		if all.of[what] < least && first == 0 && schedules > 20 {
			t.Errorf("the schedules of seed %d do not show what they are for: %v", seed, all.of)
		}
	}
}

// tally counts how often something happened.
type tally struct {
	mu sync.Mutex
	of map[string]int
}

func (a *tally) add(of map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]int{}
	}
	for what, n := range of {
		a.of[what] += n
	}
}

func newSchedule(t *testing.T, seed, n uint64) *schedule {
	rng := rand.New(rand.NewPCG(seed, n))
	s := &schedule{t: t, seed: seed, n: n, rng: rng, books: newBooks(), breaks: n%4 == 0}
	s.limits = hone.Limits{Rounds: 1 + rng.IntN(4), Tokens: 4000 + rng.Int64N(120_000), Cost: 0.005 + rng.Float64()/2}
	switch rng.IntN(6) {
	case 0:
		s.limits.Tokens = 0
	case 1:
		s.limits.Cost = 0
	}
	for _, name := range []string{"editor", "worker", "reviewer", "agent"} {
		role := hone.Role{Name: name, Called: "test/" + name, System: "You are the " + name + ".", MaxOutput: 200 + rng.Int64N(4000),
			Price:  &hone.Price{Input: rng.Float64() * 3, Output: rng.Float64() * 15, CacheRead: rng.Float64(), CacheWrite: rng.Float64() * 4},
			Bounds: hone.Bounds{Turns: 1 + rng.IntN(6), Calls: 1 + rng.IntN(12)}}
		switch rng.IntN(8) {
		case 0:
			role.Price.Output = 1e-12 // as good as nothing
		case 1:
			role.Price.Input, role.Price.CacheRead = 0, 0
		case 2:
			if s.limits.Cost == 0 {
				role.Price = nil
			}
		}
		s.roles = append(s.roles, role)
	}
	return s
}

// lives is how many processes play a schedule.
const lives = 9

// run plays processes, of which only the last is not killed, and returns how
// they ended.
func (s *schedule) run(dir string) map[string]int {
	must(0, os.WriteFile(dir+".ran", nil, 0o644))
	came := map[string]int{}
	for life := range lives {
		if life > 0 && s.rng.IntN(3) == 0 {
			s.raise()
		}
		s.left, s.dead, s.broke = -1, false, false
		if life < lives-1 && s.rng.IntN(4) > 0 {
			s.left = 1 + s.rng.IntN(120)
		}
		end, killed := s.live(dir)
		if s.broke {
			came["no limit kept"]++
		}
		if killed {
			came["killed"]++
			continue
		}
		s.ended(end)
		switch came[string(end.Kind)]++; end.Kind {
		case hone.KindRounds:
			s.limits.Rounds++
		case hone.KindBudget:
			s.raise()
		case hone.KindFailed:
		default:
			s.t.Errorf("the run ended %+v", end)
		}
	}
	came["asked"] = len(s.books.tokens)
	return came
}

// raise raises the limits that the run has.
func (s *schedule) raise() {
	if s.limits.Tokens > 0 {
		s.limits.Tokens += s.rng.Int64N(60_000)
	}
	if s.limits.Cost > 0 {
		s.limits.Cost += s.rng.Float64() / 4
	}
}

// live plays one process.
func (s *schedule) live(dir string) (end hone.End, killedHere bool) {
	p := process{round: s.round(dir), set: func(r *hone.Run) {
		r.Limits, r.Human = s.limits, hone.Always{}
		r.Retry = hone.Retry{First: 1, Most: 1, Attempts: 3}
		r.Journal.Observe(journal.Observer{Before: func(journal.Entry) { s.point() }, After: s.hold})
	}}
	defer func() {
		got := recover()
		if got != nil && got != (killed{}) {
			panic(got)
		}
		killedHere = got != nil
	}()
	return p.end(s.t, dir), false
}

// point is a point where a process may be killed. After that it does nothing
// more.
func (s *schedule) point() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.die()
}

func (s *schedule) die() {
	s.left--
	if s.dead = s.dead || s.left == 0; s.dead {
		panic(killed{})
	}
}

// hold checks the accounts after an event.
func (s *schedule) hold(e journal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books.take(e)
	s.compare(fmt.Sprintf("after event %d (%s)", e.Seq, e.Type))
	s.die()
}

// compare compares the limits, the ledger and the providers' account.
func (s *schedule) compare(when string) {
	const rounding = 1e-9
	tokens, cost := s.books.sum()
	for _, one := range []struct {
		what                     string
		limit, books, used, more float64
	}{
		{"tokens", float64(s.limits.Tokens), float64(tokens), float64(s.used.tokens), float64(s.beyond.tokens)},
		{"dollars", s.limits.Cost, cost, s.used.cost, s.beyond.cost},
	} {
		if one.limit > 0 && max(one.books, one.used) > one.limit+one.more+rounding {
			s.t.Errorf("%s: the limit is %g %s, %g are on the books and %g were used, %g of them beyond the limit sent", when, one.limit, one.what, one.books, one.used, one.more)
		}
		if one.books < one.used-one.more-rounding {
			s.t.Errorf("%s: %g %s are on the books and %g were used, %g of them beyond the limit sent", when, one.books, one.what, one.used, one.more)
		}
	}
}

// ended checks the end of a run that was not killed.
func (s *schedule) ended(end hone.End) {
	tokens, cost := s.books.sum()
	if end.Tokens != tokens || end.Cost != nil && math.Abs(*end.Cost-cost) > 1e-9 {
		s.t.Errorf("the run ended at %d tokens and $%v, and the books say %d and $%g", end.Tokens, end.Cost, tokens, cost)
	}
	if s.broke && (end.Kind != hone.KindBudget || !strings.Contains(end.Why, "ignores the output limit")) {
		s.t.Errorf("a provider kept no limit, and the run ended %+v", end)
	}
}

// round asks some roles, following a plan that is the same whenever a run
// repeats the round.
func (s *schedule) round(dir string) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		plan := rand.New(rand.NewPCG(s.seed^s.n<<32, uint64(r.Round())))
		for range 1 + plan.IntN(4) {
			role := s.roles[plan.IntN(len(s.roles))]
			question := user(strings.Repeat("?", plan.IntN(2000)))
			var err error
			switch role.Model = (provider{s, role}); role.Name {
			case "editor":
				_, err = r.Ask(ctx, role, question)
			case "agent":
				role.Agent, role.Model = true, modelFunc(func(ctx context.Context, _ model.Request) (model.Reply, error) { return s.session(r, role) })
				_, err = r.Delegate(ctx, role, question)
			default:
				role.Tools = workshop(dir, r)
				role.Answered = func(text string) string { return map[bool]string{true: "That is no answer."}[text == "hm"] }
				_, err = r.Talk(ctx, role, question)
			}
			if err != nil {
				return nil, err
			}
		}
		return []check.Finding{wrong("never right")}, nil
	}
}

// provider answers a role's calls.
type provider struct {
	s    *schedule
	role hone.Role
}

func (p provider) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	told, fault := p.s.call(p.role, contents(req)+1024, req.MaxOutput, true)
	if fault != nil {
		return model.Reply{}, fault
	}
	reply := p.s.reply(len(req.Tools) > 0)
	reply.Usage = told
	return reply, nil
}

// contents returns how many bytes of a request a provider can turn into tokens.
func contents(req model.Request) int64 {
	n := len(req.System)
	for _, one := range req.Tools {
		n += len(one.Name) + len(one.Description) + len(one.Schema)
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Name) + len(p.Call.Args)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
	}
	return int64(n)
}

// reply is a random reply of a model with or without tools.
func (s *schedule) reply(tools bool) model.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.rng.IntN(12); {
	case n == 0:
		return model.Reply{Finish: model.Length, Parts: []model.Part{{Text: "cut o"}}}
	case n == 1:
		return model.Reply{Finish: model.Stop}
	case n == 2:
		return text("hm")
	case !tools || n == 3:
		return text("an answer")
	case n < 7:
		return calls("read", `"a"`, "read", `"b"`, "nothing", `{}`)
	case n < 10:
		return calls("write", fmt.Sprintf(`{"a":%q,"b":"b"}`, strings.Repeat("a", s.rng.IntN(3000))), "read", `"a"`)
	}
	return calls("bash", strconv.Itoa(s.rng.IntN(1e9)))
}

// use returns how many of the allowed tokens a call uses: often all of them.
func (s *schedule) use(most int64) int64 {
	if s.rng.IntN(3) == 0 {
		return most
	}
	return s.rng.Int64N(most + 1)
}

// call plays a provider: it uses up to the allowed tokens, and reports that,
// reports nothing, lies or fails. own means that the engine itself asked.
func (s *schedule) call(role hone.Role, in, out int64, own bool) (told *model.Usage, fault error) {
	s.point()
	defer s.point() // generated, and nobody was told
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broke {
		s.t.Errorf("%s was asked after a provider had kept no limit", role.Called)
	}
	if fault := s.rejection(); fault != nil {
		return nil, fault
	}
	used := model.Usage{Input: s.use(in), Output: s.use(out)}
	used.CacheRead = s.rng.Int64N(used.Input + 1)
	used.CacheWrite = s.rng.Int64N(used.Input - used.CacheRead + 1)
	used.Input -= used.CacheRead + used.CacheWrite
	if own && s.breaks && s.rng.IntN(10) == 0 {
		s.breaks, s.broke = false, true
		more := 1 + s.rng.Int64N(3*out)
		used.Output = out + more
		s.beyond = account{more, cost(role, model.Usage{Output: more})}
	}
	s.used.tokens += used.Total()
	s.used.cost += cost(role, used)
	s.compare("while " + role.Called + " generates")
	if s.broke {
		return &used, nil
	}
	return s.say(used)
}

func cost(role hone.Role, u model.Usage) float64 {
	if role.Price == nil {
		return 0
	}
	p := role.Price
	return float64(u.Input)*p.Input/1e6 + float64(u.Output)*p.Output/1e6 + float64(u.CacheRead)*p.CacheRead/1e6 + float64(u.CacheWrite)*p.CacheWrite/1e6
}

// rejection returns why a call is rejected before anything is generated; nil if
// it is not.
func (s *schedule) rejection() error {
	switch s.rng.IntN(30) {
	case 0:
		return &model.Error{Kind: model.RateLimited, Status: 429, RetryAfter: time.Millisecond}
	case 1:
		return &model.Error{Kind: model.RateLimited, Status: 429, RetryAfter: time.Hour} // which ends the run
	case 2:
		return &model.Error{Kind: model.Unreachable}
	case 3:
		return &model.Error{Kind: model.Invalid, Status: 400}
	case 4:
		return &model.Error{Kind: model.Overloaded, Status: 503} // which G17 counts as nothing
	}
	return nil
}

// say returns what a provider reports about its usage, and how the call ends.
func (s *schedule) say(used model.Usage) (*model.Usage, error) {
	soFar := used
	soFar.Output = s.rng.Int64N(used.Output + 1)
	switch s.rng.IntN(20) {
	case 0:
		return nil, &model.Error{Kind: model.Overloaded, Status: 500}
	case 1:
		return nil, &model.Error{Kind: model.Overloaded, Usage: &soFar}
	case 2:
		return nil, &model.Error{Kind: model.RateLimited, Usage: &soFar} // within the stream
	case 3:
		return nil, &model.Error{Kind: model.Cut, Status: 200, Usage: &soFar}
	case 4:
		return nil, &model.Error{Kind: model.Cut}
	case 5:
		return nil, &model.Error{Kind: model.Garbage, Usage: &model.Usage{}}
	case 6:
		return nil, &model.Error{Kind: model.Silent}
	case 7:
		return nil, &model.Error{Kind: model.Invalid, Usage: &used} // failed at its end
	case 8, 9:
		return nil, nil
	case 10:
		return &model.Usage{Input: -1 << 40, Output: used.Output}, nil
	case 11:
		return &model.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, nil
	case 12:
		return &model.Usage{Input: used.Input, CacheRead: math.MinInt64, Output: 1}, nil
	case 13:
		return &model.Usage{}, nil
	}
	return &used, nil
}

// session plays an agent: it makes calls by itself, several at once, through a
// proxy that reserves each. If one is refused, or the process dies, it ends.
func (s *schedule) session(r *hone.Run, role hone.Role) (model.Reply, error) {
	s.point()
	var errs [4]error
	var all sync.WaitGroup
	for i := range 1 + s.draw(len(errs)) {
		calls := 1 + s.draw(4)
		all.Go(func() {
			defer func() {
				if p := recover(); p == (killed{}) {
					runtime.Goexit()
				} else if p != nil {
					panic(p)
				}
			}()
			for range calls {
				if errs[i] = s.forwarded(r, role); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	s.point()
	reply := text("worked")
	return reply, errors.Join(errs[:]...)
}

func (s *schedule) draw(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(below)
}

func (s *schedule) forwarded(r *hone.Run, role hone.Role) error {
	bytes := int64(s.draw(3000))
	out, settle, err := r.Account().Reserve(role.Name, hone.Candidate{Called: role.Called, MaxOutput: role.MaxOutput, Price: role.Price}, bytes)
	if err != nil {
		return err
	}
	told, fault := s.call(role, bytes+1024, out, false)
	return settle(told, fault)
}
