package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/client"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/group"
)

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
