package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/group"
	"hone/internal/artifact"
	"hone/internal/render"
)

// queueName is the standard task queue of batches and workers.
const queueName = "hone"

type submitFlags struct {
	in    flow.Input
	cost  float64
	repos string
	model string
	queue string
	json  bool
}

func (a *app) submitCommand() *cobra.Command {
	var f submitFlags
	c := &cobra.Command{
		Use:   "submit JOBS.toml | --repos FILE [flags] -- LOOP [ARGUMENTS]",
		Short: "submit a batch of jobs",
		Long: `submit starts a batch: it runs a loop of hone in each of many repositories, with one budget. JOBS.toml has a
table [[job]] for each repository, with the keys repo and loop, and optionally name, ref, args, model, max-cost
and max-tokens. With --repos, all jobs have the same loop and arguments, and FILE lists one repository per line.

A repository is anything that git clone accepts on the workers. The keys of models and repositories belong to
the workers; never write them into jobs, because the server stores them.`,
		Example: `  hone-fleet submit jobs.toml --max-cost 50 --parallel 8
  hone-fleet submit --repos repositories.txt --max-cost 50 -- fix --check "make lint"`,
		RunE: func(c *cobra.Command, args []string) error { return a.submit(c.Context(), f, args) },
	}
	l := c.Flags()
	l.Float64Var(&f.cost, "max-cost", 0, "maximum cost of all jobs together, in USD")
	l.Int64Var(&f.in.Max.Tokens, "max-tokens", 0, "maximum number of tokens of all jobs together")
	l.IntVar(&f.in.Parallel, "parallel", 8, "maximum number of jobs at the same time")
	l.StringVar(&f.repos, "repos", "", "`FILE` that lists one repository per line")
	l.StringVarP(&f.model, "model", "m", "", "model of jobs that name none (default the workers')")
	l.StringVar(&f.in.ID, "id", "", "id of the batch (default a new one)")
	l.DurationVar(&f.in.Heartbeat, "heartbeat", time.Minute, "time after which a silent worker counts as lost")
	l.StringVar(&f.queue, "queue", queueName, "only workers with the same --queue get the jobs")
	l.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

func (a *app) submit(ctx context.Context, f submitFlags, args []string) (err error) {
	in := f.in
	in.Max.Cost = group.Dollars(f.cost)
	if in.Jobs, err = jobsOf(f, args); err != nil {
		return err
	}
	switch {
	case in.Max.Cost < 0, in.Max.Tokens < 0:
		return failure.Usage("a budget cannot be negative", "leave out --max-cost or --max-tokens for no limit of this kind")
	case in.Max.Cost == 0 && in.Max.Tokens == 0:
		return failure.Usage("a batch needs a budget", "add --max-cost 50, in USD, or --max-tokens 10000000")
	case in.Parallel < 1:
		return failure.Usage("--parallel must be greater than 0", "")
	case in.ID == "":
		in.ID = newID()
	case !job.ValidName(in.ID):
		return failure.Usage("an id has at most 60 letters, digits, -, _ and single dots between them", "leave out --id for a new one")
	}
	t, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := flow.Start(ctx, t, f.queue, in); errors.Is(err, flow.ErrExists) {
		return failure.Usage("a batch "+in.ID+" exists already", "choose another --id, or leave it out")
	} else if err != nil {
		return failure.Of(err, "")
	}
	if f.json {
		return a.printJSON(map[string]any{"id": in.ID, "jobs": len(in.Jobs)})
	}
	fmt.Fprintf(a.out, "submitted batch %s: %s, at most %s in all\nnext: hone-fleet show %s\n", in.ID,
		render.Count(len(in.Jobs), "job"), in.Max.String(), in.ID)
	return nil
}

func jobsOf(f submitFlags, args []string) (jobs []job.Job, err error) {
	const hint = "hone-fleet submit --help"
	file, read := f.repos, job.Read
	switch {
	case f.repos != "" && len(args) == 0:
		return nil, failure.Usage("--repos needs a loop after --", "hone-fleet submit --repos "+f.repos+" --max-cost 50 -- fix --check \"make test\"")
	case f.repos != "":
		each := job.Job{Loop: args[0], Args: args[1:]}
		read = func(file string, text []byte) ([]job.Job, error) { return job.ReadRepos(file, text, each) }
	case len(args) != 1:
		return nil, failure.Usage("submit takes one file with jobs, or --repos FILE and a loop", hint)
	default:
		file = args[0]
	}
	text, err := artifact.Input(file)
	if err == nil {
		jobs, err = read(file, text)
	}
	if err != nil {
		return nil, failure.UsageOf(err, hint)
	}
	for i := range jobs {
		jobs[i].Model = cmp.Or(jobs[i].Model, f.model)
	}
	return jobs, nil
}

// Batches are sorted by day with it.
func newID() string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails
	return time.Now().UTC().Format("20060102") + "-" + hex.EncodeToString(random[:])
}

func (a *app) answerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "answer ID JOB DIGEST=yes|no …",
		Short: "answer the questions of a job",
		Long: `answer approves or declines changes that wait for you. hone-fleet show ID prints each question with its
digest, and how to see the change. When you have answered all questions of a job, it continues.

A digest stands for one exact change of one file; its first 6 digits are enough. An answer applies to nothing
else.`,
		Example: `  hone-fleet answer 20261123-59cf5d guarded 4f1c22ab90de=yes`,
		Args:    batchArgs("the ID of a batch, a JOB, and DIGEST=yes or DIGEST=no", 3, -1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			return a.withBatch(ctx, args[0], func(t client.Client, s flow.Status) error { return a.answer(ctx, t, s, args[1], args[2:]) })
		},
	}
}

func (a *app) answer(ctx context.Context, t client.Client, s flow.Status, name string, words []string) error {
	show := "hone-fleet show " + s.ID
	j, err := jobOf(s, name)
	if err == nil && j.State != flow.NeedsYou {
		err = failure.Usage(fmt.Sprintf("job %s does not wait for an answer; its state: %s", name, j.State), show)
	}
	if err != nil {
		return err
	}
	answers, err := answersOf(j.Outcome.Questions, words, show)
	if err != nil {
		return err
	}
	if err := flow.Answer(ctx, t, s.ID, name, answers); err != nil {
		return serverFailure(err, s.ID)
	}
	fmt.Fprintf(a.out, "answered; %s continues when all its questions are; next: %s\n", name, show)
	return nil
}

// A word is DIGEST=yes or DIGEST=no. hint is that of the errors: the command that shows the questions.
func answersOf(questions []job.Question, words []string, hint string) (answers []job.Answer, err error) {
	for _, word := range words {
		digest, says, ok := strings.Cut(word, "=")
		if !ok || says != "yes" && says != "no" {
			return nil, failure.Usage(fmt.Sprintf("%q is not DIGEST=yes or DIGEST=no", word), hint)
		}
		fits := slices.DeleteFunc(slices.Clone(questions), func(q job.Question) bool { return len(digest) < 6 || !strings.HasPrefix(q.Digest, digest) })
		if len(fits) != 1 {
			return nil, failure.Usage(fmt.Sprintf("no single question of the job has a digest that begins with %q; give at least 6 digits", digest), hint)
		}
		answers = append(answers, job.Answer{Question: fits[0].Digest, Approved: says == "yes"})
	}
	return answers, nil
}

func jobOf(s flow.Status, name string) (flow.JobStatus, error) {
	i := slices.IndexFunc(s.Jobs, func(j flow.JobStatus) bool { return j.Name == name })
	if i < 0 {
		return flow.JobStatus{}, failure.Usage(fmt.Sprintf("batch %s has no job %s", s.ID, name), "hone-fleet show "+s.ID)
	}
	return s.Jobs[i], nil
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID [JOB …]",
		Short: "cancel a batch, or some of its jobs",
		Long: `cancel interrupts running jobs as Ctrl-C interrupts hone, and keeps the others from starting. The store keeps
the runs. Without a JOB, cancel applies to the whole batch.`,
		Args: batchArgs("the ID of a batch, and optionally its jobs", 1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := a.dial(c.Context())
			if err != nil {
				return err
			}
			defer t.Close()
			id, err := lastBatch(c.Context(), t, args[0])
			if err == nil {
				err = serverFailure(flow.Cancel(c.Context(), t, id, args[1:]...), id)
			}
			if err == nil {
				fmt.Fprintf(a.out, "asked the workers to stop; next: hone-fleet show %s\n", id)
			}
			return err
		},
	}
}
