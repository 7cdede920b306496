package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/fleet/store"
	"hone/internal/render"
)

type removeFlags struct {
	store     string
	forgotten bool
}

func (a *app) removeCommand() *cobra.Command {
	var f removeFlags
	c := &cobra.Command{
		Use:   "remove [ID …] --store DIR|s3://…",
		Short: "remove ended batches from the store",
		Long: `remove deletes the runs and the results of batches from the store. Without an ID, it lists the batches in the
store, and deletes nothing. It refuses a batch that has not ended.

A server forgets a batch some days after its end, when its retention period is over. With --forgotten, remove also
deletes a batch that the server does not know: first make sure that the store belongs to this server.`,
		RunE: func(c *cobra.Command, args []string) error { return a.remove(c.Context(), f, args) },
	}
	c.Flags().StringVar(&f.store, "store", os.Getenv(storeVariable), "store of the workers: DIR or s3://BUCKET (default "+storeVariable+")")
	c.Flags().BoolVar(&f.forgotten, "forgotten", false, "also delete batches that the server does not know")
	return c
}

func (a *app) remove(ctx context.Context, f removeFlags, ids []string) error {
	s, err := openStore("remove", f.store)
	if err != nil {
		return err
	}
	t, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if len(ids) == 0 {
		return a.listStored(ctx, t, s)
	}
	for _, id := range ids {
		if err := a.removeOne(ctx, t, s, id, f.forgotten); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) removeOne(ctx context.Context, t client.Client, s store.Store, id string, forgotten bool) error {
	id, err := lastBatch(ctx, t, id)
	if err != nil {
		return err
	}
	switch working, err := flow.Working(ctx, t, id); {
	case errors.Is(err, flow.ErrUnknown) && forgotten:
	case errors.Is(err, flow.ErrUnknown):
		return failure.Usage("the server does not know batch "+id, "if the store belongs to this server: hone-fleet remove "+id+" --forgotten")
	case err != nil:
		return serverFailure(err, id)
	case slices.Contains(working, flow.BatchID(id)):
		return failure.Usage("batch "+id+" has not ended", "hone-fleet cancel "+id)
	case len(working) > 0:
		return failure.Usage(fmt.Sprintf("batch %s was terminated, but these legs still run: %s", id, strings.Join(working, ", ")),
			"try again in some seconds; if no worker runs, start one, or terminate the legs in Temporal")
	}
	n, err := removeBatch(ctx, s, id)
	if err != nil {
		return failure.Of(err, "")
	}
	if n == 0 {
		return failure.Usage("the store has nothing of batch "+id, "list what it has: hone-fleet remove")
	}
	fmt.Fprintf(a.out, "removed %s: %s\n", id, render.Count(n, "object"))
	return nil
}

func removeBatch(ctx context.Context, s store.Store, id string) (n int, err error) {
	if !job.ValidName(id) {
		return 0, fmt.Errorf("%q is not the id of a batch", id)
	}
	names, err := s.List(ctx, id+"/")
	for _, name := range names {
		if err == nil {
			err = s.Delete(ctx, name)
		}
	}
	return len(names), err
}

func (a *app) listStored(ctx context.Context, t client.Client, s store.Store) error {
	names, err := s.List(ctx, "")
	if err != nil {
		return failure.Of(err, "")
	}
	var ids []string // in the order of names, which is sorted
	objects := map[string]int{}
	for _, name := range names {
		id, _, _ := strings.Cut(name, "/")
		if objects[id]++; objects[id] == 1 {
			ids = append(ids, id)
		}
	}
	rows := [][]string{{"BATCH", "OBJECTS", "STATE"}}
	for _, id := range ids {
		state := "open"
		working, err := flow.Working(ctx, t, id)
		switch {
		case errors.Is(err, flow.ErrUnknown):
			state = "the server does not know it"
		case err != nil:
			return serverFailure(err, id)
		case len(working) == 0:
			state = "ended"
		}
		rows = append(rows, []string{id, strconv.Itoa(objects[id]), state})
	}
	a.printTable(rows, false, true)
	return nil
}
