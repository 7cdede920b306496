package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"hone"
	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/fleet/leg"
	"hone/fleet/store"
	"hone/internal/excerpt"
	"hone/internal/render"
)

type resultsFlags struct {
	store  string
	dir    string // of the clone for branch
	all    bool
	json   bool
	branch bool
	push   bool
	patch  string
	bundle string
	run    string
	key    string
	each   string // the command of --pr-command
}

func (a *app) resultsCommand() *cobra.Command {
	var f resultsFlags
	c := &cobra.Command{
		Use:   "results ID [JOB …] --store DIR|s3://…",
		Short: "get what the jobs of a batch changed, as branches, patches or bundles",
		Long: `results lists what the jobs of a batch changed, or delivers it. It merges nothing. The result of a job is the
branch hone/ID/JOB, on top of the commit from which the job started.

Without a JOB, results takes all jobs that are done; with --all, also jobs that stopped before.

--run writes the run of a job, finished or not, to a file for hone import. hone show then shows what happened,
and the change that an open question is about.

--pr-command runs a command with sh for each result, in a temporary clone with the branch checked out. The command
gets the variables HONE_BATCH, HONE_JOB, HONE_REPO, HONE_REF, HONE_BRANCH, HONE_RUN and HONE_WHY. A model wrote
the files in the clone: the command should not execute them.`,
		Example: `  hone-fleet results last --store s3://hone --branch -C ~/src/project
  hone-fleet results last --store s3://hone --push --pr-command 'gh pr create --fill --head "$HONE_BRANCH"'`,
		Args: batchArgs("the ID of a batch, and optionally its jobs", 1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBatch(c.Context(), args[0], func(_ client.Client, s flow.Status) error { return a.results(c.Context(), f, s, args[1:]) })
		},
	}
	l := c.Flags()
	l.StringVar(&f.store, "store", os.Getenv(storeVariable), "store of the workers: DIR or s3://BUCKET (default "+storeVariable+")")
	l.BoolVar(&f.branch, "branch", false, "fetch the branches into the clone in the current directory, if it has the commits they start from")
	l.StringVarP(&f.dir, "dir", "C", ".", "the clone for --branch")
	l.BoolVar(&f.push, "push", false, "push each branch to its job's repository")
	l.StringVar(&f.patch, "patch", "", "write patches for git am to `DIR`")
	l.StringVar(&f.bundle, "bundle", "", "write bundles for git fetch to `DIR`")
	l.StringVar(&f.run, "run", "", "write the runs as files for hone import to `DIR`; needs --key")
	l.StringVar(&f.key, "key", "", "file with the workers' key, for --run")
	l.StringVar(&f.each, "pr-command", "", "run `CMD` for each result")
	l.BoolVar(&f.all, "all", false, "also take jobs that are not done")
	l.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

const storeVariable = "HONE_FLEET_STORE"

type result struct {
	Job    string     `json:"job"`
	State  flow.State `json:"state"`
	Repo   string     `json:"repo"`
	Ref    string     `json:"ref,omitempty"`
	Run    string     `json:"run"`
	Branch string     `json:"branch"`
	Object string     `json:"object"` // its name in the store
	Why    string     `json:"why,omitempty"`
}

func (a *app) results(ctx context.Context, f resultsFlags, s flow.Status, names []string) error {
	list, err := chosen(s, f.all, names)
	deliver := f.branch || f.push || f.patch != "" || f.bundle != "" || f.each != ""
	switch {
	case err != nil:
		return err
	case f.run == "" && !deliver && f.json:
		return a.printJSON(list)
	case f.run == "" && !deliver:
		rows := [][]string{{"JOB", "STATE", "BRANCH", "REPOSITORY"}}
		for _, r := range list {
			rows = append(rows, []string{r.Job, string(r.State), r.Branch, render.Line(r.Repo)})
		}
		a.printTable(rows)
		fmt.Fprintf(a.out, "%s of %d jobs; next: hone-fleet results %s --store DIR, with --branch, --push, --patch DIR, --bundle DIR or --pr-command CMD\n",
			render.Count(len(list), "result"), len(s.Jobs), s.ID)
		return nil
	}
	if f.store == "" {
		return failure.Usage("results needs the workers' store", "add --store DIR or --store s3://BUCKET, or set "+storeVariable)
	}
	from, err := store.Open(f.store)
	if err != nil {
		return failure.UsageOf(err, "")
	}
	if f.run != "" {
		return a.exportRuns(ctx, f, from, s, names)
	}
	return delivery{app: a, flags: f, batch: s.ID, from: from}.deliver(ctx, list)
}

// Only the user can read the files.
func (a *app) exportRuns(ctx context.Context, f resultsFlags, from store.Store, s flow.Status, names []string) error {
	if f.key == "" {
		return failure.Usage("--run needs the workers' key", "add --key FILE")
	}
	key, err := leg.ReadKey(f.key)
	if err != nil {
		return failure.UsageOf(err, "")
	}
	hone, err := findHone("")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "hone-run-")
	if err == nil {
		defer os.RemoveAll(tmp)
		err = os.MkdirAll(f.run, 0o755)
	}
	if err != nil {
		return failure.Of(err, "")
	}
	w := &leg.Worker{Store: from, Key: key, Hone: hone, Dir: tmp}
	for _, j := range s.Jobs {
		if j.Outcome.Run == "" || len(names) > 0 && !slices.Contains(names, j.Name) {
			continue
		}
		file := filepath.Join(f.run, j.Name+".hone")
		if err := w.Export(ctx, s.ID, job.Job{Name: j.Name, Repo: j.Repo, Ref: j.Ref}, file); err != nil {
			return failure.Of(fmt.Errorf("%s: %w", j.Name, err), "")
		}
		fmt.Fprintf(a.out, "%s: run %s is in %s; next, in a clone of %s: hone import %s\n", j.Name, j.Outcome.Run, file, render.Line(j.Repo), file)
		if !j.State.Ended() {
			fmt.Fprintln(a.out, "  it is a copy: the fleet continues the run, and does not see what hone resume does in the clone")
		}
		if j.State == flow.NeedsYou {
			fmt.Fprintf(a.out, "  next: %s\n", answerLine(s.ID, j))
		}
	}
	return nil
}

func chosen(s flow.Status, all bool, names []string) (list []result, err error) {
	for _, name := range names {
		if _, err := jobOf(s, name); err != nil {
			return nil, err
		}
	}
	for _, j := range s.Jobs {
		wanted := slices.Contains(names, j.Name) || len(names) == 0 && (all || j.State == flow.Done)
		if wanted && j.Outcome.Result != "" {
			list = append(list, result{j.Name, j.State, j.Repo, j.Ref, j.Outcome.Run, "hone/" + s.ID + "/" + j.Name, j.Outcome.Result, whyOf(j)})
		}
	}
	return list, nil
}

type delivery struct {
	app   *app
	flags resultsFlags
	batch string
	from  store.Store
}

// errElsewhere means that the clone lacks the commit from which the job started.
var errElsewhere = errors.New("the result is of another repository")

func (d delivery) deliver(ctx context.Context, list []result) error {
	if _, err := gitOutput(ctx, d.flags.dir, "rev-parse", "--git-dir"); d.flags.branch && err != nil {
		return failure.Usage(fmt.Sprintf("%s is not a clone of a repository", d.flags.dir), "name the clone with -C DIR, or use --push, --patch DIR or --bundle DIR")
	}
	broken, elsewhere := 0, 0
	for _, r := range list {
		err := d.one(ctx, r)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errElsewhere):
			elsewhere++
		default:
			d.app.say("error", fmt.Sprintf("%s: %v", r.Job, err))
			broken++
		}
	}
	if all := render.Count(len(list), "result"); elsewhere > 0 && elsewhere == len(list) {
		return failure.Usage(fmt.Sprintf("none of %s belongs to the repository in %s", all, d.flags.dir), "name its clone with -C DIR, or fetch there the commit from which the job started; hone-fleet results "+d.batch+" shows the repositories")
	}
	fmt.Fprintf(d.app.out, "%d of %s delivered\n", len(list)-elsewhere-broken, render.Count(len(list)-elsewhere, "result"))
	if broken > 0 {
		return &failure.Error{Kind: hone.KindFailed, Why: render.Count(broken, "result") + " not delivered"}
	}
	return nil
}

func (d delivery) one(ctx context.Context, r result) error {
	tmp, err := os.MkdirTemp("", "hone-result-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	bundle := filepath.Join(tmp, "result.bundle")
	in, err := d.from.Get(ctx, r.Object)
	if err != nil {
		return err
	}
	defer in.Close()
	content, err := io.ReadAll(in)
	if err == nil {
		err = os.WriteFile(bundle, content, 0o600)
	}
	if err != nil {
		return err
	}
	ref, err := resultRef(ctx, r, bundle)
	if err != nil {
		return err
	}
	if d.flags.branch {
		if _, err := gitOutput(ctx, d.flags.dir, "bundle", "verify", "--quiet", bundle); err != nil {
			return errElsewhere
		}
		if err := fetchBranch(ctx, d.flags.dir, bundle, ref, r.Branch); err != nil {
			return err
		}
		fmt.Fprintf(d.app.out, "%s: branch %s\n", r.Job, r.Branch)
	}
	if d.flags.bundle != "" {
		err := os.MkdirAll(d.flags.bundle, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(d.flags.bundle, r.Job+".bundle"), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if d.flags.push || d.flags.patch != "" || d.flags.each != "" {
		return d.inClone(ctx, r, bundle, ref, filepath.Join(tmp, "clone"))
	}
	return nil
}

func (d delivery) inClone(ctx context.Context, r result, bundle, ref, clone string) error {
	if _, err := gitOutput(ctx, ".", "clone", "--quiet", "--no-checkout", "--", r.Repo, clone); err != nil {
		return err
	}
	if err := fetchBranch(ctx, clone, bundle, ref, r.Branch); err != nil {
		return err
	}
	if d.flags.patch != "" {
		dir, err := filepath.Abs(filepath.Join(d.flags.patch, r.Job))
		if err != nil {
			return err
		}
		files, err := gitOutput(ctx, clone, "format-patch", "--output-directory", dir, r.Branch, "--not", "--remotes")
		switch {
		case err != nil:
			return err
		case files == "":
			fmt.Fprintf(d.app.out, "%s: no patch, because the repository already has the result\n", r.Job)
		default:
			fmt.Fprintf(d.app.out, "%s: patches in %s\n", r.Job, dir)
		}
	}
	if d.flags.push {
		if _, err := gitOutput(ctx, clone, "push", "--quiet", "origin", r.Branch); err != nil {
			return err
		}
		fmt.Fprintf(d.app.out, "%s: pushed %s to %s\n", r.Job, r.Branch, render.Line(r.Repo))
	}
	if d.flags.each == "" {
		return nil
	}
	if _, err := gitOutput(ctx, clone, "checkout", "--quiet", r.Branch); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "sh", "-c", d.flags.each)
	c.Dir, c.Stdout, c.Stderr = clone, d.app.out, d.app.err
	c.Env = append(os.Environ(), "HONE_BATCH="+d.batch, "HONE_JOB="+r.Job, "HONE_REPO="+r.Repo, "HONE_REF="+r.Ref,
		"HONE_BRANCH="+r.Branch, "HONE_RUN="+r.Run, "HONE_WHY="+r.Why)
	if err := c.Run(); err != nil {
		return fmt.Errorf("the command ended with %w", err)
	}
	return nil
}

// Others may write to the store, so the branch must be the worker's commit, which is in the name of the object.
func resultRef(ctx context.Context, r result, bundle string) (string, error) {
	heads, err := gitOutput(ctx, filepath.Dir(bundle), "bundle", "list-heads", bundle)
	if err != nil {
		return "", err
	}
	commit, ref, ok := strings.Cut(heads, " ")
	if !ok || strings.ContainsAny(ref, "\n*:+ ") {
		return "", errors.New("the result is not a bundle of one branch")
	}
	if commit+".bundle" != path.Base(r.Object) {
		return "", fmt.Errorf("%s in the store is not what the worker stored: it has commit %s", r.Object, commit)
	}
	return ref, nil
}

// It overwrites no other work.
func fetchBranch(ctx context.Context, clone, bundle, ref, branch string) error {
	_, err := gitOutput(ctx, clone, "fetch", "--quiet", "--no-tags", bundle, ref+":refs/heads/"+branch)
	return err
}

func gitOutput(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	var out, said bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &out, &said
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(excerpt.End(said.String(), 1000)))
	}
	return strings.TrimSpace(out.String()), nil
}
