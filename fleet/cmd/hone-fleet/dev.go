package main

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/group"
	"hone/internal/excerpt"
	"hone/sandbox"
	"hone/sandbox/wall"
)

type devFlags struct {
	dir          string
	port, uiPort int
	bare         bool // no demo
	worker       workerFlags
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "run a whole fleet on this machine: a Temporal server, a worker and a demo",
		Long: `dev starts Temporal's development server and a worker, submits a demo of three repositories with scripted
models, and runs until Ctrl-C. The server listens on 127.0.0.1 only.

dev needs Temporal's command line, the program temporal, on your PATH or beside hone-fleet. In a clone of
hone, make temporal builds the tested version.

With --dir, batches are kept when dev ends. If you change --port, give the other commands --address.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.dev(c.Context(), f) },
	}
	c.Flags().StringVar(&f.dir, "dir", "", "directory for the server's state, the store and the demo (default a new temporary one)")
	c.Flags().IntVar(&f.port, "port", 7233, "port of the server")
	c.Flags().IntVar(&f.uiPort, "ui-port", 0, "port of the server's web pages (default --port + 1000)")
	c.Flags().BoolVar(&f.bare, "bare", false, "do not run the demo")
	f.worker.registerShared(c)
	return c
}

func (a *app) dev(ctx context.Context, f devFlags) error {
	program, err := findProgram("temporal", false)
	if err != nil {
		return failure.Of(errors.New("the program temporal is neither on your PATH nor beside hone-fleet"),
			"install Temporal's command line, or run make temporal in a clone of hone")
	}
	if f.dir == "" {
		f.dir, err = os.MkdirTemp("", "hone-fleet-")
	} else if f.dir, err = filepath.Abs(f.dir); err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err != nil {
		return failure.Of(err, "")
	}
	if f.uiPort == 0 {
		f.uiPort = f.port + 1000
	}
	for _, port := range []int{f.port, f.uiPort} {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return failure.Usage(fmt.Sprintf("port %d is in use", port), "choose others with --port and --ui-port")
		}
		l.Close()
	}
	a.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(runServer(ctx, program, f))
	}()
	err = a.work(ctx, f)
	stop(nil)
	<-ended
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return failure.Of(cause, "")
	}
	return err
}

func (a *app) work(ctx context.Context, f devFlags) error {
	t, err := a.awaitServer(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	w := &f.worker
	w.store, w.key, w.dir = filepath.Join(f.dir, "store"), filepath.Join(f.dir, "fleet.key"), filepath.Join(f.dir, "work")
	w.queue, w.parallel, w.trust = queueName, 2, "1"
	if _, err := os.Stat(w.key); err != nil {
		if err := os.WriteFile(w.key, []byte(rand.Text()+rand.Text()), 0o600); err != nil {
			return failure.Of(err, "")
		}
	}
	legs, err := w.leg()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "server: %s, with its state in %s\npages:  http://127.0.0.1:%d\nfor results: --store %s --key %s\n",
		a.address, f.dir, f.uiPort, w.store, w.key)
	stop, err := startWorker(t, *w, legs)
	if err != nil {
		return err
	}
	defer stop()
	if !f.bare {
		if err := a.runDemo(ctx, t, f); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.out, "\nthe server and the worker run until you press Ctrl-C")
	<-ctx.Done()
	return nil
}

// Any earlier end than that of the context is an error.
func runServer(ctx context.Context, program string, f devFlags) error {
	keeper := wall.NewKeeper(f.dir)
	defer keeper.Close()
	r, err := wall.None{Grace: 5 * time.Second, Keeper: keeper}.Run(ctx, sandbox.Command{
		Argv: []string{program, "server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(f.port), "--ui-port", strconv.Itoa(f.uiPort),
			"--db-filename", filepath.Join(f.dir, "temporal.db"), "--log-level", "error"},
		Dir: f.dir, Env: os.Environ(), MaxOutput: 64 << 10,
	})
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case err != nil:
		return err
	}
	return fmt.Errorf("the Temporal server ended with status %d: %s", r.Exit, excerpt.End(string(r.Stderr), 1000))
}

func (a *app) awaitServer(ctx context.Context) (client.Client, error) {
	for {
		t, err := a.dial(ctx)
		if err == nil {
			_, err = t.CheckHealth(ctx, &client.CheckHealthRequest{})
			if err == nil {
				return t, nil
			}
			t.Close()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sample contains three small projects, each with the scripted replies of a model.
//
//go:embed all:demo
var sample embed.FS

func (a *app) runDemo(ctx context.Context, t client.Client, f devFlags) error {
	jobs, err := demoJobs(ctx, filepath.Join(f.dir, "demo"))
	if err != nil {
		return failure.Of(err, "")
	}
	in := flow.Input{ID: newID(), Jobs: jobs, Max: group.Amount{Tokens: 200_000}, Parallel: 2}
	if err := flow.Start(ctx, t, queueName, in); err != nil {
		return serverFailure(err, in.ID)
	}
	fmt.Fprintf(a.out, `
The demo is batch %s: one job in each of three repositories. The check reports missing files. The models
are scripted; everything else is real. The job empty needs three rounds. The job guarded changes a
protected file, and asks you first.

`, in.ID)
	s, err := settled(ctx, t, in.ID)
	if err != nil {
		return nil // Ctrl-C
	}
	a.printStatus(s)
	return nil
}

func demoJobs(ctx context.Context, dir string) (jobs []job.Job, err error) {
	_, none := os.Stat(dir)
	if none != nil {
		files, err := fs.Sub(sample, "demo")
		if err == nil {
			err = os.CopyFS(dir, files)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"small", "empty", "guarded"} {
		repo := filepath.Join(dir, "repositories", name)
		for _, line := range []string{"init --quiet --initial-branch=main", "add --all",
			"-c user.name=hone -c user.email=hone@localhost -c commit.gpgSign=false commit --quiet --message=sample"} {
			if err == nil && none != nil {
				_, err = gitOutput(ctx, repo, strings.Fields(line)...)
			}
		}
		j := job.Job{Name: name, Repo: repo, Loop: "fix", Model: "script/" + filepath.Join(dir, "replies", name+".script"), Args: []string{"--check", "sh check.sh"}}
		if name == "guarded" {
			j.Args = append(j.Args, "--rounds", "1")
		}
		jobs = append(jobs, j)
	}
	return jobs, err
}
