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

	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/internal/render"
)

// batch is a line of the list.
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
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return usage("--limit must be greater than 0", "")
			}
			t, err := a.dial(c.Context())
			if err != nil {
				return err
			}
			defer t.Close()
			list, err := batches(c.Context(), t, limit)
			switch {
			case err != nil:
				return serverFailure(err, "")
			case asJSON:
				return a.printJSON(list)
			}
			a.printBatches(list)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&limit, "limit", 20, "maximum number of batches")
	return c
}

// batches returns the newest batches with their status.
func batches(ctx context.Context, t *connection, limit int) ([]batch, error) {
	list, err := started(ctx, t)
	if err != nil {
		return nil, err
	}
	list = list[:min(limit, len(list))]
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	all := t.read(ctx, ids...)
	for i, id := range ids {
		if r := all[id]; r.err != nil {
			list[i].Unread = r.err.Error()
		} else {
			list[i].Status = &r.Status
		}
	}
	return list, nil
}

// started returns all batches, the newest first. It reads all pages, because the server lists
// running batches first.
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

// plainNames returns an error if a batch has names that submit refuses. They become names of
// files and branches here, and others can start workflows without submit.
func plainNames(s flow.Status) error {
	for _, j := range s.Jobs {
		if !job.ValidName(s.ID) || !job.ValidName(j.Name) {
			return fmt.Errorf("job %q of batch %q was not submitted by hone-fleet", j.Name, s.ID)
		}
	}
	return nil
}

func (a *app) printBatches(list []batch) {
	if len(list) == 0 {
		fmt.Fprintln(a.out, "no batches; next: hone-fleet submit jobs.toml --max-cost 50")
		return
	}
	rows := [][]string{{"BATCH", "STARTED", "JOBS", "DONE", "SPENT", "STATE"}}
	for _, b := range list {
		if b.Status == nil {
			rows = append(rows, []string{b.ID, ago(b.Started), "", "", "", render.Line(b.Unread)})
			continue
		}
		s := b.Status
		rows = append(rows, []string{b.ID, ago(b.Started), strconv.Itoa(len(s.Jobs)), strconv.Itoa(s.Counts[flow.Done]),
			spentText(s.Bank.Spent, s.Bank.Cap), batchState(*s)})
	}
	for _, line := range render.Aligned(rows, false, false, true, true) {
		fmt.Fprintln(a.out, line)
	}
	for _, b := range list {
		if b.Status != nil && b.Status.Counts[flow.NeedsYou] > 0 {
			fmt.Fprintf(a.out, "next: hone-fleet show %s\n", b.ID)
		}
	}
}

// batchState counts the jobs of a batch that are not done, by state, in one line.
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

func ago(t time.Time) string { return render.Duration(time.Since(t).Round(time.Second)) + " ago" }

// printJSON prints a value as indented JSON.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// dialBatch connects to the server, and returns the id of a batch: of the newest one for "last".
func (a *app) dialBatch(ctx context.Context, id string) (*connection, string, error) {
	t, err := a.dial(ctx)
	if err != nil {
		return nil, "", err
	}
	if id, err = lastBatch(ctx, t, id); err != nil {
		t.Close()
		return nil, "", err
	}
	return t, id, nil
}

// lastBatch returns the id of a batch: of the newest one for "last".
func lastBatch(ctx context.Context, t client.Client, id string) (string, error) {
	if id != "last" {
		return id, nil
	}
	list, err := started(ctx, t)
	switch {
	case err != nil:
		return "", serverFailure(err, "")
	case len(list) == 0:
		return "", usage("no batches", "hone-fleet submit jobs.toml --max-cost 50")
	}
	return list[0].ID, nil
}
