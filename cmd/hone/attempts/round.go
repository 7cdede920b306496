package attempts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hone"
	"hone/check"
	"hone/cmd/hone/failure"
	"hone/group"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/story"
)

type contest struct {
	*Invocation
	session *harness.Session
	run     *hone.Run
	place   place
	group   group.Group
	all     []*attempt

	mu    sync.Mutex
	fault error // why the attempts cannot be recorded
	stop  context.CancelFunc
}

type attempt struct {
	group.Member
	n      int   // 1 is the first
	loan   int64 // the event that has recorded it
	tokens int64 // that its run has used, as its events say
	out    group.Outcome
}

// rolePattern is the name under which the ledger has an attempt.
const rolePattern = "attempt %d"

// winner is the record of the step that runs the attempts.
type winner struct {
	Number int    `json:"attempt"`
	Run    string `json:"attempt_run"`
	Dir    string `json:"attempt_dir"`
	Why    string `json:"why"`
	// Ignored is what its commands changed among the files that git ignores; see [history.End].
	Ignored string `json:"ignored,omitempty"`
	change
	history.Report
}

func (g *contest) round(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
	if _, err := hone.Step(ctx, r, "copies", g.Count, g.copyTree); err != nil {
		return nil, err
	}
	won, err := hone.Step(ctx, r, "attempts", nil, g.compete)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("attempt %d of %d is done", won.Number, g.Count)
	if err := won.apply(ctx, r, name, hone.Next{Verb: hone.Resume, Or: byHand(won.Dir)}); err != nil {
		return nil, err
	}
	if won.Ignored != "" {
		if err := r.Notice(fmt.Sprintf("attempt %d also changed files that git ignores, which are only in its copy: %s", won.Number, won.Ignored)); err != nil {
			return nil, err
		}
	}
	_, err = hone.Step(ctx, r, "announce", nil, func(context.Context) (struct{}, error) {
		for _, a := range r.Past().Attempts() {
			if a.Number == won.Number {
				a.Applied = true
				return struct{}{}, r.Attempted(a)
			}
		}
		return struct{}{}, nil
	})
	r.Trust.Passed = fmt.Sprintf("%s: %s", name, won.Why)
	return nil, err
}

func byHand(dir string) *hone.Next { return &hone.Next{First: "copy what you need from " + dir} }

// No attempt has started yet, so that all start with the same tree.
func (g *contest) copyTree(ctx context.Context) (c history.Report, err error) {
	if g.place, err = placeOf(g.session.Dir, g.session.ID()); err != nil {
		return c, err
	}
	if rel, err := filepath.Rel(g.place.top, g.place.root); err == nil && filepath.IsLocal(rel) {
		return c, &hone.UsageError{Why: fmt.Sprintf("the cache folder, in which attempts work, is in the tree that they copy: %s", g.place.root), Next: hone.Next{First: "set XDG_CACHE_HOME to a directory elsewhere"}}
	}
	skipped, err := g.place.make(ctx, g.session.Dir, g.run.Past().Facts().Outputs, g.Count, config.MinFree.In(g.Values))
	c.Said = fmt.Sprintf("copied the tree %d times, to %s", g.Count, g.place.root)
	if len(skipped) > 0 {
		c.Log = "not copied: " + render.Names(skipped)
	}
	return c, err
}

// Without a winner the error is a [*hone.Stop]: then nothing is recorded, and a resumed run continues the attempts.
func (g *contest) compete(ctx context.Context) (w winner, err error) {
	if g.place, err = placeOf(g.session.Dir, g.session.ID()); err != nil {
		return w, err
	}
	limits := g.run.Limits
	g.all = nil
	for n := 1; n <= g.Count; n++ {
		a := &attempt{n: n}
		a.Member = group.Member{Name: fmt.Sprintf(rolePattern, n), Dir: g.place.dir(n), Cwd: g.Cwd, Env: g.env(n), Own: group.Amount{Time: limits.Time},
			New:   func(context.Context) ([]string, error) { return g.line(n, g.session.Dir, a.Dir), nil },
			Raise: func(o group.Outcome) []string { return g.raised(n, o) }, Event: func(e history.Event) { g.follow(a, e) },
			Lend: func(loan group.Amount) error { return g.lend(a, loan) }, Repay: func(o group.Outcome) error { return g.repay(a, o) }}
		if _, err := os.Stat(a.Dir); err != nil {
			return w, &hone.Stop{Kind: hone.KindFailed, Why: "a copy of the attempts was removed: " + err.Error(), Next: hone.Next{Verb: hone.NewRun}}
		}
		if a.out, err = group.Read(ctx, a.Dir); err != nil {
			return w, err
		}
		for seq, open := range g.run.Past().Reserved() { // a loan of an earlier process
			if a.loan = seq; open.Role == a.Name {
				if err := g.repay(a, a.out); err != nil {
					return w, err
				}
				break
			}
		}
		g.all = append(g.all, a)
	}
	spent := g.run.Past().Facts().Ledger
	g.group = group.Group{Width: g.Count, Keeper: g.session.Keeper,
		Bank: group.Bank{Cap: group.Amount{Tokens: limits.Tokens, Cost: group.Dollars(limits.Cost)}, Spent: group.Amount{Tokens: spent.Tokens, Cost: group.Dollars(spent.Cost)}}}
	first, err := g.race(ctx)
	switch {
	case err != nil:
		return w, err
	case first == nil:
		return w, g.noWinner()
	}
	end := first.out.End()
	w = winner{Number: first.n, Run: first.out.Run, Dir: first.Dir, Why: end.Why, Ignored: end.Ignored}
	w.Said = fmt.Sprintf("attempt %d is the first that is done", first.n)
	if s := first.score(); s != nil {
		w.Said = fmt.Sprintf("attempt %d has the best number: %s", first.n, s.Change())
	}
	home, err := group.OpenHome(first.Dir)
	if err != nil {
		return w, err
	}
	defer home.Close()
	edits, err := changesOf(first.out, home, g.kinds)
	if err == nil {
		w.change, err = changeOf(edits, home.Get, home.Has, g.run.Journal)
	}
	return w, err
}

// It stops the others when one is done, unless a number judges them: then first is the best. It returns when all have ended; first is nil if none is done.
func (g *contest) race(parent context.Context) (first *attempt, err error) {
	ctx, stop := context.WithCancel(parent)
	defer stop()
	g.stop = stop
	var working sync.WaitGroup
	for _, a := range g.all {
		working.Go(func() {
			var err error
			if g.resumable(a) {
				a.out, err = g.group.Work(ctx, &a.Member, a.out)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if err != nil && !errors.Is(err, group.ErrShort) && !errors.Is(err, context.Canceled) {
				g.fail(err)
				return
			}
			if a.out.End().Kind != hone.KindDone {
				return
			}
			score := a.score()
			if first == nil || score != nil && first.score() != nil && score.Better(score.Best, first.score().Best) {
				first = a
			}
			if score == nil {
				stop() // with a number as the judge, the best of all wins
			}
		})
	}
	working.Wait()
	switch {
	case g.fault != nil && first == nil:
		return nil, g.fault
	case first == nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	}
	return first, nil
}

// score is the number of an attempt that is done; nil if its loop has none.
func (a *attempt) score() *history.Score { return a.out.Past.Facts().State.Score }

// The caller has locked g.
func (g *contest) fail(err error) {
	if g.fault == nil {
		g.fault = err
	}
	g.stop()
}

// A process can continue it by itself or with the limits of the attempts.
func (g *contest) resumable(a *attempt) bool {
	switch a.out.End().Kind {
	case hone.KindRounds, hone.KindStuck, hone.KindUnreadable:
		return len(g.raised(a.n, a.out)) > 0
	case hone.KindDone, hone.KindUsage, hone.KindPrompt, hone.KindContext, hone.KindBlocked:
		return false
	}
	return true // it has not begun, died, was interrupted, failed, or used up its budget
}

func (g *contest) raised(n int, o group.Outcome) (flags []string) {
	l, was := g.run.Limits, o.Past.Facts().Limits
	for _, c := range []struct {
		flag    string
		is, was int
	}{{"--rounds", l.Rounds, was.Rounds}, {"--patience", l.Patience, was.Patience}, {"--unreadable", l.Unreadable, was.Unreadable}} {
		if c.is > c.was {
			flags = append(flags, c.flag, strconv.Itoa(c.is))
		}
	}
	var shared loop.Settings
	if start, err := runs.Started(o.Run, o.Events); err == nil {
		_ = json.Unmarshal(start.Settings, &shared) // the process itself reports settings that it cannot read
	}
	if address := g.first(n).KnownAddress(); address != "" && address != shared.Model.BaseURL {
		flags = append(flags, "--base-url", address)
	}
	return flags
}

func (g *contest) env(n int) []string {
	environ := sandbox.CleanEnv(g.session.IO().Environ, []string{"HONE_TRUST", Variable, sandbox.Origin})
	if g.Trusted != "" {
		environ = append(environ, "HONE_TRUST="+g.Trusted)
	}
	return append(environ, fmt.Sprintf("%s=%d", Variable, n), sandbox.Origin+"="+g.place.top)
}

// Variable is the environment variable that has the number of an attempt, in its process.
const Variable = "HONE_ATTEMPT"

// lend and repay record the loans of the group in the run's ledger.
func (g *contest) lend(a *attempt, loan group.Amount) (err error) {
	cost := new(loan.Cost.Float())
	for _, m := range g.modelsOf(a.n) {
		if slices.ContainsFunc(m.All(), func(one *loop.Model) bool { return one.Price == nil && one.Name != "" }) {
			cost = nil
		}
	}
	a.loan, err = g.run.Account().Lend(a.Name, g.first(a.n).Name, loan.Tokens, cost)
	return err
}

func (g *contest) repay(a *attempt, o group.Outcome) error {
	a.out = o
	err := g.run.Account().Repay(a.loan, difference(ledger(o), g.run.Past().Charged(a.Name)))
	return errors.Join(err, g.run.Attempted(g.state(a)))
}

func ledger(o group.Outcome) history.Ledger {
	if o.Past == nil {
		return history.Ledger{}
	}
	return o.Past.Facts().Ledger
}

func difference(l, before history.Ledger) history.Ledger {
	l.Tokens -= before.Tokens
	l.Assumed -= before.Assumed
	l.Cost -= before.Cost
	k, b := &l.Known, before.Known
	k.Input, k.Output, k.Reasoning = k.Input-b.Input, k.Output-b.Output, k.Reasoning-b.Reasoning
	k.CacheRead, k.CacheWrite = k.CacheRead-b.CacheRead, k.CacheWrite-b.CacheWrite
	return l
}

// Spent returns what a run has used. Of a loan to an attempt, such as one that a killed process
// left, only what the attempt's journal says counts, as when it is repaid: nothing if the attempt
// had not begun one, and all of it if it cannot be read.
func Spent(home *journal.Home, run string, past *history.Past) history.Ledger {
	spent := past.Facts().Ledger
	for loan, open := range past.Reserved() {
		var n int // an attempt that has just begun has no state yet
		if _, err := fmt.Sscanf(open.Role, rolePattern, &n); err != nil {
			continue
		}
		p, err := placeOf(home.Workspace(), run)
		if err != nil {
			continue
		}
		o, err := group.Recorded(p.dir(n))
		if err == nil {
			spent = spent.Repaid(open, history.Repayment(loan, difference(ledger(o), past.Charged(open.Role))))
		}
	}
	return spent
}

// An error of the journal stops the attempts.
func (g *contest) follow(a *attempt, e history.Event) {
	now := history.Attempt{Number: a.n, Dir: a.Dir, Run: e.Run, Model: g.first(a.n).Name, Tokens: a.tokens}
	switch p := e.Payload.(type) {
	case hone.Start:
	case history.Usage:
		a.tokens = p.Tokens
		return
	case hone.State:
		if p.Round == 0 || p.Decision == hone.Done {
			return
		}
		if now.Rounds = p.Round; p.Score == nil {
			left := check.Count(check.BlockingOf(p.Findings))
			now.Findings = &left
		}
	default:
		return
	}
	if err := g.run.Attempted(now); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.fail(err)
	}
}

// It is nil if the check has not run.
func left(o group.Outcome) *int {
	if o.Past == nil {
		return nil
	}
	s := o.Past.Facts().State
	if s.Decision == "" || s.Score != nil {
		return nil
	}
	n := check.Count(check.BlockingOf(s.Findings))
	return &n
}

func (g *contest) state(a *attempt) history.Attempt {
	end := a.out.End()
	s := history.Attempt{Number: a.n, Dir: a.Dir, Run: a.out.Run, Model: g.first(a.n).Name, Findings: left(a.out), Tokens: ledger(a.out).Tokens, Result: end.Kind, Why: end.Why}
	if a.out.Past != nil {
		s.Rounds = a.out.Past.Facts().State.Round
	}
	if s.Result == "" && a.out.Died != nil {
		s.Result, s.Why = hone.KindFailed, a.out.Died.Error()
	}
	return s
}

// What can still continue comes first.
func (g *contest) noWinner() error {
	kind, lines := hone.KindFailed, ""
	for _, k := range []hone.Kind{hone.KindUsage, hone.KindPrompt, hone.KindBlocked, hone.KindContext, hone.KindUnreadable, hone.KindStuck, hone.KindRounds, hone.KindBudget} {
		if slices.ContainsFunc(g.all, func(a *attempt) bool { return g.state(a).Result == k }) {
			kind = k // the later, the more the user can do about it
		}
	}
	var best *attempt
	var bought string // the run of an attempt whose check passes only with changes to what judges it
	for _, a := range g.all {
		lines += "\n" + story.AttemptText(g.state(a), false)
		if a.out.Past != nil && slices.ContainsFunc(a.out.Past.Facts().Pending, hone.Question.AboutJudges) {
			bought = a.out.Run
		}
		n := left(a.out)
		if n != nil && (best == nil || *n < *left(best.out) || *n == *left(best.out) && g.changed(a) && !g.changed(best)) {
			best = a
		}
	}
	stop := &hone.Stop{Kind: kind, Why: fmt.Sprintf("no attempt of %d is done", g.Count), Next: hone.Next{Verb: hone.NewRun}}
	var take *hone.Next
	if best != nil {
		stop.Findings = best.out.Past.Facts().State.Findings
		stop.Why += fmt.Sprintf("; attempt %d has the fewest findings (%d)", best.n, *left(best.out))
		if g.changed(best) {
			take = &hone.Next{Verb: hone.Take, Run: best.out.Run}
			stop.Next = *take
		}
	}
	stop.Why += lines
	more := g.moreBudget()
	switch {
	case bought != "":
		stop.Kind, stop.Next = hone.KindBlocked, hone.Next{Verb: hone.Show, Run: bought, Or: &hone.Next{Verb: hone.NewRun,
			Flags: []hone.Flag{{Name: "judge", Value: "free"}}, Remark: "which accepts changed tests"}}
	case kind == hone.KindBudget && len(more) > 0:
		stop.Next = hone.Next{Verb: hone.Resume, Flags: more, Or: take}
	case kind == hone.KindBlocked:
		stop.Next = hone.Next{First: "answer questions in advance, with --approve all or --approve none", Verb: hone.NewRun, Or: take}
	case kind == hone.KindFailed && !slices.ContainsFunc(g.all, (*attempt).removed):
		stop.Next = hone.Next{Verb: hone.Resume, Or: take}
	}
	return stop
}

// moreBudget are the limits with which each attempt can borrow what it lacks: the group lends all of them an equal part.
func (g *contest) moreBudget() (flags []hone.Flag) {
	limits, spent, all := g.run.Limits, g.run.Past().Facts().Ledger, float64(g.Count)
	lacks := map[string]float64{} // what the attempt that lacks most does
	for _, a := range g.all {
		used := map[string]float64{"max-tokens": float64(ledger(a.out).Tokens), "max-cost": ledger(a.out).Cost}
		for _, f := range a.out.End().Next.Flags {
			needs, _ := strconv.ParseFloat(f.Value, 64) // 0 of a time
			lacks[f.Name] = max(lacks[f.Name], needs-used[f.Name])
		}
	}
	if n := lacks["max-tokens"]; n > 0 {
		flags = history.MoreTokens(limits.Tokens, spent.Tokens+int64(n*all)).Flags
	}
	if n := lacks["max-cost"]; n > 0 {
		flags = append(flags, history.MoreCost(limits.Cost, spent.Cost+n*all).Flags...)
	}
	if _, late := lacks["max-time"]; late {
		flags = append(flags, history.MoreTime(limits.Time).Flags...)
	}
	return flags
}

func (g *contest) changed(a *attempt) bool {
	if a.out.Past == nil { // it recorded nothing
		return false
	}
	home, _ := group.OpenHome(a.Dir)
	if home == nil {
		return false
	}
	defer home.Close()
	edits, err := changesOf(a.out, home, g.kinds)
	return err != nil || len(edits) > 0
}

func (a *attempt) removed() bool {
	_, err := os.Lstat(a.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

func (g *contest) summary(end hone.End) string {
	if end.Kind != hone.KindDone {
		return ""
	}
	var others []string
	for _, a := range g.run.Past().Attempts() {
		if a.Applied || a.Run == "" || a.Number <= len(g.all) && !g.changed(g.all[a.Number-1]) {
			continue
		}
		others = append(others, journal.ShortRun(a.Run))
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("hone take RUN%s applies another attempt instead: %s\n", failure.Elsewhere(g.session.Dir), strings.Join(others, ", "))
}
