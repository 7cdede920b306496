package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"hone"
	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/leg"
	"hone/group"
	"hone/internal/render"
)

type batch struct {
	ID      string       `json:"id"`
	Started time.Time    `json:"started"`
	Status  *flow.Status `json:"status,omitempty"`
	Unread  string       `json:"unread,omitempty"` // why there is no status
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "list batches, the newest first, and which of them wait for you",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.list(c.Context(), limit, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&limit, "limit", 20, "maximum number of batches")
	return c
}

func (a *app) list(ctx context.Context, limit int, asJSON bool) error {
	if limit < 1 {
		return failure.Usage("--limit must be greater than 0", "")
	}
	t, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	list, err := started(ctx, t)
	if err != nil {
		return serverFailure(err, "")
	}
	list = list[:min(limit, len(list))]
	var ids []string
	for _, b := range list {
		ids = append(ids, b.ID)
	}
	all := readAll(ctx, t, ids...)
	rows, next := [][]string{{"BATCH", "STARTED", "JOBS", "DONE", "SPENT", "STATE"}}, ""
	for i, b := range list {
		row := []string{b.ID, render.Duration(time.Since(b.Started).Round(time.Second)) + " ago"}
		if r := all[b.ID]; r.err != nil {
			list[i].Unread = r.err.Error()
			row = append(row, "", "", "", render.Line(list[i].Unread))
		} else {
			list[i].Status = &r.Status
			row = append(row, strconv.Itoa(len(r.Jobs)), strconv.Itoa(r.Counts[flow.Done]), spentText(r.Bank.Spent, r.Bank.Cap), batchState(r.Status))
			if r.Counts[flow.NeedsYou] > 0 {
				next += fmt.Sprintf("next: hone-fleet show %s\n", b.ID)
			}
		}
		rows = append(rows, row)
	}
	switch {
	case asJSON:
		return a.printJSON(list)
	case len(list) == 0:
		fmt.Fprintln(a.out, "no batches; next: hone-fleet submit jobs.toml --max-cost 50")
	default:
		a.printTable(rows, false, false, true, true)
		fmt.Fprint(a.out, next)
	}
	return nil
}

func (a *app) printTable(rows [][]string, right ...bool) {
	for _, line := range render.Aligned(rows, right...) {
		fmt.Fprintln(a.out, line)
	}
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// All pages are read, because the server lists running batches first.
func started(ctx context.Context, t client.Client) (list []batch, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType = 'hone batch' AND ExecutionStatus != 'ContinuedAsNew'"}
	for {
		page, err := t.ListWorkflow(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, x := range page.GetExecutions() {
			id := strings.TrimPrefix(x.GetExecution().GetWorkflowId(), flow.BatchID(""))
			list = append(list, batch{ID: id, Started: x.GetStartTime().AsTime()})
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	slices.SortFunc(list, func(x, y batch) int { return y.Started.Compare(x.Started) })
	return list, nil
}

func batchState(s flow.Status) string {
	var parts []string
	for _, state := range flow.States() {
		if n := s.Counts[state]; n > 0 && state != flow.Done {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(parts) == 0 {
		return "all done"
	}
	return strings.Join(parts, ", ")
}

func lastBatch(ctx context.Context, t client.Client, id string) (string, error) {
	if id != "last" {
		return id, nil
	}
	list, err := started(ctx, t)
	switch {
	case err != nil:
		return "", serverFailure(err, "")
	case len(list) == 0:
		return "", failure.Usage("no batches", "hone-fleet submit jobs.toml --max-cost 50")
	}
	return list[0].ID, nil
}

type showFlags struct{ json, wait bool }

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show ID",
		Short: "show the jobs of a batch, its budget, and the questions that wait for you",
		Long: `show prints the state, rounds, tokens and cost of each job of a batch, and why it stopped. It also prints how
much of the budget is spent, lent to jobs, and free. ID may be "last", the newest batch.

With --wait, show waits until every job has ended or waits for you. It exits with 0 if all jobs are done, 4 if
one waits for you, 3 if a budget is used up, and 1 if jobs failed or were cancelled.`,
		Args: batchArgs("the ID of a batch", 1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBatch(c.Context(), args[0], func(t client.Client, s flow.Status) error { return a.show(c.Context(), f, t, s) })
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().BoolVar(&f.wait, "wait", false, "wait until every job has ended or waits for you")
	return c
}

func (a *app) show(ctx context.Context, f showFlags, t client.Client, s flow.Status) (err error) {
	if f.wait {
		if s, err = settled(ctx, t, s.ID); err != nil {
			return err
		}
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State != flow.Running {
			continue
		}
		d, err := t.DescribeWorkflowExecution(ctx, flow.JobID(s.ID, j.Name), "")
		if err != nil {
			continue // it has just ended
		}
		for _, a := range d.GetPendingActivities() {
			var p leg.Progress
			if converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &p) == nil {
				j.Outcome.Rounds = max(j.Outcome.Rounds, p.Round)
				j.Outcome.Spent.Tokens = max(j.Outcome.Spent.Tokens, p.Tokens)
			}
		}
	}
	if f.json {
		err = a.printJSON(s)
	} else {
		a.printStatus(s)
	}
	if f.wait && err == nil {
		return unfinished(s)
	}
	return err
}

// No job will then continue by itself. If the server is down, it tries again.
func settled(ctx context.Context, t client.Client, id string) (s flow.Status, err error) {
	for {
		if s, err = flow.Read(ctx, t, id); err == nil && (s.Ended || s.Counts[flow.Queued]+s.Counts[flow.Waiting]+s.Counts[flow.Running] == 0) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// It has the exit status of a settled batch; nil if all jobs are done.
func unfinished(s flow.Status) error {
	switch {
	case s.Counts[flow.NeedsYou] > 0:
		return &failure.Error{Kind: hone.KindBlocked, Why: render.Count(s.Counts[flow.NeedsYou], "job") + " waiting for your answer", Hint: "hone-fleet show " + s.ID}
	case s.Counts[flow.NoBudget] > 0:
		return &failure.Error{Kind: hone.KindBudget, Why: render.Count(s.Counts[flow.NoBudget], "job") + " without budget", Hint: "submit them again, with a higher --max-cost or --max-tokens"}
	case s.Counts[flow.Done] < len(s.Jobs):
		return &failure.Error{Kind: hone.KindRounds, Why: render.Count(len(s.Jobs)-s.Counts[flow.Done], "job") + " not done"}
	}
	return nil
}

func (a *app) printStatus(s flow.Status) {
	free := ", no limit"
	if s.Bank.Cap != (group.Amount{}) {
		free = fmt.Sprintf(", %v free", s.Bank.Free)
	}
	state := batchState(s)
	if done := s.Counts[flow.Done]; done < len(s.Jobs) {
		state = fmt.Sprintf("%d done, %s", done, state)
	}
	fmt.Fprintf(a.out, "batch %s: %s, at most %d at a time: %s\n", s.ID, render.Count(len(s.Jobs), "job"), s.Parallel, state)
	fmt.Fprintf(a.out, "budget: %s spent, %v lent%s\n\n", spentText(s.Bank.Spent, s.Bank.Cap), s.Bank.Lent, free)
	rows := [][]string{{"JOB", "STATE", "ROUNDS", "TOKENS", "COST", "WHY"}}
	for _, j := range s.Jobs {
		rows = append(rows, []string{j.Name, string(j.State), strconv.Itoa(j.Outcome.Rounds), render.Tokens(j.Outcome.Spent.Tokens),
			j.Outcome.Spent.Cost.String(), render.Line(whyOf(j))})
	}
	a.printTable(rows, false, false, true, true, true)
	for _, j := range s.Jobs {
		if j.State != flow.NeedsYou {
			continue
		}
		fmt.Fprintf(a.out, "\n%s waits for you:\n", j.Name)
		for _, q := range j.Outcome.Questions {
			fmt.Fprintf(a.out, "  approve the change of %s? %s\n", render.Line(q.Path), render.Line(q.Why))
		}
		fmt.Fprintf(a.out, "  to see the change: hone-fleet results %s %s --run . --store DIR --key FILE\n", s.ID, j.Name)
		fmt.Fprintf(a.out, "  next: %s\n", answerLine(s.ID, j))
	}
	if s.Ended && s.Counts[flow.Done] > 0 {
		fmt.Fprintf(a.out, "\nnext: hone-fleet results %s --store DIR\n", s.ID)
	}
}

func answerLine(id string, j flow.JobStatus) string {
	line := fmt.Sprintf("hone-fleet answer %s %s", id, j.Name)
	for _, q := range j.Outcome.Questions {
		line += " " + q.Digest[:min(len(q.Digest), 12)] + "=yes"
	}
	return line + "   (or =no)"
}

// For a job that runs it is not why its last leg ended.
func whyOf(j flow.JobStatus) string {
	if j.Why != "" || j.State == flow.Running {
		return j.Why
	}
	return j.Outcome.Why
}

func spentText(spent, limit group.Amount) string {
	if limit == (group.Amount{}) {
		return spent.String()
	}
	if limit.Cost == 0 {
		return render.Tokens(spent.Tokens) + " of " + limit.String()
	}
	return spent.String() + " of " + limit.String()
}
