// Package eval compares models on a user's own cases.
//
// [Load] reads a file of cases, and [Suite.FindBase] finds the tree of each. A [Job] is a
// case with a model, and a [Try] is one run of it: a member of a group (package group), in a
// copy of the tree in the user's cache. [Evaluation.Run] makes all tries that its [Record]
// does not have yet, and [NewReport] adds up their results.
//
// A try is recorded when it has a result, so that an evaluation that was stopped or killed
// can continue: it does not repeat recorded tries, and resumes runs that had begun, without
// paying for their replies twice.
//
// The package does not decide whether the user trusts what a tree runs and opens.
package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hone"
	"hone/check"
	"hone/group"
	"hone/internal/child"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/sandbox/wall"
	"hone/workspace/clone"
)

// Job is a case with a model: what its tries have in common.
type Job struct {
	Case, Model string // their names
	Base        Base
	// Command is the command line of a try, which starts in its tree.
	Command []string
	// Limits are those of the command line and of the configuration.
	Limits group.Amount
	// Env is the environment of the child.
	Env []string
	// Judge is a command line that must pass after the run; empty means none. JudgeFiles
	// are the directory that is copied over the tree before; empty means none. JudgeWall
	// are flags of hone sandbox.
	Judge, JudgeFiles string
	JudgeWall         []string // of Check, too
	// Check is the check, unless its loop runs that before it asks a model; else empty.
	Check string
}

// Try is one of the tries of a job.
type Try struct {
	*Job
	Time int    // 1 is the first
	Key  string // identifies all that its result depends on
}

func (t *Try) String() string { return fmt.Sprintf("%s, %s, try %d", t.Case, t.Model, t.Time) }

// Evaluation makes tries.
type Evaluation struct {
	Record   *Record
	Cache    string       // directory of its copies, which [Open] returned
	Limits   group.Amount // of all tries together
	Parallel int          // how many run at the same time; at least 1
	Keep     bool         // keep the copies of finished tries
	Version  string       // of hone
	// Say tells the user what happens, in one line. Done is called for each new result.
	Say  func(text string)
	Done func(Result) error

	group   group.Group
	mu      sync.Mutex
	total   int
	done    int
	checked map[string]func() bool // by the case; see [Evaluation.passesAlready]
	failed  map[*Job]bool          // a try could not run
	stopped Stopped
	err     error // the record cannot be written
}

// Stopped is how an evaluation ended, apart from its results.
type Stopped struct {
	Budget string   // why it did not pay for a try; empty if it paid for all
	Faults []string // why tries could not run
	Spent  string   // by all tries, for the user
}

// maxAge is how long the copies of an evaluation are kept after its last use.
const maxAge = 30 * 24 * time.Hour

// Open returns the directory in the user's cache for the copies of the evaluation with a
// record, and locks it until unlock is called. It removes those of other evaluations that
// were last used long ago.
func Open(record string) (cache string, unlock func(), err error) {
	all, err := group.Cache("eval")
	if err == nil {
		err = os.MkdirAll(all, 0o700)
	}
	if err == nil {
		all, err = filepath.EvalSymlinks(all)
	}
	cache = filepath.Join(all, fmt.Sprintf("%x", sha256.Sum256([]byte(record)))[:16])
	at := filepath.Join(cache, "lock") // beside the copies: a run in a directory locks out runs below it
	if err == nil {
		err = os.MkdirAll(at, 0o700)
	}
	if err != nil {
		return "", nil, err
	}
	home, err := journal.OpenHome(at)
	if err != nil {
		return "", nil, err
	}
	lock, err := home.Lock()
	if err != nil {
		home.Close()
		if errors.As(err, new(*journal.LockedError)) {
			err = loop.Usage("another hone eval works on "+record, "wait for it, or name another file with --output")
		}
		return "", nil, err
	}
	now := time.Now()
	_ = os.Chtimes(cache, now, now)
	entries, _ := os.ReadDir(all)
	for _, entry := range entries { // what cannot be removed stays for the next time
		if info, err := entry.Info(); err == nil && info.ModTime().Before(now.Add(-maxAge)) {
			_ = group.Remove(filepath.Join(all, entry.Name(), "tries"))
			_ = clone.Remove(filepath.Join(all, entry.Name()))
		}
	}
	return cache, func() { lock.Unlock(); home.Close() }, nil
}

// Some checks depend on the directory's name.
func (e *Evaluation) dir(t *Try) string {
	return filepath.Join(e.Cache, "tries", fmt.Sprintf("%s-%d-%.16s", t.Case, t.Time, t.Key), filepath.Base(t.Base.Origin))
}

func (e *Evaluation) copy(ctx context.Context, t *Try) error {
	e.remove(t)
	return t.Base.Make(ctx, filepath.Dir(e.dir(t)))
}

// What cannot be removed stays until it is swept.
func (e *Evaluation) remove(t *Try) { _ = group.RemoveCopy(filepath.Dir(e.dir(t))) }

// Run makes all tries without a result, those first that an earlier process has begun.
// Tries whose result is recorded only count for the budget.
func (e *Evaluation) Run(ctx context.Context, tries []*Try) (Stopped, error) {
	e.failed, e.checked, e.total = map[*Job]bool{}, map[string]func() bool{}, len(tries)
	e.group = group.Group{Bank: group.Bank{Cap: e.Limits}, Width: e.Parallel, Keeper: wall.NewKeeper(e.Cache)}
	defer e.group.Keeper.Close()
	e.group.Keeper.EndEarlier()
	spent := &e.group.Bank.Spent
	var begun, fresh []*Try
	for _, t := range tries {
		if r, ok := e.Record.Result(t.Key); ok {
			e.done++
			*spent = spent.Plus(r.used())
		} else if o, err := group.Read(ctx, e.dir(t)); err == nil && o.Past != nil {
			begun = append(begun, t)
			*spent = spent.Plus(o.Used())
		} else {
			fresh = append(fresh, t)
		}
	}
	waiting := slices.Concat(begun, fresh)
	if len(waiting) > 0 {
		if err := e.Record.CanAdd(); err != nil {
			return Stopped{}, err
		}
	}
	var working sync.WaitGroup
	places := make(chan struct{}, e.Parallel)
	for _, t := range waiting {
		places <- struct{}{}
		working.Go(func() {
			if e.wanted(t) {
				r, err := e.try(ctx, t)
				e.finish(ctx, t, r, err)
			}
			<-places
		})
	}
	working.Wait()
	e.stopped.Spent = fmt.Sprintf("%s tokens, $%.4f, %s", render.Tokens(spent.Tokens), spent.Cost.Float(), render.Duration(spent.Time))
	return e.stopped, errors.Join(e.err, context.Cause(ctx))
}

func (e *Evaluation) wanted(t *Try) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped.Budget == "" && e.err == nil && !e.failed[t.Job]
}

func (e *Evaluation) finish(ctx context.Context, t *Try, r Result, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case errors.Is(err, group.ErrShort):
		e.stopped.Budget = strings.TrimSuffix("the limits of this evaluation are reached: "+r.Why, ": ")
	case ctx.Err() != nil:
	case err != nil:
		e.failed[t.Job] = true
		e.stopped.Faults = append(e.stopped.Faults, fmt.Sprintf("%s: %v", t, err))
		e.Say(fmt.Sprintf("%s: could not run: %s", t, render.Line(err.Error())))
	default:
		e.done++
		if e.err = e.Record.Add(r); e.err != nil {
			return
		}
		e.Say(fmt.Sprintf("[%d/%d] %s: %s", e.done, e.total, t, r.Line()))
		if e.err = e.Done(r); !e.Keep {
			e.remove(t)
		}
	}
}

// After an error the try must be tried again; then Why of the result says how its run ended, if it did.
func (e *Evaluation) try(ctx context.Context, t *Try) (r Result, err error) {
	dir := e.dir(t)
	o, err := group.Read(ctx, dir)
	if err != nil {
		return r, err
	}
	if o.Past == nil {
		if e.passesAlready(ctx, t) {
			r = e.newResult(t, o)
			r.Passed, r.Kind, r.Why = false, Already, already
			return r, ctx.Err()
		}
	}
	m := &group.Member{Name: t.Key, Dir: dir, Env: t.Env, Own: t.Limits,
		New: func(ctx context.Context) ([]string, error) { return t.Command, e.copy(ctx, t) }}
	if !e.final(m, o) {
		if o, err = e.group.Work(ctx, m, o); err == nil && o.Died != nil {
			err = o.Died
		}
		if err == nil && !e.final(m, o) {
			err = fmt.Errorf("%s; its copy is in %s", o.End().Why, dir)
		}
	}
	if r = e.newResult(t, o); err != nil {
		return r, err
	}
	switch r.Malformed, r.Refused, err = faultsOf(o, dir); {
	case err != nil:
	case r.Passed && r.Rounds == 0:
		r.Passed, r.Kind, r.Why = false, Already, already
	case r.Passed && t.Judge != "":
		var files []string
		if t.JudgeFiles != "" {
			files, err = []string{t.JudgeFiles}, checkSizes(t.JudgeFiles)
		}
		said := ""
		if err == nil {
			said, err = e.inWalls(ctx, t, t.Judge, files...)
		}
		if err != nil {
			return r, fmt.Errorf("the judge cannot run: %w; its copy is in %s", err, dir)
		}
		if said != "" {
			r.Passed, r.Kind, r.Why = false, "judge", "the judge failed: "+said
		}
	}
	return r, err
}

// The run was not interrupted, it did not fail, and no budget below its own limits stopped it.
func (e *Evaluation) final(m *group.Member, o group.Outcome) bool {
	switch o.End().Kind {
	case "", hone.KindInterrupted, hone.KindUsage, hone.KindFailed:
		return false
	}
	return e.group.Short(m, o) == group.Parts{}
}

const already = "the check passes already, without a model"

// The judge's result is missing.
func (e *Evaluation) newResult(t *Try, o group.Outcome) Result {
	end, used := o.End(), o.Used()
	r := Result{Key: t.Key, Case: t.Case, Model: t.Model, Time: t.Time, Passed: end.Kind == hone.KindDone, Kind: string(end.Kind), Why: end.Why,
		Tokens: used.Tokens, Seconds: used.Time.Round(time.Millisecond).Seconds(), Run: o.Run, Hone: e.Version, At: time.Now().UTC().Truncate(time.Second)}
	usd := 0.0
	r.Cost = &usd
	if o.Past != nil {
		r.Rounds, r.Cost = o.Past.Facts().State.Round, o.Past.Facts().Ledger.Price()
		if s := o.Past.Facts().State.Score; s != nil {
			gain := s.Gain(s.First, s.Best)
			r.Gain = &gain
		}
	}
	return r
}

// It runs once, before the first try. It runs none if the loop does that itself, or if a judge decides.
func (e *Evaluation) passesAlready(ctx context.Context, t *Try) bool {
	if t.Check == "" || t.Judge != "" {
		return false
	}
	e.mu.Lock()
	passes := e.checked[t.Case]
	if passes == nil {
		passes = sync.OnceValue(func() bool {
			if err := e.copy(ctx, t); err != nil {
				return false
			}
			said, err := e.inWalls(ctx, t, t.Check)
			return err == nil && said == ""
		})
		e.checked[t.Case] = passes
	}
	e.mu.Unlock()
	return passes()
}

// maxJudge is how long a judge, or a check before the first try, may take.
const maxJudge = 10 * time.Minute

// The files of the judge replace what a model put in their places. That is done in the walls of
// the judge, because a model's commands wrote the tree: a link in it leads nowhere else there.
const withFiles = `tar -C "$0" -cf - . | tar -xmof - && exec sh -c "$1"`

// A sparse file costs its owner nothing, and fills the disk when it is copied.
func checkSizes(dir string) error {
	const most = 64 << 20 // bytes of a file
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > most {
			return cmp.Or(err, fmt.Errorf("%s is larger than %d MiB", path, most>>20))
		}
		return nil
	})
}

// It returns why the command line failed; empty if it passed. An error means that it could not run.
func (e *Evaluation) inWalls(ctx context.Context, t *Try, line string, files ...string) (said string, err error) {
	args := slices.Concat([]string{"sandbox", "--quiet", "-C", e.dir(t)}, t.JudgeWall)
	for _, dir := range files {
		args = append(args, "--ro", dir, "--", "sh", "-c", withFiles, dir, line)
	}
	if len(files) == 0 {
		args = append(args, "--", "sh", "-c", line)
	}
	limited, cancel := context.WithTimeout(ctx, maxJudge)
	defer cancel()
	r, err := child.Command{Dir: e.dir(t), Args: args, Env: t.Env, Keeper: e.group.Keeper}.Output(limited)
	failed, ok := errors.AsType[*child.Failure](err)
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return fmt.Sprintf("it did not end within %s", maxJudge), nil
	case err == nil || !ok || failed.Why != "" && r.Exit != 3:
		return "", cmp.Or(err, ctx.Err())
	case failed.Why == "" && check.NotRun(r.Exit):
		return "", fmt.Errorf("exit status %d: %s", r.Exit, r.Said[strings.LastIndexByte(r.Said, '\n')+1:])
	}
	return cmp.Or(failed.Why, fmt.Sprintf("exit status %d", r.Exit)), nil
}
