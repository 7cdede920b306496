// Package leg works on the jobs of a fleet: [Worker.Leg] is the Temporal activity of a leg.
//
// A leg is one hone process in a clone of the job's repository, in a temporary directory. It
// starts the job's run, or continues the run in the store, on any worker. hone runs with
// --ack: it makes no model call until the store has everything that the run recorded,
// including the reservation of the call. So if a worker is lost, at most the calls in
// progress are lost; those are charged in full.
//
// In the store, BATCH/JOB/log has numbered entries. Each says where the job stands, and may have a
// part of its run: a file of hone export, with the whole journal, and with contents that neither
// an earlier part nor the commit has. hone import reads the parts where the job continues. An entry has
// a MAC by a key that the workers share, so that no one else can make a worker run anything, and
// names the entry before it. Anyone who can write to the store can delete objects or restore an
// earlier state.
//
// An entry is never replaced. If another worker has taken over, a worker learns this when it
// writes the next entry, which it does before its next call, and stops.
//
// A stop of the run is a [job.Outcome], also if the activity was cancelled. An error means
// that the environment failed. Its details are a [job.Outcome] with what the run had spent,
// if that is known.
package leg

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"hone/fleet/job"
	"hone/fleet/store"
	"hone/history"
	"hone/journal"
	"hone/workspace/clone"
)

// Worker works on legs. Its methods may be called at the same time. Store, Key, Hone and
// Dir are required.
type Worker struct {
	Store store.Store
	Key   []byte // what all workers share; see [ReadKey]
	Hone  string // the program hone
	// Dir is a directory for the workers of this machine; they create it. Each process has
	// a subdirectory of its own, for clones.
	Dir string
	// Trust is what the jobs' repositories may run and open without a question: the value
	// of HONE_TRUST. Empty trusts nothing.
	Trust string
	// Args are flags of hone for each new run, such as --sandbox=hidden.
	Args []string
	// Env is the environment of hone and git, KEY=VALUE, with the keys of providers; nil
	// means that of this process, without the credentials of stores and of Temporal.
	Env []string
	// Patience is how long a leg retries a request that the store refuses; 0 means a minute.
	Patience time.Duration

	lock    sync.Mutex
	version string        // of hone; empty until it is needed
	place   string        // the directory of this process; empty until it is needed
	held    *journal.Lock // of place
}

// Heartbeat is the longest time between two heartbeats of a leg. A leg also learns from a
// heartbeat that it is cancelled.
const Heartbeat = 5 * time.Second

// Progress is the content of a leg's heartbeats.
type Progress struct {
	Round  int   `json:"round"`
	Tokens int64 `json:"tokens"`
}

// errStopping means that this worker stops.
var errStopping = errors.New("this worker is stopping; another one can continue")

// errSuperseded means that another worker continues the job.
var errSuperseded = errors.New("another worker has taken over this job")

// Leg works on a leg to its end.
func (w *Worker) Leg(ctx context.Context, l job.Leg) (job.Outcome, error) {
	g := &leg{Worker: w, Leg: l, term: Term{Worker: rand.Text()}}
	if activity.IsActivity(ctx) {
		i := activity.GetInfo(ctx)
		g.term.Scheduled, g.term.Attempt = i.ScheduledTime.UnixNano(), i.Attempt
	}
	return g.try(ctx)
}

func (g *leg) try(ctx context.Context) (job.Outcome, error) {
	o, err := g.work(ctx)
	// Unless the log was read, what an earlier try spent is unknown.
	known := g.at.Number > 0 || g.term.Attempt <= 1
	switch {
	case err == nil:
		return o, nil
	case known && ctx.Err() != nil && stopCause(ctx) == nil && !errors.Is(err, errSuperseded):
		return job.Outcome{Run: g.at.Run, Exit: 130, Kind: history.KindInterrupted, Why: err.Error(), Spent: g.at.Spent}, nil
	}
	var fatal *fatalError
	var details []any
	if known {
		details = []any{job.Outcome{Run: g.at.Run, Spent: g.at.Spent}}
	}
	return job.Outcome{}, temporal.NewApplicationErrorWithOptions(err.Error(), "leg", temporal.ApplicationErrorOptions{
		NonRetryable: errors.As(err, &fatal), Cause: err, Details: details,
	})
}

// fatalError is an error of the environment that a retry cannot fix.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

func fatal(format string, args ...any) error { return &fatalError{fmt.Errorf(format, args...)} }

type leg struct {
	*Worker
	job.Leg
	term   Term
	dir    string // of this leg
	repo   string // the clone, below dir
	at     entry  // the last one in the store
	sealed string // its seal
	now    atomic.Pointer[Progress]
}

func (g *leg) work(ctx context.Context) (o job.Outcome, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer g.heartbeats(ctx, stop)()
	err = g.Job.Valid()
	if !job.ValidName(g.Batch) {
		err = fmt.Errorf("%q is not the id of a batch", g.Batch)
	}
	if err != nil {
		return job.Outcome{Exit: 2, Kind: history.KindUsage, Why: err.Error()}, nil
	}
	if err := g.makeDir(); err != nil {
		return o, err
	}
	defer func() {
		if failed := clone.Remove(g.dir); failed != nil && err == nil {
			err = fmt.Errorf("remove the directory of the leg: %w", failed)
		}
	}()
	if err := g.takeOver(ctx); err != nil {
		return o, err
	}
	if g.at.Outcome != nil {
		return *g.at.Outcome, nil // an earlier try of this leg ended, but could not report it
	}
	if err := g.prepare(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return o, err
	}
	return g.drive(ctx, stop)
}

const legPrefix = "leg-"

func (g *leg) makeDir() error {
	place, err := g.takePlace()
	if err == nil {
		g.dir, err = os.MkdirTemp(place, legPrefix)
	}
	g.repo = filepath.Join(g.dir, "repo")
	return err
}

// It is the first one that no other process has locked. What a killed process left there is removed.
func (w *Worker) takePlace() (string, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	dir, err := filepath.Abs(w.Dir) // hone and git start in other directories
	if err != nil {
		return "", err
	}
	for n := 1; w.place == ""; n++ {
		place := filepath.Join(dir, fmt.Sprintf("worker-%d", n))
		if err := os.MkdirAll(place, 0o700); err != nil {
			return "", err
		}
		home, err := journal.OpenHomeAt(place, place+".lock")
		if err != nil {
			return "", err
		}
		lock, err := home.Lock()
		if err = errors.Join(err, home.Close()); errors.As(err, new(*journal.LockedError)) {
			continue
		}
		left, _ := filepath.Glob(filepath.Join(place, legPrefix+"*"))
		for _, dir := range left {
			err = errors.Join(err, clone.Remove(dir))
		}
		if err != nil {
			return "", err
		}
		w.place, w.held = place, lock
	}
	return w.place, nil
}

func (g *leg) prepare(ctx context.Context) (err error) {
	if g.at.Commit, err = g.checkOut(ctx, g.Job.Repo, g.Job.Ref, g.at.Commit, g.repo); err != nil || g.at.Run == "" {
		return err
	}
	return g.restore(ctx)
}

// Export writes the run of a job, as far as the store has it, to a file for hone import. It
// changes nothing in the store, and a worker may work on the job at the same time.
func (w *Worker) Export(ctx context.Context, batch string, j job.Job, file string) (err error) {
	g := &leg{Worker: w, Leg: job.Leg{Batch: batch, Job: j}}
	if err := g.makeDir(); err != nil {
		return err
	}
	defer clone.Remove(g.dir)
	if g.at, _, err = g.last(ctx); err != nil {
		return err
	}
	if g.at.Run == "" {
		return fmt.Errorf("job %s has no run yet", j.Name)
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	if err := g.prepare(ctx); err != nil {
		return err
	}
	return g.hone(ctx, "export", g.at.Run, "-o", file, "--force")
}

// It sends until the returned function is called. The leg is stopped when the worker stops.
func (g *leg) heartbeats(ctx context.Context, stop context.CancelCauseFunc) func() {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	every := Heartbeat
	if timeout := activity.GetInfo(ctx).HeartbeatTimeout; timeout > 0 {
		every = min(every, timeout/3)
	}
	end, tick := make(chan struct{}), time.NewTicker(every)
	var beating sync.WaitGroup
	beating.Go(func() {
		defer tick.Stop()
		stopping := activity.GetWorkerStopChannel(ctx)
		for {
			var now Progress
			if p := g.now.Load(); p != nil {
				now = *p
			}
			activity.RecordHeartbeat(context.WithoutCancel(ctx), now)
			select {
			case <-tick.C:
			case <-stopping:
				stop(errStopping)
				stopping = nil
			case <-end:
				return
			}
		}
	})
	return func() { close(end); beating.Wait() }
}

// withheld are prefixes of variables that hone and git do not get by default.
var withheld = []string{"AWS_", "TEMPORAL_"}

func (w *Worker) environ() []string {
	if w.Env != nil {
		return w.Env
	}
	return slices.DeleteFunc(os.Environ(), func(one string) bool {
		return slices.ContainsFunc(withheld, func(name string) bool { return strings.HasPrefix(one, name) })
	})
}

// refused matches messages of git after which a retry would fail as well: the repository or
// the branch does not exist, or the worker may not read it.
var refused = regexp.MustCompile(`(?i)not found|does not exist|does not appear to be a git repository|authentication failed|permission denied|could not read (username|password)|access denied|dubious ownership|couldn't find remote ref|not our ref|unable to find remote helper`)

// unreachable matches messages of git about a failed network.
var unreachable = regexp.MustCompile(`(?i)could not resolve host|timed out|connection (refused|reset)|unable to access .*error: 5\d\d|temporary failure`)

// There are no hooks and prompts.
func (w *Worker) git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	c.Dir = dir
	c.Env = append(slices.Clone(w.environ()), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	if !slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "GIT_SSH_COMMAND=") }) {
		c.Env = append(c.Env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	switch {
	case err == nil:
		return strings.TrimSpace(out.String()), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	err = fmt.Errorf("git %s: %s", args[0], strings.Join(strings.Fields(said.String()), " "))
	if refused.MatchString(said.String()) && !unreachable.MatchString(said.String()) {
		err = &fatalError{err}
	}
	return "", err
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// An empty commit means that of ref: a branch, a tag or a commit; an empty ref is the default branch. It returns the commit.
func (w *Worker) checkOut(ctx context.Context, repo, ref, commit, dir string) (found string, err error) {
	if repo == "" || strings.HasPrefix(repo, "-") || strings.HasPrefix(ref, "-") {
		return "", fatal("git cannot clone %q with ref %q", repo, ref)
	}
	if _, err := w.git(ctx, "", "clone", "-q", "--no-checkout", "--", repo, dir); err != nil {
		return "", err
	}
	names := []string{"refs/remotes/origin/" + ref, "refs/tags/" + ref, ref}
	if ref == "" {
		names = []string{"HEAD"}
	}
	if commit != "" {
		names, ref = []string{commit}, commit
	}
	for i := 0; i < len(names) && found == ""; i++ {
		found, _ = w.git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", names[i]+"^{commit}")
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	switch {
	case found != "":
	case fullHash.MatchString(ref): // no branch or tag has it any more
		if _, err := w.git(ctx, dir, "fetch", "-q", "origin", ref); err != nil {
			return "", err
		}
		found = ref
	case ref == "":
		return "", fatal("%s has no commit", repo)
	default:
		return "", fatal("%s has no branch, tag or commit %s", repo, ref)
	}
	_, err = w.git(ctx, dir, "checkout", "-q", "--detach", found)
	return found, err
}
