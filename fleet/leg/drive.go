package leg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"hone/cmd/hone/failure"
	"hone/fleet/job"
	"hone/fleet/store"
	"hone/group"
	"hone/history"
	"hone/internal/child"
	"hone/internal/git"
	"hone/internal/render"
	"hone/sandbox"
	"hone/workspace"
)

// finishing is how long an interrupted leg may take to store what it has.
const finishing = time.Minute

func (g *leg) drive(ctx context.Context, stop context.CancelCauseFunc) (job.Outcome, error) {
	args, err := g.args()
	if err != nil {
		return job.Outcome{}, err
	}
	in, ack, err := os.Pipe()
	if err != nil {
		return job.Outcome{}, err
	}
	defer in.Close()
	defer ack.Close()
	f := &follower{leg: g, ctx: ctx, stop: stop, ack: ack}
	r, err := child.Command{Program: g.Hone, Dir: g.repo, Args: args, Env: g.honeEnv(), Stdin: in, Event: f.event}.Run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errSuperseded) {
		return job.Outcome{}, cause
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	if run := cmp.Or(r.Run, g.at.Run); run != "" {
		err = cmp.Or(err, g.keepShipping(end, run))
	}
	if err = cmp.Or(f.err, err, stopCause(ctx)); err != nil {
		return job.Outcome{}, err
	}
	o, err := g.outcome(r)
	if err != nil {
		return o, err
	}
	if o.Result, err = g.result(end, &o); err != nil {
		return o, err
	}
	e := g.at
	e.Outcome = &o
	return o, g.put(end, e, nil)
}

// It is nil if nothing stopped the leg, or if the activity was cancelled, because then it returns an outcome.
func stopCause(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || temporal.IsCanceledError(cause) || !activity.IsActivity(ctx) && errors.Is(cause, context.Canceled) {
		return nil
	}
	return fmt.Errorf("interrupted: %w", cause)
}

type follower struct {
	*leg
	ctx   context.Context
	stop  context.CancelCauseFunc
	ack   *os.File
	round int
	err   error
}

// hone waits for this before each call.
func (f *follower) event(e history.Event) {
	if e.Step != nil {
		f.round = max(f.round, e.Step.Round)
	}
	asked, agent := e.Payload.(history.Asked)
	agent = agent && asked.Command
	if calls := e.Type == history.TypeReserve || agent; f.err == nil && (calls || e.Type == history.TypeReply) {
		if f.err = f.keepShipping(f.ctx, e.Run); f.err != nil {
			f.stop(f.err)
		} else if calls {
			fmt.Fprintln(f.ack, e.Seq) // if hone has ended, it needs no answer
		}
	}
	f.now.Store(&Progress{Round: f.round, Tokens: f.at.Spent.Tokens})
}

// A resumed run gets the parts of the allowance that it has not.
func (g *leg) args() ([]string, error) {
	flags := []string{"--ack", "-C", g.repo}
	if g.at.Run != "" {
		o, err := group.Recorded(g.repo)
		if err != nil {
			return nil, err
		}
		for _, a := range g.Answers {
			flags = append(flags, "--answer", a.Question+"="+map[bool]string{true: "yes", false: "no"}[a.Approved])
		}
		return slices.Concat([]string{"resume", g.at.Run}, flags, g.Limit.Flags(o.Limits())), nil
	}
	flags = append(flags, g.Limit.Flags(group.Amount{})...)
	if g.Job.Model != "" {
		flags = append(flags, "-m", g.Job.Model)
	}
	flags = append(append(flags, g.Args...), "--trust=false") // Trust is in the environment
	return child.With(append([]string{g.Job.Loop}, g.Job.Args...), flags...), nil
}

// The leg has a state directory of its own, so that trust ends with the leg.
func (g *leg) honeEnv() []string {
	env := slices.DeleteFunc(slices.Clone(g.environ()), func(v string) bool {
		return strings.HasPrefix(v, "HONE_TRUST=") || strings.HasPrefix(v, "XDG_STATE_HOME=") || strings.HasPrefix(v, sandbox.Origin+"=")
	})
	env = append(env, "XDG_STATE_HOME="+filepath.Join(g.dir, "state"))
	if origin, err := filepath.Abs(g.Job.Repo); err == nil { // a name that is no directory is none of PATH either
		env = append(env, sandbox.Origin+"="+origin)
	}
	if g.Trust != "" {
		env = append(env, "HONE_TRUST="+g.Trust)
	}
	return env
}

// The journal tells it.
func (g *leg) outcome(r child.Result) (job.Outcome, error) {
	run := cmp.Or(r.Run, g.at.Run)
	o := job.Outcome{Run: run, Exit: r.Exit, Why: r.Said}
	if refusal := r.Error(); refusal != nil {
		o.Why = refusal.Error()
		if r.Exit == 2 && strings.Contains(o.Why, "is not trusted") {
			o.Why += "; write its settings into the job's args, or start workers with --trust"
		}
		o.Kind = map[int]history.Kind{2: history.KindUsage, 4: history.KindBlocked}[r.Exit]
		if o.Kind == "" { // 5, or a crash: the environment
			return o, refusal
		}
	}
	if run == "" {
		return o, nil
	}
	recorded, err := group.Recorded(g.repo)
	if err != nil {
		return o, err
	}
	now := recorded.Past.Facts()
	o.Spent, o.Rounds = recorded.Used(), now.State.Round
	if o.Kind != "" {
		return o, nil // hone did not continue the run
	}
	end := now.End
	if !now.Ended || !now.AtEnd {
		return o, fmt.Errorf("hone ended with status %d before it recorded an end: %s", r.Exit, r.Said)
	}
	if strings.Contains(end.Why, "no space left on device") {
		return o, errors.New("the worker's disk is full: " + end.Why)
	}
	o.Exit, o.Kind, o.Why, o.Rounds = failure.ExitStatus(end.Kind), end.Kind, end.Why, end.Rounds // also if hone was killed after that
	for _, q := range now.Pending {
		o.Questions = append(o.Questions, job.Question{Digest: q.Digest(run), Path: q.Path, Why: q.Reason})
	}
	return o, nil
}

// own are the log directories of the loops, which are not part of a result.
var own = map[string][]string{"task": {".codescribe"}, "implement": {"logs"}}

// result stores the run's changes as a git bundle with one commit on the job's commit, and
// returns its name; empty if there are none. The outcome then names the files that are
// too large for it.
func (g *leg) result(ctx context.Context, o *job.Outcome) (string, error) {
	if o.Run == "" {
		return "", nil
	}
	repo, err := git.OpenAt(g.repo)
	if err != nil {
		return "", err
	}
	dirty, err := repo.Dirty(ctx)
	if err != nil || !dirty {
		return "", err
	}
	made, err := repo.Commit(ctx, git.Commit{Subject: fmt.Sprintf("hone %s: %s", g.Job.Loop, g.Job.Name),
		Trailers: []string{"Hone-Run: " + o.Run, "Hone-Batch: " + g.Batch}, Exclude: own[g.Job.Loop], MaxFile: workspace.DefaultMaxFile})
	if err != nil {
		return "", err
	}
	if len(made.TooLarge) > 0 {
		o.Why += fmt.Sprintf("; not in the result, because they are larger than %s: %s", render.Bytes(workspace.DefaultMaxFile), render.Names(made.TooLarge))
	}
	if !made.Changed {
		return "", nil
	}
	branch := "refs/heads/hone/" + g.Batch + "/" + g.Job.Name
	file := filepath.Join(g.dir, "result.bundle")
	if _, err := g.git(ctx, g.repo, "update-ref", branch, made.ID); err != nil {
		return "", err
	}
	if _, err := g.git(ctx, g.repo, "bundle", "create", "-q", file, branch, "^"+g.at.Commit); err != nil {
		return "", err
	}
	content, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer content.Close()
	name := g.name("results/" + made.ID + ".bundle")
	if err = g.Store.Create(ctx, name, content); errors.Is(err, store.ErrExists) {
		err = nil // an earlier try of the request
	}
	return name, err
}
