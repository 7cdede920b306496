package leg

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"hone/fleet/job"
	"hone/fleet/store"
	"hone/workspace/clone"
)

// Export writes the run of a job, as far as the store has it, in the format of hone export.
// It changes nothing in the store, and a worker may work on the job at the same time. It
// needs the worker's Store, Key and Dir, and access to the repository, but no hone.
func (w *Worker) Export(ctx context.Context, batch string, j job.Job, out io.Writer) (err error) {
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return err
	}
	g := &leg{Worker: w, Leg: job.Leg{Batch: batch, Job: j}}
	if g.dir, err = os.MkdirTemp(w.Dir, "export-"); err != nil {
		return err
	}
	defer clone.Remove(g.dir)
	stored, _, err := store.Read(ctx, g.Store, g.name("manifest"), maxManifest)
	if err != nil {
		return err
	}
	if g.at, err = unseal(g.Key, stored, batch, j.Name); err != nil {
		return err
	}
	if g.at.Run == "" {
		return fmt.Errorf("job %s has no run yet", j.Name)
	}
	g.repo = filepath.Join(g.dir, "repo")
	if _, err := g.checkOut(ctx, j.Repo, j.Ref, g.at.Commit, g.repo); err != nil {
		return err
	}
	if err := g.know(ctx); err != nil {
		return err
	}
	kept := filepath.Join(g.dir, "objects")
	if err := os.Mkdir(kept, 0o700); err != nil {
		return err
	}
	events, _, err := g.fetchEvents(ctx, kept)
	if err != nil {
		return err
	}
	return g.writeBundle(out, events, kept)
}
