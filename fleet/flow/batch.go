package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/job"
	"hone/group"
	"hone/history"
)

// maxIdle is how many legs in a row may end for budget without spending anything, before the
// job is given up.
const maxIdle = 3

type batch struct {
	Input
	Carried
	legs    map[int]workflow.CancelFunc // of the jobs that run, by their place in Jobs
	changed bool                        // since the workflow last looked
	closing bool                        // the batch is cancelled
}

// Batch is the workflow of a batch. Its result is its last [Status].
func Batch(ctx workflow.Context, in Input) (Status, error) {
	b := newBatch(in)
	if err := b.answerClients(ctx); err != nil {
		return Status{}, err
	}
	for !b.ended() {
		long := workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !b.closing
		if long && len(b.legs) == 0 {
			b.Input.Carried = &b.Carried
			return Status{}, workflow.NewContinueAsNewError(ctx, Batch, b.Input)
		}
		if !long {
			b.startLegs(ctx)
		}
		if err := workflow.Await(ctx, func() bool { return b.changed || b.ended() }); err != nil {
			b.close()
			ctx, _ = workflow.NewDisconnectedContext(ctx) // the legs have contexts of the cancelled one
		}
		b.changed = false
	}
	return b.status(), nil
}

func newBatch(in Input) *batch {
	in.Parallel, in.Tries = cmp.Or(in.Parallel, 8), cmp.Or(in.Tries, 20)
	in.Heartbeat = cmp.Or(in.Heartbeat, time.Minute)
	b := &batch{Input: in, legs: map[int]workflow.CancelFunc{}}
	if in.Carried != nil {
		b.Carried, b.Input.Carried = *in.Carried, nil
		return b
	}
	least := group.Amount{Tokens: 100_000, Cost: group.Dollars(0.10)} // for the first leg of a job, if so much is free
	b.Bank, b.Progress = group.Bank{Cap: in.Max, Least: least}, make([]Progress, len(in.Jobs))
	for i := range b.Progress {
		b.Progress[i].State = Queued
	}
	return b
}

func (b *batch) ended() bool {
	return !slices.ContainsFunc(b.Progress, func(p Progress) bool { return !p.State.Ended() })
}

// The jobs that run are already being cancelled.
func (b *batch) close() {
	b.closing = true
	for i := range b.Progress {
		b.cancel(i)
	}
}

func (b *batch) cancel(i int) {
	p := &b.Progress[i]
	if stop, ok := b.legs[i]; ok {
		stop()
		p.Why = "being cancelled" // its worker learns this with its next heartbeat
	} else if !p.State.Ended() {
		p.State, p.Why = Cancelled, ""
		p.Outcome.Why, p.Outcome.Questions = "", nil
	}
	b.changed = true
}

// If the first one must wait for budget, the others wait, too.
func (b *batch) startLegs(ctx workflow.Context) {
	for len(b.legs) < b.Parallel {
		i, ok := b.next()
		if !ok {
			return
		}
		c, p := b.claim(i), &b.Progress[i]
		loan, lent := b.Bank.Borrow(b.Jobs[i].Name, c)
		p.State, p.Why = NoBudget, "the batch has too little left for it: "+b.Bank.Free().String()
		switch {
		case lent:
			b.startLeg(ctx, i, b.Bank.Limits(c, loan))
		case c.OwnUsed():
			p.Why = strings.TrimSuffix(fmt.Sprintf("its own limit of %v is used up: %s", c.Own, p.Outcome.Why), ": ")
		case len(b.legs) > 0:
			p.State, p.Why = Waiting, ""
			return
		case c.Again[0]:
			p.Why = "the batch has no budget left for it: " + p.Outcome.Why
		}
	}
}

func (b *batch) next() (first int, ok bool) {
	for i, p := range b.Progress {
		if (p.State == Queued || p.State == Waiting) && (!ok || p.Turn < b.Progress[first].Turn) {
			first, ok = i, true
		}
	}
	return first, ok
}

func (b *batch) claim(i int) group.Claim {
	p, open := b.Progress[i], len(b.legs)
	for _, p := range b.Progress {
		if p.State == Queued || p.State == Waiting {
			open++
		}
	}
	again := p.Outcome.Kind == history.KindBudget // nobody knows which limit
	return group.Claim{Used: p.Outcome.Spent, Had: p.Limit, Own: b.Jobs[i].Max, Again: group.Parts{again, again}, Open: open}
}

func (b *batch) startLeg(ctx workflow.Context, i int, limit group.Amount) {
	j, p := b.Jobs[i], &b.Progress[i]
	p.State, p.Why, p.Limit = Running, "", limit
	p.Legs++
	order := Order{job.Leg{Batch: b.ID, Job: j, Limit: p.Limit, Answers: p.Answers}, b.Heartbeat, b.Tries}
	ctx, b.legs[i] = workflow.WithCancel(ctx)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: JobID(b.ID, j.Name), StaticSummary: fmt.Sprintf("%s, leg %d: %s in %s", j.Name, p.Legs, j.Loop, j.Repo),
		WaitForCancellation: true, ParentClosePolicy: enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
	})
	leg := workflow.ExecuteChildWorkflow(ctx, Job, order)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var e End
		if err := leg.Get(ctx, &e); err != nil {
			// A job returns no error, so that a cancelled one has not begun.
			e = End{Outcome: job.Outcome{Why: err.Error()}, Lost: true, Cancelled: temporal.IsCanceledError(err)}
			e.Known = e.Cancelled || temporal.IsWorkflowExecutionAlreadyStartedError(err)
		}
		b.settle(i, e)
	})
}

func (b *batch) settle(i int, e End) {
	name, p := b.Jobs[i].Name, &b.Progress[i]
	delete(b.legs, i)
	before, loan := p.Outcome.Spent, b.Bank.Loans[name]
	spent := e.Outcome.Spent.Minus(before)
	if e.Lost && !e.Known {
		spent = loan
	}
	spent = group.Amount{Tokens: max(0, spent.Tokens), Cost: max(0, spent.Cost)} // of a leg that found no run
	b.Bank.Repay(name, spent)

	e.Outcome.Spent = before.Plus(spent)
	e.Outcome.Run, e.Outcome.Result = cmp.Or(e.Outcome.Run, p.Outcome.Run), cmp.Or(e.Outcome.Result, p.Outcome.Result)
	if e.Lost {
		e.Outcome.Exit, e.Outcome.Kind, e.Outcome.Rounds = 5, history.KindFailed, max(e.Outcome.Rounds, p.Outcome.Rounds)
	}
	bound(&e.Outcome)
	p.Outcome, p.Answers, p.Idle = e.Outcome, nil, p.Idle+1
	if spent != (group.Amount{}) {
		p.Idle = 0
	}
	p.State, p.Why = b.after(p, e)
	switch {
	case p.State == Queued:
		b.Turn++
		p.Turn = b.Turn
	case p.State.Ended():
		p.Outcome.Why, p.Outcome.Questions = "", nil // Why of the job says it
	}
	b.changed = true
}

// The outcomes of MaxJobs jobs must fit into one payload. The next leg asks again the questions that are left out.
func bound(o *job.Outcome) {
	const questions = 20
	o.Why = start(o.Why)
	o.Questions = slices.Clone(o.Questions[:min(len(o.Questions), questions)])
	for i := range o.Questions {
		o.Questions[i].Why = start(o.Questions[i].Why)
	}
}

func start(text string) string {
	const most = 200 // bytes
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func (b *batch) after(p *Progress, e End) (State, string) {
	out := p.Outcome
	state, why := Failed, out.Why
	switch limited := p.Limit != (group.Amount{}); {
	case e.Lost && !e.Known:
		why += "; what the leg has spent is unknown"
		if limited {
			why += ", and its allowance is charged in full"
		}
	case e.Lost:
	case out.Exit == 0:
		return Done, ""
	case out.Exit == 4 && len(out.Questions) > 0:
		state = NeedsYou
	case out.Exit == 3 && out.Kind == history.KindBudget && limited && p.Idle < maxIdle:
		state = Queued
	case out.Exit == 130 && p.Idle < maxIdle: // its worker was stopped
		state = Queued
	default:
		return Failed, why
	}
	switch {
	case !e.Cancelled && !b.closing:
		return state, why
	case e.Lost && !e.Known:
		return Cancelled, why
	}
	return Cancelled, "" // why the leg ended is not why the job did
}

func (b *batch) answerClients(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, stateQuery, func() (Status, error) { return b.status(), nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, answerUpdate, func(_ workflow.Context, name string, answers []job.Answer) error {
			b.answer(&b.Progress[b.place(name)], answers)
			return nil
		}, workflow.UpdateHandlerOptions{Validator: b.mayAnswer, Description: "Answer questions of a job: its name, and a list of answers."}),
		workflow.SetUpdateHandlerWithOptions(ctx, cancelUpdate, func(_ workflow.Context, names []string) error {
			for _, name := range names {
				b.cancel(b.place(name))
			}
			return nil
		}, workflow.UpdateHandlerOptions{Description: "Cancel jobs: a list of names.", Validator: func(names []string) error {
			for _, name := range names { // cancelling an ended job does nothing
				if b.place(name) < 0 {
					return fmt.Errorf("the batch has no job %s", name)
				}
			}
			return nil
		}}))
}

// It is -1 if there is none.
func (b *batch) place(name string) int {
	return slices.IndexFunc(b.Jobs, func(j job.Job) bool { return j.Name == name })
}

func (b *batch) mayAnswer(name string, answers []job.Answer) error {
	i := b.place(name)
	switch {
	case i < 0:
		return fmt.Errorf("the batch has no job %s", name)
	case b.Progress[i].State != NeedsYou:
		return fmt.Errorf("job %s does not wait for an answer: its state is %q", name, b.Progress[i].State)
	}
	for _, a := range answers {
		if !slices.ContainsFunc(b.Progress[i].Outcome.Questions, func(q job.Question) bool { return q.Digest == a.Question }) {
			return fmt.Errorf("job %s has no question %s", name, a.Question)
		}
	}
	return nil
}

// The last answer to a question counts. When all questions are answered, the job continues before others.
func (b *batch) answer(p *Progress, answers []job.Answer) {
	for _, a := range answers {
		p.Answers = append(slices.DeleteFunc(p.Answers, func(old job.Answer) bool { return old.Question == a.Question }), a)
	}
	for _, q := range p.Outcome.Questions {
		if !slices.ContainsFunc(p.Answers, func(a job.Answer) bool { return a.Question == q.Digest }) {
			return
		}
	}
	p.State, p.Why, p.Turn, p.Idle = Queued, "", -1, 0
	b.changed = true
}

func (b *batch) status() Status {
	s := Status{ID: b.ID, Ended: b.ended(), Bank: Figures{b.Bank.Cap, b.Bank.Lent(), b.Bank.Spent, b.Bank.Free()}, Parallel: b.Parallel, Counts: map[State]int{}}
	for i, j := range b.Jobs {
		p := b.Progress[i]
		s.Counts[p.State]++
		s.Jobs = append(s.Jobs, JobStatus{Name: j.Name, Repo: j.Repo, Ref: j.Ref, Loop: j.Loop, Progress: p})
	}
	return s
}
