package flow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/group"
	"hone/history"
)

// world is what the legs of a test do, in place of workers: each job has a run that needs
// some budget, and spends it in steps.
type world struct {
	t        *testing.T
	env      *testsuite.TestWorkflowEnvironment
	in       flow.Input
	mu       sync.Mutex
	runs     map[string]*run
	legs     int // that work now
	loose    bool
	begun    func(name string) // is called at the start of each try; may be nil
	hang     bool              // legs last until they are cancelled
	stops    time.Duration     // how long a cancelled leg still takes
	expected int               // updates without a result
}

// run is the run of a job.
type run struct {
	need   group.Amount // until it is done
	spent  group.Amount
	step   group.Amount   // what one call spends
	faults []func() error // one for each try of a leg, until they are used up; nil has no effect
	ends   []job.Outcome  // of the first legs that reach need; then it is done
	works  bool           // a leg works now
	limit  group.Amount   // of the leg that works now
	given  []job.Answer
	limits []group.Amount // of its legs
}

// newWorld returns a world without runs for a batch.
func newWorld(t *testing.T, in flow.Input) *world {
	in.ID = "b"
	w := &world{t: t, in: in, runs: map[string]*run{}}
	return w
}

// add adds a job to the batch, and its run.
func (w *world) add(name string, r *run, limit group.Amount) *run {
	w.in.Jobs = append(w.in.Jobs, job.Job{Name: name, Repo: "https://git.example/" + name, Loop: "fix", Max: limit})
	w.runs[name] = r
	return r
}

// tokens returns a sum of tokens only.
func tokens(n int64) group.Amount { return group.Amount{Tokens: n} }

// leg is the activity.
func (w *world) leg(_ context.Context, l job.Leg) (job.Outcome, error) {
	r := w.begin(l)
	if w.begun != nil {
		w.begun(l.Job.Name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.works = false
	w.legs--
	if len(r.faults) > 0 {
		fault := r.faults[0]
		r.faults = r.faults[1:]
		if err := fault(); err != nil {
			return job.Outcome{}, err
		}
	}
	return r.work(l.Limit), nil
}

// cancelled stands for flow.Job if legs last until they are cancelled: Temporal's test suite
// does not wait for a cancelled activity, as a server does.
func (w *world) cancelled(ctx workflow.Context, o flow.Order) (flow.End, error) {
	r := w.begin(o.Leg)
	if w.begun != nil {
		w.begun(o.Leg.Job.Name)
	}
	ctx.Done().Receive(ctx, nil)
	if ctx, _ := workflow.NewDisconnectedContext(ctx); w.stops > 0 {
		if err := workflow.Sleep(ctx, w.stops); err != nil {
			return flow.End{}, err
		}
	}
	r.works = false
	w.legs--
	return flow.End{Outcome: r.outcome(130, history.KindInterrupted), Cancelled: true}, nil
}

// begin notes that a leg begins, and checks that it may.
func (w *world) begin(l job.Leg) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[l.Job.Name]
	if r.works {
		w.t.Errorf("job %s has two legs at the same time", l.Job.Name)
	}
	r.works, r.limit, r.given = true, l.Limit, l.Answers
	r.limits = append(r.limits, l.Limit)
	w.legs++
	if w.legs > w.in.Parallel {
		w.t.Errorf("%d legs at the same time", w.legs)
	}
	w.checkCap()
	return r
}

// checkCap checks that the budget suffices even if each leg spends all that it may.
func (w *world) checkCap() {
	var most group.Amount
	for _, r := range w.runs {
		if most = most.Plus(r.spent); r.works {
			most = most.Plus(r.limit.Minus(r.spent))
		}
	}
	limit := w.in.Max
	if !w.loose && (limit.Tokens > 0 && most.Tokens > limit.Tokens || limit.Cost > 0 && most.Cost > limit.Cost) {
		w.t.Errorf("the legs may spend %v of %v", most, limit)
	}
}

// work spends until the run is done, or until the next step might exceed a limit.
func (r *run) work(limit group.Amount) job.Outcome {
	for r.spent.Tokens < r.need.Tokens || r.spent.Cost < r.need.Cost {
		next := r.spent.Plus(r.step)
		if limit.Tokens > 0 && next.Tokens > limit.Tokens || limit.Cost > 0 && next.Cost > limit.Cost {
			return r.outcome(3, history.KindBudget)
		}
		r.spent = next
	}
	if len(r.ends) > 0 {
		end := r.ends[0]
		r.ends = r.ends[1:]
		end.Run, end.Spent = "r", r.spent
		if end.Exit == 130 {
			r.need = r.need.Plus(r.step)
		}
		return end
	}
	o := r.outcome(0, history.KindDone)
	o.Result = "result"
	return o
}

func (r *run) outcome(exit int, kind history.Kind) job.Outcome {
	return job.Outcome{Run: "r", Exit: exit, Kind: kind, Why: string(kind), Spent: r.spent}
}

// lose returns a fault: the worker spends some, and is lost.
func (w *world) lose(r *run, n int64) func() error {
	return func() error {
		if r.limit.Tokens > 0 {
			n = min(n, r.limit.Tokens-r.spent.Tokens)
		}
		r.spent = r.spent.Plus(tokens(n))
		return errors.New("the disk is full")
	}
}

// start runs the batch until it ends. setup may be nil.
func (w *world) start(setup func(*testsuite.TestWorkflowEnvironment)) flow.Status {
	w.t.Helper()
	s, next := w.once(w.in, setup)
	if next != nil {
		w.t.Fatal("the batch continued as new")
	}
	return s
}

// once runs the batch until it ends, or continues as new with the input that it returns.
func (w *world) once(in flow.Input, setup func(*testsuite.TestWorkflowEnvironment)) (s flow.Status, next *flow.Input) {
	w.t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(silent{})
	w.env = suite.NewTestWorkflowEnvironment()
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Hour}) // a busy machine is no deadlock
	w.env.SetTestTimeout(time.Minute)
	flow.Register(w.env)
	w.env.RegisterActivityWithOptions(w.leg, activity.RegisterOptions{Name: flow.Leg})
	if w.hang {
		w.env.RegisterWorkflowWithOptions(w.cancelled, workflow.RegisterOptions{Name: "hone leg", DisableAlreadyRegisteredCheck: true})
	}
	if setup != nil {
		setup(w.env)
	}
	w.env.ExecuteWorkflow(flow.Batch, in)
	err := w.env.GetWorkflowError()
	if again, ok := errors.AsType[*workflow.ContinueAsNewError](err); ok {
		next = new(flow.Input)
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, next); err != nil {
			w.t.Fatal(err)
		}
		return s, next
	}
	if err == nil {
		err = w.env.GetWorkflowResult(&s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if w.checkEnd(s); w.expected != 0 {
		w.t.Errorf("%d updates have no result", w.expected)
	}
	return s, nil
}

// checkEnd checks what holds for every batch that has ended.
func (w *world) checkEnd(s flow.Status) {
	w.t.Helper()
	if !s.Ended {
		w.t.Error("the batch has not ended")
	}
	var spent group.Amount
	for _, j := range s.Jobs {
		if !j.State.Ended() {
			w.t.Errorf("job %s is %s", j.Name, j.State)
		}
		spent = spent.Plus(j.Outcome.Spent)
		charged, real := j.Outcome.Spent, w.runs[j.Name].spent
		if lost := j.Outcome.Exit == 5; lost && !w.loose {
			// Of a part without a limit, nobody knows what lost legs have spent.
			less := w.in.Max.Tokens > 0 && charged.Tokens < real.Tokens || w.in.Max.Cost > 0 && charged.Cost < real.Cost
			if less {
				w.t.Errorf("job %s: charged %v, and its run has spent %v: %s", j.Name, charged, real, j.Why)
			}
		} else if charged != real && !w.loose {
			w.t.Errorf("job %s: charged %v, and its run has spent %v", j.Name, charged, real)
		}
	}
	if s.Bank.Spent != spent || s.Bank.Lent != (group.Amount{}) {
		w.t.Errorf("the jobs have spent %v, the bank: %+v", spent, s.Bank)
	}
	if limit := w.in.Max; limit.Tokens > 0 && limit.Tokens != s.Bank.Free.Tokens+spent.Tokens {
		w.t.Errorf("free and spent are not the cap: %+v", s.Bank)
	}
}

// states checks the states of the jobs, in order.
func states(t *testing.T, s flow.Status, want ...flow.State) {
	t.Helper()
	for i, j := range s.Jobs {
		if j.State != want[i] {
			t.Errorf("job %s is %q (%s), want %q", j.Name, j.State, j.Why, want[i])
		}
	}
}

// read asks the batch for its state.
func (w *world) read() (s flow.Status) {
	value, err := w.env.QueryWorkflow("state")
	if err == nil {
		err = value.Get(&s)
	}
	if err != nil {
		w.t.Error(err)
	}
	return s
}

// update makes an update at once. want is the error by which it must be refused; empty if it
// must be made.
func (w *world) update(want, name string, args ...any) {
	w.expected++
	check := func(err error) {
		w.expected--
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			w.t.Errorf("%s %v: got %v, want %q", name, args, err, want)
		}
	}
	w.env.UpdateWorkflow(name, fmt.Sprint(rand.Int()), &testsuite.TestUpdateCallback{
		OnAccept: func() {}, OnReject: check, OnComplete: func(_ any, err error) { check(err) },
	}, args...)
}

// answering approves all questions, once a minute.
func (w *world) answering(env *testsuite.TestWorkflowEnvironment) {
	var visit func()
	visit = func() {
		for _, j := range w.read().Jobs {
			if j.State == flow.NeedsYou {
				var answers []job.Answer
				for _, q := range j.Outcome.Questions {
					answers = append(answers, job.Answer{Question: q.Digest, Approved: true})
				}
				w.update("", "answer", j.Name, answers)
			}
		}
		env.RegisterDelayedCallback(visit, time.Minute)
	}
	env.RegisterDelayedCallback(visit, time.Minute)
}

// lost is the error of a worker whose heartbeats are missing.
func lost() error { return temporal.NewHeartbeatTimeoutError() }

// silent is a logger that logs nothing.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
