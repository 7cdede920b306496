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
	"hone/history"
	"hone/internal/child"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/sandbox/wall"
	"hone/tool"
	"hone/workspace"
	"hone/workspace/clone"
)

// Job is a case with a model: what its tries have in common.
type Job struct {
	Case, Model string // their names
	Base        Base
	Command     []string     // the command line of a try, which starts in its tree
	Limits      group.Amount // those of the command line and of the configuration
	Env         []string     // of the child
	// Judge is a command line that must pass after the run; empty means none. JudgeFiles
	// are the directory that is copied over the tree before; empty means none. Wall are
	// flags of hone sandbox, for the judge.
	Judge, JudgeFiles string
	Wall              []string
}

// Try is one of the tries of a job.
type Try struct {
	*Job
	Time int    // 1 is the first
	Key  string // identifies all that its result depends on
}

func (t *Try) String() string { return fmt.Sprintf("%s, %s, try %d", t.Case, t.Model, t.Time) }

// Evaluation makes tries. [Open] returns one; the exported fields but Record and Cache are
// the caller's to set before Run.
type Evaluation struct {
	Record   *Record
	Cache    string       // directory of its copies
	Limits   group.Amount // of all tries together
	Parallel int          // how many run at the same time; at least 1
	Keep     bool         // keep the copies of finished tries
	Version  string       // of hone
	// Say tells the user what happens, in one line. Done is called for each new result.
	Say  func(text string)
	Done func(Result) error

	home    *journal.Home
	lock    *journal.Lock
	group   group.Group
	mu      sync.Mutex
	done    int           // tries with a result
	failed  map[*Job]bool // a try could not run
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

// Open opens the evaluation with a record, and locks it until [Evaluation.Close]. It removes
// the copies of other evaluations that were last used long ago.
func Open(record string) (*Evaluation, error) {
	r, err := OpenRecord(record)
	if err != nil {
		return nil, err
	}
	all, err := group.Cache("eval")
	if err == nil {
		err = os.MkdirAll(all, 0o700)
	}
	if err == nil {
		all, err = filepath.EvalSymlinks(all)
	}
	e := &Evaluation{Record: r, Cache: filepath.Join(all, fmt.Sprintf("%x", sha256.Sum256([]byte(record)))[:16])}
	at := filepath.Join(e.Cache, "lock") // beside the copies: a run in a directory locks out runs below it
	if err == nil {
		err = os.MkdirAll(at, 0o700)
	}
	if err == nil {
		e.home, err = journal.OpenHome(at)
	}
	if err != nil {
		return nil, err
	}
	if e.lock, err = e.home.Lock(); err != nil {
		e.home.Close()
		if errors.As(err, new(*journal.LockedError)) {
			err = loop.Usage("another hone eval works on "+record, "wait for it, or name another file with --output")
		}
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(e.Cache, now, now)
	entries, _ := os.ReadDir(all)
	for _, entry := range entries { // what cannot be removed stays for the next time
		if info, err := entry.Info(); err == nil && info.ModTime().Before(now.Add(-maxAge)) {
			_ = group.Remove(filepath.Join(all, entry.Name(), "tries"))
			_ = clone.Remove(filepath.Join(all, entry.Name()))
		}
	}
	e.group.Keeper = wall.NewKeeper(e.Cache)
	e.group.Keeper.EndEarlier()
	return e, nil
}

// Close unlocks the evaluation.
func (e *Evaluation) Close() {
	e.group.Keeper.Close()
	e.lock.Unlock()
	e.home.Close()
}

// Some checks depend on the directory's name.
func (e *Evaluation) dir(t *Try) string {
	return filepath.Join(e.Cache, "tries", fmt.Sprintf("%s-%d-%.16s", t.Case, t.Time, t.Key), filepath.Base(t.Base.Origin))
}

// Run makes all tries without a result, those first that an earlier process has begun.
// Tries whose result is recorded only count for the budget.
func (e *Evaluation) Run(ctx context.Context, tries []*Try) (Stopped, error) {
	e.failed = map[*Job]bool{}
	e.group.Bank, e.group.Width = group.Bank{Cap: e.Limits}, e.Parallel
	spent := &e.group.Bank.Spent
	var begun, fresh []*Try
	for _, t := range tries {
		if r, ok := e.Record.Results[t.Key]; ok {
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
			defer func() { <-places }()
			e.mu.Lock()
			wanted := e.stopped.Budget == "" && e.err == nil && !e.failed[t.Job]
			e.mu.Unlock()
			if wanted {
				r, err := e.try(ctx, t)
				e.finish(ctx, t, r, err, len(tries))
			}
		})
	}
	working.Wait()
	e.stopped.Spent = fmt.Sprintf("%s tokens, $%.4f, %s", render.Tokens(spent.Tokens), spent.Cost.Float(), render.Duration(spent.Time))
	return e.stopped, errors.Join(e.err, context.Cause(ctx))
}

func (e *Evaluation) finish(ctx context.Context, t *Try, r Result, err error, all int) {
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
		e.Say(fmt.Sprintf("[%d/%d] %s: %s", e.done, all, t, r.Line()))
		if e.err = e.Done(r); !e.Keep {
			_ = group.RemoveCopy(filepath.Dir(e.dir(t))) // what cannot be removed stays until it is swept
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
	m := &group.Member{Name: t.Key, Dir: dir, Env: t.Env, Own: t.Limits, New: func(ctx context.Context) ([]string, error) {
		_ = group.RemoveCopy(filepath.Dir(dir))
		return t.Command, t.Base.Make(ctx, filepath.Dir(dir))
	}}
	if !e.final(m, o) {
		o, err = e.group.Work(ctx, m, o)
		switch {
		case err != nil:
		case o.Died != nil:
			err = o.Died
		case !e.final(m, o):
			err = fmt.Errorf("%s; its copy is in %s", o.End().Why, dir)
		}
	}
	end, used := o.End(), o.Used()
	r = Result{Key: t.Key, Case: t.Case, Model: t.Model, Time: t.Time, Passed: end.Kind == hone.KindDone, Kind: string(end.Kind), Why: end.Why,
		Tokens: used.Tokens, Cost: new(0.0), Seconds: used.Time.Round(time.Millisecond).Seconds(), Run: o.Run, Hone: e.Version, At: time.Now().UTC().Truncate(time.Second)}
	if o.Past != nil {
		now := o.Past.Facts()
		r.Rounds, r.Cost = now.State.Round, now.Ledger.Price()
		if s := now.State.Score; s != nil {
			r.Gain = new(s.Gain(s.First, s.Best))
		}
	}
	if err == nil {
		r.Malformed, r.Refused, err = faultsOf(o, dir)
	}
	if err != nil || !r.Passed || t.Judge == "" {
		return r, err
	}
	said, err := e.Test(ctx, t.Job, dir, t.Judge, t.JudgeFiles)
	if err != nil {
		return r, fmt.Errorf("the judge cannot run: %w; its copy is in %s", err, dir)
	}
	if said != "" {
		r.Passed, r.Kind, r.Why = false, "judge", "the judge failed: "+said
	}
	return r, nil
}

// The run was not interrupted, it did not fail, and no budget below its own limits stopped it.
func (e *Evaluation) final(m *group.Member, o group.Outcome) bool {
	switch o.End().Kind {
	case "", hone.KindInterrupted, hone.KindUsage, hone.KindFailed:
		return false
	}
	return e.group.Short(m, o) == group.Parts{}
}

// maxTest is how long a judge, or a check before the first try, may take.
const maxTest = 10 * time.Minute

// The files of the judge replace what a model put in their places. That is done in the walls of
// the judge, because a model's commands wrote the tree: a link in it leads nowhere else there.
const withFiles = `tar -C "$0" -cf - . | tar -xmof - && exec sh -c "$1"`

// Test runs a command line in a tree, behind walls, once files are copied over it; empty files
// are none. It returns why the command line failed; empty if it passed. An error means that it
// could not run.
func (e *Evaluation) Test(ctx context.Context, j *Job, dir, line, files string) (said string, err error) {
	args := slices.Concat([]string{"sandbox", "--quiet", "-C", dir}, j.Wall)
	if files == "" {
		args = append(args, "--", "sh", "-c", line)
	} else {
		if err := checkSizes(files); err != nil {
			return "", err
		}
		args = append(args, "--ro", files, "--", "sh", "-c", withFiles, files, line)
	}
	limited, cancel := context.WithTimeout(ctx, maxTest)
	defer cancel()
	r, err := child.Command{Dir: dir, Args: args, Env: j.Env, Keeper: e.group.Keeper}.Output(limited)
	failed, ok := errors.AsType[*child.Failure](err)
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return fmt.Sprintf("it did not end within %s", maxTest), nil
	case err == nil || !ok || failed.Why != "" && r.Exit != 3:
		return "", cmp.Or(err, ctx.Err())
	case failed.Why == "" && check.NotRun(r.Exit):
		return "", fmt.Errorf("exit status %d: %s", r.Exit, r.Said[strings.LastIndexByte(r.Said, '\n')+1:])
	}
	return cmp.Or(failed.Why, fmt.Sprintf("exit status %d", r.Exit)), nil
}

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

type reply struct{ round, session, turn int }

// malformed are the replies that hone could not read, or with a call of a tool that it could not read; refused those with an
// edit that it did not make.
func faultsOf(o group.Outcome, dir string) (malformed, refused int, err error) {
	home, err := group.OpenHome(dir)
	if home == nil {
		return 0, 0, err
	}
	defer home.Close()
	bad, denied, known := map[reply]bool{}, map[reply]bool{}, map[int]bool{}
	note := func(replies map[reply]bool, e history.Event, is bool) {
		if is {
			replies[reply{e.Step.Round, e.Step.Session, e.Step.Turn}] = true
			known[e.Step.Round] = true
		}
	}
	for _, e := range o.Past.Events() {
		if e.Step == nil {
			continue
		}
		switch p := e.Payload.(type) {
		case history.Replied:
			note(bad, e, p.Finish != model.Stop && p.Finish != model.Calls)
		case history.ToolCall:
			note(bad, e, p.Refused == hone.RefusedJSON || p.Refused == hone.RefusedName)
		case history.ToolResult:
			begin, _ := o.Past.Begin(*e.Step)
			if call, ok := begin.Payload.(history.ToolCall); ok && call.Refused == "" && (call.Tool == "write" || call.Tool == "edit") {
				result, err := history.ReadResult[tool.Result](e.Event, home.Get)
				note(denied, e, err == nil && result.Failed)
			}
		case history.StepResult:
			if e.Step.Name == history.StepReview {
				review, err := history.ReadResult[history.Reviewed](e.Event, home.Get)
				note(denied, e, err == nil && slices.ContainsFunc(review.Verdicts, func(v workspace.Verdict) bool {
					return v.Ruling == workspace.Deny || v.Ruling == workspace.Unread
				}))
			}
		}
	}
	// Replies of rounds without a conversation may have another form than the loop wants.
	for _, s := range o.Past.Facts().States {
		if !known[s.Round] && slices.ContainsFunc(s.Findings, func(g check.Finding) bool { return g.Source == check.SourceReply }) {
			bad[reply{round: s.Round}] = true
		}
	}
	return len(bad), len(denied), nil
}
