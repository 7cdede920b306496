package site

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"hone"
	"hone/cmd/hone/answer"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/page"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/undo"
	"hone/cmd/hone/view"
	"hone/cmd/hone/web"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/child"
	"hone/journal"
	"hone/sandbox"
)

// Actor lets the user act on runs from the page. It implements [web.Actor]. A run that it
// resumes is a child of this process; each directory has at most one.
type Actor struct {
	Options
	source *Source
	keeper *sandbox.Keeper
	done   context.Context // when it ends, the children do

	mu       sync.Mutex
	said     map[string]string    // about the last action, by run
	children map[string]*resuming // by directory
	running  sync.WaitGroup
}

// resuming is a run that a child of this process resumes.
type resuming struct {
	run   string
	stop  func()
	over  atomic.Bool   // its end is recorded
	ended chan struct{} // closed when the process has ended
}

var _ web.Actor = (*Actor)(nil)

// Options say for whom an actor acts.
type Options struct {
	Own     *OwnRun           // the run of this process; nil if it has none
	Say     func(text string) // says in the terminal what the user did on the page
	Environ []string          // of the processes that it starts
	Keys    []string          // of providers, which no record may contain
}

// Allow lets the user act on the runs of a source. The caller must close the source after the
// context has ended.
func (s *Source) Allow(ctx context.Context, o Options) {
	s.acts = &Actor{Options: o, source: s, keeper: sandbox.NewKeeper(""), done: ctx, said: map[string]string{}, children: map[string]*resuming{}}
}

// Actor returns what acts for the user; nil if the user may only look.
func (s *Source) Actor() *Actor { return s.acts }

// Close waits until the children of the actor have ended.
func (s *Source) Close() {
	x := s.acts
	if x == nil {
		return
	}
	x.mu.Lock()
	for _, c := range x.children {
		x.Say("stopping run " + journal.ShortRun(c.run) + ", which was resumed on the page")
	}
	x.mu.Unlock()
	x.running.Wait()
	x.keeper.Close()
}

// state returns a text that changes when the actor has something new to show about a run.
func (x *Actor) state(run string) string {
	if x == nil {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	text := x.said[run]
	if x.owns(run) {
		if q := x.Own.desk.question(); q != nil {
			text += q.Digest(run)
		}
	}
	return text
}

func (x *Actor) owns(run string) bool { return x.Own != nil && x.Own.id == run }

// setNote sets what the page of a run says about the last action.
func (x *Actor) setNote(run, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.said[run] = text
}

// Act does what a form asks for.
func (x *Actor) Act(ctx context.Context, run, action string, form url.Values) error {
	acts := map[string]func(context.Context, *journal.Home, string, url.Values) error{"stop": x.stop, "resume": x.resume, "answer": x.answer, "undo": x.undo}
	act := acts[action]
	if act == nil {
		return web.ErrNotFound
	}
	home, err := x.source.find(run)
	if err != nil {
		return err
	}
	defer home.Close()
	x.Say(fmt.Sprintf("requested on the page: %s %s", action, journal.ShortRun(run)))
	x.setNote(run, "")
	if err := act(ctx, home, run, form); err != nil {
		x.setNote(run, explanation(err, failure.Elsewhere(home.Workspace())))
		x.Say("refused: " + err.Error())
	}
	return nil
}

// explanation returns an error with what to type next. at is empty, or the flag -C.
func explanation(err error, at string) string {
	if f, _ := failure.Explain(err, at); f.Hint != "" {
		return err.Error() + "\nnext: " + f.Hint
	}
	return err.Error()
}

// stop stops the process that works on a run, as Ctrl-C does.
func (x *Actor) stop(_ context.Context, home *journal.Home, run string, _ url.Values) error {
	if x.owns(run) {
		x.Own.stop()
		return nil
	}
	x.mu.Lock()
	c := x.children[home.Workspace()]
	x.mu.Unlock()
	switch {
	case c != nil && c.run == run:
		c.stop()
		return nil
	case !recorded.Working(home, run):
		return failure.Usage("no process works on this run", "")
	}
	err := home.SignalHolder(syscall.SIGTERM)
	if errors.Is(err, errors.ErrUnsupported) {
		return failure.Usage("on this system the page cannot stop the run of another process", "press Ctrl-C in its terminal")
	}
	return err
}

// resume resumes a run with the limits of a form.
func (x *Actor) resume(ctx context.Context, home *journal.Home, run string, form url.Values) error {
	r, err := recorded.Read(home, run)
	if err != nil {
		return err
	}
	args := []string{}
	for _, l := range view.Limits(r.Past.Limits()) {
		if value := strings.TrimSpace(form.Get(l.Flag)); value != "" && value != l.Value {
			args = append(args, "--"+l.Flag+"="+value)
		}
	}
	return x.start(ctx, home.Workspace(), run, args)
}

// start resumes a run in a child. It returns when the child has recorded an event, or has
// ended.
func (x *Actor) start(ctx context.Context, dir, run string, args []string) error {
	during, one, err := x.reserve(ctx, dir, run)
	if err != nil {
		return err
	}
	begun := make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	c := child.Command{Dir: dir, Args: slices.Concat([]string{"resume"}, args, []string{"--", run}), Env: x.Environ, Keeper: x.keeper, Event: func(e history.Event) {
		_, isEnd := e.Payload.(hone.End)
		one.over.Store(isEnd)
		once()
	}}
	go func() {
		defer x.running.Done()
		defer close(one.ended)
		r, err := c.Run(during)
		one.stop()
		if err = cmp.Or(err, r.Error()); err != nil {
			x.setNote(run, refusal(r, err))
		}
		x.Say(fmt.Sprintf("run %s, which was resumed on the page, ended with status %d", journal.ShortRun(run), r.Exit))
		x.mu.Lock()
		delete(x.children, dir)
		x.mu.Unlock()
	}()
	select {
	case <-begun:
	case <-one.ended:
	case <-ctx.Done():
	}
	return nil
}

// reserve makes a child the only one of a directory. It waits for another child only if its
// run is over. The returned context ends when the child must stop.
func (x *Actor) reserve(ctx context.Context, dir, run string) (context.Context, *resuming, error) {
	for {
		x.mu.Lock()
		if err := x.done.Err(); err != nil { // Close need not wait for it
			x.mu.Unlock()
			return nil, nil, err
		}
		c := x.children[dir]
		if c == nil {
			defer x.mu.Unlock()
			during, stop := context.WithCancel(x.done)
			one := &resuming{run: run, stop: stop, ended: make(chan struct{})}
			x.children[dir] = one
			x.running.Add(1)
			return during, one, nil
		}
		x.mu.Unlock()
		if !c.over.Load() {
			return nil, nil, failure.Usage("run "+journal.ShortRun(c.run)+", which was resumed on the page, still works in this directory", "stop it, or wait until it ends")
		}
		select {
		case <-c.ended:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// refusal returns why a child did nothing, with the hint that it printed.
func refusal(r child.Result, err error) string {
	text := err.Error()
	for line := range strings.Lines(r.Said) {
		if hint, ok := strings.CutPrefix(line, "hone: hint: "); ok {
			text += "\nnext: " + strings.TrimSpace(hint)
		}
	}
	return text
}

// answer gives the answers of a form, which names each question by its digest.
func (x *Actor) answer(ctx context.Context, home *journal.Home, run string, form url.Values) error {
	args := []string{}
	for _, digest := range slices.Sorted(maps.Keys(form)) {
		value := form.Get(digest)
		if !answer.Valid(digest + "=" + value) {
			return failure.Usage("the form has an answer that is neither yes nor no", "reload the page")
		}
		if x.owns(run) {
			return x.Own.desk.answer(digest, value == "yes")
		}
		args = append(args, "--answer="+digest+"="+value)
	}
	if len(args) == 0 {
		return failure.Usage("no question was answered", "choose yes or no")
	}
	return x.start(ctx, home.Workspace(), run, args)
}

// Preview returns a page with the plan of an undo.
func (x *Actor) Preview(ctx context.Context, run, action string, _ url.Values) (v web.View, err error) {
	if action != "undo" {
		return v, web.ErrNotFound
	}
	home, err := x.source.find(run)
	if err != nil {
		return v, err
	}
	defer home.Close()
	p := page.Plan{Run: run, Short: journal.ShortRun(run)}
	err = x.withPlan(ctx, home, run, func(r *runs.Recorded, plan *undo.Plan) error {
		p.Restored, p.Force = plan.Restorable, "hone undo "+p.Short+failure.Elsewhere(home.Workspace())+" --force"
		for _, c := range plan.Conflicts {
			p.Conflicts = append(p.Conflicts, page.Fact{Name: c.Path, Text: c.Why})
		}
		if len(p.Restored) > 0 {
			p.Digest = planDigest(r, plan)
		}
		v, err := plan.Preview(ctx)
		p.Left = v.Left
		return err
	})
	if err != nil {
		x.setNote(run, explanation(err, failure.Elsewhere(home.Workspace())))
		return v, web.ErrRefused
	}
	part, err := x.source.html.Plan(p)
	return web.View{Title: "undo " + p.Short, Place: p.Short, Parts: []page.Part{part}}, err
}

// withPlan locks the workspace of a run, and calls do with the run and the plan of its undo.
func (x *Actor) withPlan(ctx context.Context, home *journal.Home, run string, do func(*runs.Recorded, *undo.Plan) error) error {
	r, err := recorded.ForChange(ctx, home.Workspace(), run, "undo")
	if err != nil {
		return err
	}
	defer r.Close()
	plan, err := undo.PlanFor(ctx, r, 0, false)
	if err != nil {
		return err
	}
	return do(r, plan)
}

// planDigest returns a digest of what an undo would do with the current files.
func planDigest(r *runs.Recorded, plan *undo.Plan) string {
	b, _ := json.Marshal([]any{r.Journal.Run(), r.Journal.Head(), plan.Restorable, plan.Conflicts, plan.Outside, plan.Doubtful, plan.Own}) // texts only
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// undo undoes a run if the plan is still the one that the user saw.
func (x *Actor) undo(ctx context.Context, home *journal.Home, run string, form url.Values) error {
	return x.withPlan(ctx, home, run, func(r *runs.Recorded, plan *undo.Plan) error {
		if form.Get("plan") != planDigest(r, plan) {
			return failure.Usage("nothing was undone, because the files or the run have changed since the preview", "preview the undo again")
		}
		done, err := plan.CarryOut(context.WithoutCancel(ctx), false, x.Keys)
		if err == nil {
			x.setNote(run, strings.TrimSpace(strings.Join(done.Lines, "\n")))
		}
		return err
	})
}

// add adds to the page of a run what the user can do.
func (x *Actor) add(ctx context.Context, v web.View, o report.Overview) (web.View, error) {
	acts, err := x.acts(ctx, o)
	if err != nil {
		return v, err
	}
	part, err := x.source.html.Acts(acts)
	v.Parts = slices.Insert(v.Parts, min(1, len(v.Parts)), part)
	return v, err
}

// asks reports whether the page shows the questions of a run that wait, so that the user can
// answer them.
func (x *Actor) asks(o report.Overview) bool {
	return x != nil && !o.Start.Redacted && (!o.Working || x.owns(o.ID))
}

// acts returns what the user can do with a run.
func (x *Actor) acts(ctx context.Context, o report.Overview) (page.Acts, error) {
	x.mu.Lock()
	acts := page.Acts{Run: o.ID, Said: x.said[o.ID], Stop: o.Working}
	x.mu.Unlock()
	var waiting []hone.Question
	switch {
	case o.Start.Redacted:
		return acts, nil
	case !o.Working:
		waiting = o.Past.Waiting()
		acts.Undo = len(o.Files) > 0
		if !o.Ended || o.End.Kind != hone.KindDone {
			acts.Resume = view.Limits(o.Past.Limits())
		}
	case x.owns(o.ID):
		if q := x.Own.desk.question(); q != nil {
			waiting = []hone.Question{*q}
		}
	case o.Past.Asking() != nil:
		acts.Note = "A question is open in the terminal of the run. Answer it there, or stop the run and answer here."
	}
	for _, q := range waiting {
		one, err := view.Question(ctx, o.Home, o.ID, q)
		if err != nil {
			return acts, err
		}
		acts.Questions = append(acts.Questions, one)
	}
	return acts, nil
}
