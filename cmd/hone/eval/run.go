// Package eval compares models on a user's own cases.
//
// [Load] reads a file of cases, and [Suite.FindBase] finds the tree of each. A [Job] is a
// case with a model, and a [Try] is one run of it: a whole hone as a child process, in a
// copy of the tree in the user's cache. [Evaluation.Run] makes all tries that its [Record]
// does not have yet, and [NewReport] adds up their results.
//
// A try is recorded when it has a result, so that an evaluation that was stopped or killed
// can continue: it does not repeat recorded tries, and resumes runs that had begun, without
// paying for their replies twice. The budget of an evaluation is lent to the runs, whose
// ledgers enforce it.
//
// The package does not decide whether the user trusts what a tree runs and opens.
package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hone"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/child"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"
)

// Job is a case with a model: what its tries have in common.
type Job struct {
	Case, Model string // their names
	Base        Base
	// Command is the command line of a try, which starts in its tree.
	Command func(time int) []string
	// Limits are those of the command line and of the configuration.
	Limits Amount
	// Env is the environment of the child.
	Env []string
	// Judge is a command line that must pass after the run; empty means none. JudgeFiles
	// are the directory that is copied over the tree before; empty means none. JudgeWall
	// are flags of hone sandbox.
	Judge, JudgeFiles string
	JudgeWall         []string // of Check, too
	// Check is the check, unless its loop runs that before it asks a model; else empty.
	Check string
}

// Try is one of the tries of a job.
type Try struct {
	*Job
	Time int    // 1 is the first
	Key  string // identifies all that its result depends on
}

func (t *Try) String() string { return fmt.Sprintf("%s, %s, try %d", t.Case, t.Model, t.Time) }

// dir is the directory of the try below that of the evaluation.
func (t *Try) dir() string {
	return filepath.Join("tries", fmt.Sprintf("%s-%d-%.16s", t.Case, t.Time, t.Key))
}

// Evaluation makes tries.
type Evaluation struct {
	Record   *Record
	Cache    string // directory of its copies, which [Open] returned
	Limits   Amount // of all tries together
	Parallel int    // how many run at the same time; at least 1
	Keep     bool   // keep the copies of finished tries
	Version  string // of hone
	// Say tells the user what happens, in one line. Done is called for each new result.
	Say  func(text string)
	Done func(Result) error
	// Verbose also tells the user how each round ends.
	Verbose bool

	bank   Bank
	keeper *sandbox.Keeper

	mu      sync.Mutex
	waiting []*Try
	running int
	total   int
	done    int
	short   []*Try                 // what they were lent was not enough
	checked map[string]func() bool // by the case; see [Evaluation.passesAlready]
	// shortWhy is why the last of them was short.
	shortWhy string
	failed   map[*Job]bool // a try could not run
	faults   []string
	err      error // the record cannot be written
}

// Stopped is how an evaluation ended, apart from its results.
type Stopped struct {
	Budget string   // why it did not pay for a try; empty if it paid for all
	Faults []string // why tries could not run
	Spent  string   // by all tries, for the user
}

// Run makes all tries without a result, those first that an earlier process has begun.
// Tries whose result is recorded only count for the budget.
func (e *Evaluation) Run(ctx context.Context, tries []*Try) (Stopped, error) {
	e.bank.limit, e.failed, e.checked, e.total = e.Limits, map[*Job]bool{}, map[string]func() bool{}, len(tries)
	e.keeper = sandbox.NewKeeper(e.Cache)
	defer e.keeper.Close()
	e.keeper.EndEarlier()
	var begun, fresh []*Try
	for _, t := range tries {
		if r, ok := e.Record.Result(t.Key); ok {
			e.done++
			e.bank.Spend(amountOf(r))
		} else if o, err := e.readRun(ctx, t); err == nil && o.Started {
			begun = append(begun, t)
			e.bank.Spend(o.Used)
		} else {
			fresh = append(fresh, t)
		}
	}
	if e.waiting = slices.Concat(begun, fresh); len(e.waiting) > 0 {
		if err := e.Record.CanAdd(); err != nil {
			return Stopped{}, err
		}
	}
	var workers sync.WaitGroup
	for range min(e.Parallel, len(e.waiting)) {
		workers.Go(func() {
			for t := e.next(); t != nil; t = e.next() {
				e.makeTry(ctx, t)
			}
		})
	}
	workers.Wait()
	return Stopped{Budget: e.runOneByOne(ctx), Faults: e.faults, Spent: e.bank.Spent()}, errors.Join(e.err, context.Cause(ctx))
}

func amountOf(r Result) Amount {
	a := Amount{Tokens: r.Tokens, Time: time.Duration(r.Active)}
	if r.Cost != nil {
		a.Cost = *r.Cost
	}
	return a
}

// runOneByOne makes the tries that are left after one was short of budget, one at a time,
// each with all that is left. It returns why the budget did not pay for one.
func (e *Evaluation) runOneByOne(ctx context.Context) string {
	e.Parallel = 1
	for len(e.short) > 0 && ctx.Err() == nil && e.err == nil {
		e.waiting, e.short = slices.Concat(e.short, e.waiting), nil
		for t := e.next(); t != nil; t = e.next() {
			before := e.bank.Spent()
			if e.makeTry(ctx, t); len(e.short) > 0 && e.bank.Spent() == before {
				return e.shortWhy
			}
		}
	}
	return ""
}

// next returns the next try; nil if none is to start.
func (e *Evaluation) next() *Try {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.waiting) > 0 && len(e.short) == 0 && e.err == nil {
		t := e.waiting[0]
		e.waiting = e.waiting[1:]
		if !e.failed[t.Job] {
			e.running++
			return t
		}
	}
	return nil
}

// makeTry makes a try, and records its result, or why it has none.
func (e *Evaluation) makeTry(ctx context.Context, t *Try) {
	r, err := e.attempt(ctx, t)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	switch {
	case errors.Is(err, errShort):
		e.short, e.shortWhy = append(e.short, t), err.Error()
	case ctx.Err() != nil:
	case err != nil:
		e.failed[t.Job] = true
		e.faults = append(e.faults, fmt.Sprintf("%s: %v", t, err))
		e.Say(fmt.Sprintf("%s: could not run: %s", t, render.Line(err.Error())))
	default:
		e.done++
		if err := e.Record.Add(r); err != nil {
			e.err = err
			return
		}
		e.Say(fmt.Sprintf("[%d/%d] %s: %s", e.done, e.total, t, r.Line()))
		if e.err = e.Done(r); !e.Keep {
			e.remove(t)
		}
	}
}

// errShort means that the budget did not pay for the rest of a try.
var errShort = errors.New("the limits of this evaluation are reached")

// attempt starts or continues a try, and returns its result.
func (e *Evaluation) attempt(ctx context.Context, t *Try) (Result, error) {
	before, err := e.readRun(ctx, t)
	if err != nil || before.final(t.Limits) {
		return e.result(ctx, t, before, err)
	}
	if !before.Started && e.passesAlready(ctx, t) {
		return e.newResult(t, before).passedResult(), ctx.Err()
	}
	e.mu.Lock()
	idle := e.Parallel - e.running + 1
	e.mu.Unlock()
	loan, ok := e.bank.Lend(t.Limits, before.Limits, before.Used, idle)
	if !ok {
		return Result{}, errShort
	}
	said, err := e.start(ctx, t, before, loan)
	after, lookErr := e.readRun(context.WithoutCancel(ctx), t)
	e.bank.Return(loan, after.Used)
	if err = errors.Join(err, lookErr); err == nil && !after.Started {
		err = errors.New(said)
	}
	return e.result(ctx, t, after, err)
}

// start runs the child, in a new copy unless the try has begun. It returns why the child
// recorded nothing.
func (e *Evaluation) start(ctx context.Context, t *Try, before Outcome, loan Loan) (said string, err error) {
	dir := e.tree(t)
	var args []string
	if before.Started {
		if before.Limits.Cost == 0 {
			loan.Limits.Cost = 0 // a run that started without such a limit gets none
		}
		args = append([]string{"resume", "last"}, loan.Limits.flags()...)
	} else {
		if err := e.copy(ctx, t); err != nil {
			return "", err
		}
		args = withFlags(t.Command(t.Time), loan.Limits.flags())
	}
	c := child.Command{Dir: dir, Args: args, Env: t.Env, Keeper: e.keeper}
	if e.Verbose {
		c.Event = func(event history.Event) {
			if s, ok := event.Payload.(history.State); ok {
				e.Say(fmt.Sprintf("%s: round %d: %s", t, s.Round, render.Count(len(s.Findings), "finding")))
			}
		}
	}
	r, err := c.Run(ctx)
	if why := r.Error(); why != nil {
		said = why.Error()
	}
	return said, err
}

// withFlags adds flags before the first argument that is "--".
func withFlags(args, flags []string) []string {
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	return slices.Insert(slices.Clone(args), at, flags...)
}

// result returns the result of a run. An error means that it has none, and must be tried
// again.
func (e *Evaluation) result(ctx context.Context, t *Try, o Outcome, err error) (r Result, _ error) {
	switch {
	case err != nil:
		return r, err
	case o.Ended && o.End.Kind == hone.KindBudget && !o.final(t.Limits):
		return r, fmt.Errorf("%w: %s", errShort, o.End.Why)
	case !o.Ended:
		return r, errors.New("its process was killed")
	case !o.final(t.Limits):
		return r, fmt.Errorf("%s; its copy is in %s", o.End.Why, e.tree(t))
	}
	r = e.newResult(t, o)
	if r.Passed && r.Rounds == 0 {
		return r.passedResult(), nil
	}
	if r.Passed && t.Judge != "" {
		if said, err := e.judge(ctx, t); err != nil {
			return r, fmt.Errorf("the judge cannot run: %w; its copy is in %s", err, e.tree(t))
		} else if said != "" {
			r.Passed, r.Kind, r.Why = false, "judge", "the judge failed: "+said
		}
	}
	return r, nil
}

// newResult returns the result of a run, without that of its judge.
func (e *Evaluation) newResult(t *Try, o Outcome) Result {
	r := Result{Key: t.Key, Case: t.Case, Model: t.Model, Time: t.Time, Passed: o.End.Kind == hone.KindDone, Kind: string(o.End.Kind), Why: o.End.Why,
		Rounds: o.Rounds, Tokens: o.Used.Tokens, Malformed: o.Malformed, Refused: o.Refused, Active: Seconds(o.Used.Time),
		Run: o.Run, Hone: e.Version, At: time.Now().UTC().Truncate(time.Second)}
	if o.Priced {
		r.Cost = &o.Used.Cost
	}
	return r
}

// passedResult returns the result of a try whose check passes without a model.
func (r Result) passedResult() Result {
	r.Passed, r.Kind, r.Why = false, Already, "the check passes already, without a model"
	return r
}

// passesAlready runs the check of a case once, before its first try, and reports whether it
// passes. It runs none if the loop does that itself, or if a judge decides.
func (e *Evaluation) passesAlready(ctx context.Context, t *Try) bool {
	if t.Check == "" || t.Judge != "" {
		return false
	}
	e.mu.Lock()
	check := e.checked[t.Case]
	if check == nil {
		check = sync.OnceValue(func() bool {
			said, err := "", e.copy(ctx, t)
			if err == nil {
				said, err = e.inWalls(ctx, t, t.Check)
			}
			return err == nil && said == ""
		})
		e.checked[t.Case] = check
	}
	e.mu.Unlock()
	return check()
}

// Line returns a result in a few words.
func (r Result) Line() string {
	verdict := "passed"
	switch {
	case !r.counts():
		verdict = "does not count: " + r.passedResult().Why
	case !r.Passed:
		why, _, _ := strings.Cut(r.Why, "\n")
		verdict = "failed: " + render.Line(why)
	}
	figures := append([]string{render.Count(r.Rounds, "round"), render.Duration(time.Duration(r.Active))}, render.UsageParts(r.Tokens, 0, r.Cost, render.Tokens)...)
	return fmt.Sprintf("%s (%s)", verdict, strings.Join(figures, ", "))
}

// readRun reads what the run of a try has recorded. It waits for a process that still works
// on it, because the evaluation that started it was killed.
func (e *Evaluation) readRun(ctx context.Context, t *Try) (Outcome, error) {
	dir := e.tree(t)
	for {
		if _, err := os.Lstat(dir); err != nil {
			return Outcome{}, nil
		}
		if _, _, working := runs.Working(dir); !working {
			break
		}
		select {
		case <-ctx.Done():
			return Outcome{}, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	home, err := journal.FindHomeAt(dir, runs.HomePath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return Outcome{}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	defer home.Close()
	run, err := home.FindRun("last")
	if err != nil {
		return Outcome{}, nil // it died before it recorded a run
	}
	events, err := home.Read(run)
	if err == nil && runs.Foreign(home)(run, events) != 0 {
		err = fmt.Errorf("a command changed the journal of the run in %s", dir)
	}
	o := ReadOutcome(events, home.Get)
	o.Run = run
	return o, err
}

// judge runs the judge of a try, and returns why it failed; empty if it passed. An error
// means that it could not run.
func (e *Evaluation) judge(ctx context.Context, t *Try) (said string, err error) {
	dir := e.tree(t)
	if t.JudgeFiles != "" {
		if err := overlay(t.JudgeFiles, dir); err != nil {
			return err.Error(), nil // for example because of a link that leads out of the tree
		}
	}
	return e.inWalls(ctx, t, t.Judge)
}

// inWalls runs a command line in the tree of a try, and returns why it failed; empty if it
// passed. An error means that it could not run.
func (e *Evaluation) inWalls(ctx context.Context, t *Try, line string) (said string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := e.tree(t)
	args := slices.Concat([]string{self, "sandbox", "--quiet", "-C", dir, "--timeout", judgeTime.String()}, t.JudgeWall, []string{"--", "sh", "-c", line})
	r, err := sandbox.None{Grace: child.Grace, Keeper: e.keeper}.Run(ctx, sandbox.Command{Argv: args, Dir: dir, Env: t.Env, MaxOutput: 64 << 10})
	if err != nil || r.Exit == 0 {
		return "", errors.Join(err, ctx.Err())
	}
	lines := strings.Split(strings.TrimSpace(string(r.Stderr)), "\n")
	for _, line := range lines {
		if why, ok := strings.CutPrefix(line, "hone: error: "); ok && r.Exit != 3 {
			return "", errors.New(why)
		}
	}
	return fmt.Sprintf("exit status %d", r.Exit), nil
}

// judgeTime is how long a judge, and a check before the first try, may run.
const judgeTime = 10 * time.Minute
