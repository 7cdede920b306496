package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/group"
	"hone/history"
)

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
