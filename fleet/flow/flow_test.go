package flow_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/group"
	"hone/history"
)

func TestDone(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 1_000_000}, Parallel: 2})
	for _, name := range []string{"a", "b", "c"} {
		w.add(name, &run{need: tokens(50_000), step: tokens(1000)}, group.Amount{})
	}
	s := w.start(nil)
	states(t, s, flow.Done, flow.Done, flow.Done)
	if a := s.Jobs[0]; a.Legs != 1 || a.Outcome.Result != "result" || a.Limit.Tokens != 333_333 || s.Counts[flow.Done] != 3 {
		t.Errorf("%+v", s)
	}
}

// TestBorrowAgain: a job that has used up its share continues after the others have begun,
// with at least twice as much.
func TestBorrowAgain(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 1_000_000}, Parallel: 1})
	a := w.add("a", &run{need: tokens(700_000), step: tokens(1000)}, group.Amount{})
	var order []string
	w.begun = func(name string) { order = append(order, name) }
	for _, name := range []string{"b", "c", "d"} {
		w.add(name, &run{need: tokens(50_000), step: tokens(1000)}, group.Amount{})
	}
	s := w.start(nil)
	states(t, s, flow.Done, flow.Done, flow.Done, flow.Done)
	if got := strings.Join(order, ""); got != "abcda" {
		t.Errorf("the order was %s", got)
	}
	if last := a.limits[len(a.limits)-1].Tokens; last != 850_000 {
		t.Errorf("the limits were %v", a.limits)
	}
}

// TestWaitForBudget: a job waits for what others give back.
func TestWaitForBudget(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Cost: group.Dollars(0.15)}, Parallel: 2})
	cents := func(n int64) group.Amount { return group.Amount{Tokens: n, Cost: group.USD(n * 1e7)} }
	w.add("a", &run{need: cents(5), step: cents(1)}, group.Amount{})
	w.add("b", &run{need: cents(7), step: cents(1)}, group.Amount{})
	waited := false
	w.begun = func(name string) {
		if name == "a" {
			waited = w.read().Jobs[1].State == flow.Waiting
		}
	}
	s := w.start(nil)
	states(t, s, flow.Done, flow.Done)
	if !waited {
		t.Error("b has not waited")
	}
	if s.Bank.Spent.Cost != group.Dollars(0.12) || s.Bank.Free.Cost != group.Dollars(0.03) {
		t.Errorf("%+v", s.Bank)
	}
}

func TestBudgetIsUsedUp(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 300_000}, Parallel: 2})
	a := w.add("a", &run{need: tokens(900_000), step: tokens(7000)}, group.Amount{})
	w.add("b", &run{need: tokens(900_000), step: tokens(7000)}, group.Amount{Tokens: 50_000})
	w.add("c", &run{need: tokens(10_000), step: tokens(5000)}, group.Amount{})
	s := w.start(nil)
	states(t, s, flow.NoBudget, flow.NoBudget, flow.Done)
	if why := s.Jobs[0].Why; why != "the batch has no budget left for it: budget" {
		t.Errorf("a: %s", why)
	}
	if why := s.Jobs[1].Why; why != "its own limit of 50 000 tokens is used up: budget" {
		t.Errorf("b: %s", why)
	}
	if len(a.limits) > 5 {
		t.Errorf("the limits of a were %v", a.limits)
	}
}

// TestOwnLimitOnly: without a limit of the batch, a job gets its own limit at once, and is
// not asked again.
func TestOwnLimitOnly(t *testing.T) {
	w := newWorld(t, flow.Input{Parallel: 2})
	w.add("a", &run{need: tokens(900_000), step: tokens(7000)}, group.Amount{Tokens: 50_000})
	w.add("b", &run{need: tokens(900_000), step: tokens(7000)}, group.Amount{})
	w.add("c", &run{ends: []job.Outcome{{Exit: 3, Kind: history.KindBudget, Why: "the time limit is reached"}}}, group.Amount{})
	s := w.start(nil)
	states(t, s, flow.NoBudget, flow.Done, flow.Failed)
	if s.Jobs[0].Legs != 1 || s.Jobs[2].Why != "the time limit is reached" {
		t.Errorf("%+v", s.Jobs)
	}
}

// TestBudgetDoesNotHelp: a job that stops for its budget and spends nothing ends. Its run
// may have reached a time limit.
func TestBudgetDoesNotHelp(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 1e9}, Parallel: 2})
	late := job.Outcome{Exit: 3, Kind: history.KindBudget, Why: "the time limit is reached"}
	a := w.add("a", &run{ends: slices.Repeat([]job.Outcome{late}, 10)}, group.Amount{})
	for _, name := range strings.Fields("b c d e f g h i j") {
		w.add(name, &run{step: tokens(1000), ends: slices.Repeat([]job.Outcome{{Exit: 130}}, 4)}, group.Amount{})
	}
	s := w.start(nil)
	states(t, s, slices.Insert(slices.Repeat([]flow.State{flow.Done}, 9), 0, flow.Failed)...)
	if len(a.limits) != 3 || s.Jobs[0].Why != late.Why {
		t.Errorf("a had the limits %v: %s", a.limits, s.Jobs[0].Why)
	}
}

func TestQuestions(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 1_000_000}, Parallel: 1})
	asks := job.Outcome{Exit: 4, Kind: history.KindBlocked, Why: "it may not write Makefile", Questions: []job.Question{{Digest: "d1", Path: "Makefile"}, {Digest: "d2", Path: "go.mod"}}}
	a := w.add("a", &run{need: tokens(20_000), step: tokens(1000), ends: []job.Outcome{asks}}, group.Amount{})
	w.add("b", &run{need: tokens(20_000), step: tokens(1000)}, group.Amount{})
	w.add("c", &run{ends: []job.Outcome{{Exit: 4, Kind: history.KindBlocked, Why: "a file is in a third state"}}}, group.Amount{})
	s := w.start(func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			s := w.read()
			states(t, s, flow.NeedsYou, flow.Done, flow.Failed)
			if s.Bank.Lent != (group.Amount{}) || s.Bank.Spent.Tokens != 40_000 || len(s.Jobs[0].Outcome.Questions) != 2 {
				t.Errorf("a job that waits for the user: %+v", s)
			}
			w.update("the batch has no job x", "answer", "x", []job.Answer{})
			w.update(`job b does not wait for an answer: its state is "done"`, "answer", "b", []job.Answer{{Question: "d1"}})
			w.update("job a has no question d3", "answer", "a", []job.Answer{{Question: "d3"}})
			w.update("", "answer", "a", []job.Answer{{Question: "d1"}})
		}, time.Hour)
		env.RegisterDelayedCallback(func() {
			states(t, w.read(), flow.NeedsYou, flow.Done, flow.Failed)
			w.update("", "answer", "a", []job.Answer{{Question: "d2", Approved: true}, {Question: "d1", Approved: true}})
		}, 48*time.Hour)
	})
	states(t, s, flow.Done, flow.Done, flow.Failed)
	if want := []job.Answer{{Question: "d2", Approved: true}, {Question: "d1", Approved: true}}; !slices.Equal(a.given, want) {
		t.Errorf("the answers were %v", a.given)
	}
}

// TestLostWorkers: a leg is tried again, and what lost workers have spent is charged.
func TestLostWorkers(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 1_000_000}, Parallel: 2})
	a := &run{need: tokens(50_000), step: tokens(1000)}
	a.faults = []func() error{w.lose(a, 9000), w.lose(a, 11_000), lost}
	w.add("a", a, group.Amount{})
	s := w.start(nil)
	states(t, s, flow.Done)
	if s.Jobs[0].Legs != 1 || len(a.limits) != 4 {
		t.Errorf("%d legs, limits %v", s.Jobs[0].Legs, a.limits)
	}
}

// TestAllTriesFail: if nobody knows what was spent, the whole allowance counts as spent.
func TestAllTriesFail(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 900_000}, Parallel: 3, Tries: 4})
	w.loose = true
	bad := &run{}
	bad.faults = slices.Repeat([]func() error{w.lose(bad, 1000)}, 10)
	w.add("bad", bad, group.Amount{})
	known := &run{}
	known.faults = slices.Repeat([]func() error{func() error {
		return temporal.NewNonRetryableApplicationError("no walls", "environment", nil, job.Outcome{Run: "r", Rounds: 2, Spent: group.Amount{Tokens: 77}})
	}}, 10)
	w.add("known", known, group.Amount{})
	s := w.start(nil)
	states(t, s, flow.Failed, flow.Failed)
	if got := s.Jobs[0].Outcome.Spent.Tokens; got != 450_000 || len(bad.limits) != 4 {
		t.Errorf("bad: charged %d, %d tries", got, len(bad.limits))
	}
	if why := s.Jobs[0].Why; why != "the disk is full; what the leg has spent is unknown, and its allowance is charged in full" {
		t.Errorf("bad: %s", why)
	}
	if o := s.Jobs[1].Outcome; o.Spent.Tokens != 77 || o.Exit != 5 || o.Rounds != 2 || s.Jobs[1].Why != "no walls" {
		t.Errorf("known: %+v, %s", o, s.Jobs[1].Why)
	}
}

// TestCancelJob: the leg of a cancelled job returns what it has spent, and the others go on.
func TestCancelJob(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 900_000}, Parallel: 2})
	w.hang = true
	w.add("a", &run{spent: tokens(123)}, group.Amount{})
	w.add("b", &run{spent: tokens(456)}, group.Amount{})
	w.add("c", &run{spent: tokens(789)}, group.Amount{})
	w.add("d", &run{}, group.Amount{})
	s := w.start(func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			w.update("the batch has no job nope", "cancel", []string{"a", "nope"})
			states(t, w.read(), flow.Running, flow.Running, flow.Queued, flow.Queued)
			w.update("", "cancel", []string{"a", "d"})
		}, time.Minute)
		env.RegisterDelayedCallback(func() {
			s := w.read()
			states(t, s, flow.Cancelled, flow.Running, flow.Running, flow.Cancelled)
			if s.Bank.Spent.Tokens != 123 || s.Jobs[3].Legs != 0 {
				t.Errorf("%+v", s)
			}
			w.update("", "cancel", []string{"a", "b", "c"})
		}, time.Hour)
	})
	states(t, s, flow.Cancelled, flow.Cancelled, flow.Cancelled, flow.Cancelled)
}

// TestCancelling: a job says that it is being cancelled until its worker has stopped, and
// then no longer why its leg stopped.
func TestCancelling(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 900_000}, Parallel: 2})
	w.hang, w.stops = true, time.Minute
	w.add("a", &run{spent: tokens(100)}, group.Amount{})
	w.add("b", &run{spent: tokens(200)}, group.Amount{})
	s := w.start(func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { w.update("", "cancel", []string{"a"}) }, time.Hour)
		env.RegisterDelayedCallback(func() {
			if s := w.read(); s.Jobs[0].State != flow.Running || s.Jobs[0].Why != "being cancelled" || s.Jobs[1].Why != "" {
				t.Errorf("%+v", s.Jobs)
			}
		}, time.Hour+30*time.Second)
		env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Hour)
		env.RegisterDelayedCallback(func() {
			if s := w.read(); s.Jobs[1].State != flow.Running || s.Jobs[1].Why != "being cancelled" {
				t.Errorf("%+v", s.Jobs)
			}
		}, 2*time.Hour+30*time.Second)
	})
	states(t, s, flow.Cancelled, flow.Cancelled)
	for _, j := range s.Jobs {
		if j.Why != "" || j.Outcome.Why != "" {
			t.Errorf("job %s: %q, %q", j.Name, j.Why, j.Outcome.Why)
		}
	}
}

// TestCancelBatch: all jobs end, and what the interrupted ones have spent is charged.
func TestCancelBatch(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 900_000}, Parallel: 2})
	w.hang = true
	w.add("a", &run{spent: tokens(100)}, group.Amount{})
	w.add("b", &run{spent: tokens(200)}, group.Amount{})
	w.add("c", &run{}, group.Amount{})
	s := w.start(func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	})
	states(t, s, flow.Cancelled, flow.Cancelled, flow.Cancelled)
	if s.Bank.Spent.Tokens != 300 || s.Jobs[2].Legs != 0 || s.Jobs[1].Outcome.Exit != 130 {
		t.Errorf("%+v", s)
	}
}

// TestCancelWaiting: a job that waits for the user ends at once.
func TestCancelWaiting(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 900_000}, Parallel: 2})
	asks := job.Outcome{Exit: 4, Why: "1 question is open", Questions: []job.Question{{Digest: "d1"}}}
	w.add("a", &run{need: tokens(20_000), step: tokens(1000), ends: []job.Outcome{asks}}, group.Amount{})
	s := w.start(func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	})
	states(t, s, flow.Cancelled)
	if s.Bank.Spent.Tokens != 20_000 || s.Jobs[0].Outcome.Why != "" || s.Jobs[0].Outcome.Questions != nil {
		t.Errorf("%+v", s)
	}
}

// TestStoppedWorker: a leg that was interrupted, although nobody has cancelled it, goes on.
func TestStoppedWorker(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 900_000}, Parallel: 2})
	w.add("a", &run{need: tokens(20_000), step: tokens(1000), ends: []job.Outcome{{Exit: 130, Kind: history.KindInterrupted}}}, group.Amount{})
	s := w.start(nil)
	states(t, s, flow.Done)
	if s.Jobs[0].Legs != 2 {
		t.Errorf("%+v", s.Jobs)
	}
}

// TestContinueAsNew: a batch with a long history waits for its legs, and continues with
// all that it knows: ended jobs, loans repaid, questions and turns.
func TestContinueAsNew(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 2_000_000}, Parallel: 2})
	asks := job.Outcome{Exit: 4, Questions: []job.Question{{Digest: "d1"}}}
	a := w.add("a", &run{need: tokens(20_000), step: tokens(1000), ends: []job.Outcome{asks}}, group.Amount{})
	for _, name := range []string{"b", "c", "d", "e"} {
		w.add(name, &run{need: tokens(400_000), step: tokens(1000)}, group.Amount{})
	}
	w.begun = func(string) { w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, 0) }
	in, windows := w.in, 0
	for {
		s, next := w.once(in, w.answering)
		if next == nil {
			states(t, s, flow.Done, flow.Done, flow.Done, flow.Done, flow.Done)
			break
		}
		if len(next.Carried.Bank.Loans) > 0 {
			t.Errorf("a batch that continues as new has lent %v", next.Carried.Bank.Loans)
		}
		if in, windows = *next, windows+1; windows > 20 {
			t.Fatal("it never ends")
		}
	}
	if windows < 2 || len(a.given) != 1 {
		t.Errorf("%d windows, answers %v", windows, a.given)
	}
}

// TestLongTexts: the state and the result of the largest batch fit into a payload, also if
// all its jobs end with long texts.
func TestLongTexts(t *testing.T) {
	w := newWorld(t, flow.Input{Max: group.Amount{Tokens: 1e12, Cost: group.Dollars(1e6)}, Parallel: 50})
	long := job.Outcome{Exit: 1, Kind: history.KindRounds, Rounds: 12, Why: strings.Repeat("long ", 1000), Questions: slices.Repeat([]job.Question{{Digest: "d"}}, 50)}
	for i := range 100 {
		name := fmt.Sprintf("%s-%04d", strings.Repeat("n", 50), i)
		w.add(name, &run{need: group.Amount{Tokens: 123_456, Cost: 1_234_567_890}, step: group.Amount{Tokens: 1000, Cost: 1e7}, ends: []job.Outcome{long}}, group.Amount{})
	}
	s := w.start(nil)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if each := len(text) / len(s.Jobs); each*flow.MaxJobs > 2<<20 {
		t.Errorf("a job takes %d bytes: %+v", each, s.Jobs[0])
	}
	states(t, s, slices.Repeat([]flow.State{flow.Failed}, 100)...)
	if want := strings.Repeat("long ", 40) + "…"; s.Jobs[0].Why != want {
		t.Errorf("got %s", s.Jobs[0].Why)
	}
}

func TestStartRefuses(t *testing.T) {
	long := job.Job{Name: "a", Args: []string{strings.Repeat("x", flow.MaxInput)}}
	for _, c := range []struct {
		jobs []job.Job
		want string
	}{
		{nil, "a batch needs at least one job"},
		{slices.Repeat([]job.Job{{}}, flow.MaxJobs+1), "a batch can have at most 2000 jobs, and this one has 2001: submit several batches"},
		{[]job.Job{long}, "the jobs need 524364 bytes, and a batch can have at most 524288: submit several batches, or shorten the arguments"},
	} {
		if err := flow.Start(t.Context(), nil, "q", flow.Input{Jobs: c.jobs}); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestReplay: workers of this version can continue the batches and jobs of earlier ones.
// The histories are those of a real server: a batch of eight jobs, of which one borrows
// twice, one asks, one loses its workers and two are cancelled; a cancelled batch; and two
// of the jobs.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		r := worker.NewWorkflowReplayer()
		flow.Register(r)
		if err := r.ReplayWorkflowHistoryFromJSONFile(silent{}, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestReplaySees: TestReplay would see that a batch starts its jobs in another order.
func TestReplaySees(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, in flow.Input) (flow.Status, error) {
		in.Jobs[0], in.Jobs[1] = in.Jobs[1], in.Jobs[0]
		return flow.Batch(ctx, in)
	}, workflow.RegisterOptions{Name: "hone batch"})
	err := r.ReplayWorkflowHistoryFromJSONFile(silent{}, "testdata/batch.json")
	if err == nil || !strings.Contains(err.Error(), "nondeterministic") {
		t.Errorf("got %v", err)
	}
}

// TestIDs: no two workflows have the same id, whatever the names of batches and jobs.
func TestIDs(t *testing.T) {
	parts := []string{"a", "b", "c", "a-b", "b-c", "a-b-c", "batch", "a.b", "hone"}
	seen := map[string][]string{}
	add := func(id string, names ...string) {
		for _, name := range names {
			if !job.ValidName(name) {
				t.Fatal(name)
			}
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q have the id %s", names, other, id)
		}
		seen[id] = names
	}
	for _, batch := range parts {
		add(flow.BatchID(batch), batch)
		for _, name := range parts {
			add(flow.JobID(batch, name), batch, name)
		}
	}
}

// TestRandomBatches: whatever happens to the legs, each job ends once, at most one leg of a
// job works at a time, the budget suffices for all that the legs may spend, and in the end
// the bank has charged what the runs have spent.
func TestRandomBatches(t *testing.T) {
	seeds, windows, ends := uint64(150), 0, map[flow.State]int{}
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, n := randomBatch(t, rand.New(rand.NewPCG(seed, 21)))
			windows += n
			for _, j := range s.Jobs {
				ends[j.State]++
			}
		})
	}
	for _, state := range flow.States() {
		if state.Ended() && ends[state] == 0 {
			t.Errorf("no job ended as %q: %v", state, ends)
		}
	}
	if windows == 0 {
		t.Error("no batch continued as new")
	}
	t.Log(ends, windows)
}

// randomBatch runs a batch, and returns its end and how often it continued as new.
func randomBatch(t *testing.T, random *rand.Rand) (flow.Status, int) {
	w := newWorld(t, flow.Input{Parallel: 1 + random.IntN(5), Tries: 1 + random.IntN(4)})
	for w.in.Max == (group.Amount{}) && random.IntN(10) > 0 {
		w.in.Max = group.Amount{Tokens: random.Int64N(2) * (50_000 + random.Int64N(8_000_000)), Cost: group.Dollars(float64(random.IntN(2)) * random.Float64() * 9)}
	}
	for i := range 1 + random.IntN(20) {
		w.add(fmt.Sprint(i), nil, group.Amount{Tokens: random.Int64N(2) * random.Int64N(500_000), Cost: group.Dollars(float64(random.IntN(2)) * random.Float64())})
		w.runs[fmt.Sprint(i)] = w.randomRun(random)
	}
	suggest := random.IntN(2) == 0
	w.begun = func(string) {
		if suggest {
			w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, 0)
		}
	}
	cancel, cancelled := random.IntN(4) == 0, fmt.Sprint(random.IntN(len(w.in.Jobs)))
	in, after := w.in, time.Duration(random.IntN(20_000))*time.Millisecond
	for n := 0; ; n++ {
		s, next := w.once(in, func(env *testsuite.TestWorkflowEnvironment) {
			w.answering(env)
			env.RegisterDelayedCallback(func() { w.update("", "cancel", []string{cancelled}) }, after/2)
			if cancel {
				env.RegisterDelayedCallback(env.CancelWorkflow, after)
			}
		})
		if next == nil {
			return s, n
		}
		if w.expected = 0; n > 100 {
			t.Fatal("it never ends")
		}
		in = *next
	}
}

func (w *world) randomRun(random *rand.Rand) *run {
	r := &run{need: group.Amount{Tokens: random.Int64N(400_000), Cost: group.USD(random.Int64N(3e8))}, step: group.Amount{Tokens: 1 + random.Int64N(9000), Cost: 1 + group.USD(random.Int64N(9e6))}}
	for random.IntN(3) == 0 {
		r.faults = append(r.faults, slices.Repeat([]func() error{w.lose(r, random.Int64N(5000))}, 1+random.IntN(4))...)
	}
	for random.IntN(3) == 0 {
		r.ends = append(r.ends, []job.Outcome{
			{Exit: 1, Kind: history.KindRounds},
			{Exit: 130, Kind: history.KindInterrupted},
			{Exit: 4, Kind: history.KindBlocked, Questions: []job.Question{{Digest: "d1"}, {Digest: "d2"}}},
			{Exit: 3, Kind: history.KindBudget, Why: "the time limit is reached"},
		}[random.IntN(4)])
	}
	return r
}
