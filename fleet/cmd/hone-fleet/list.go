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

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
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
