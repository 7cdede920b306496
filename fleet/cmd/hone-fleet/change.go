package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
)

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
