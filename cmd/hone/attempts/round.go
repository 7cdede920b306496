package attempts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone"
	"hone/check"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"
)

// group is a run of attempts while a process works on it.
type group struct {
	*Invocation
	session *harness.Session
	run     *hone.Run
	place   place
	bank    *bank

	mu     sync.Mutex
	tokens map[int]int64 // that each attempt has used, as its events say
	fault  error         // why an event could not be recorded
	stop   context.CancelFunc
}

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

// round lets the attempts work, and applies the changes of the first that is done.
func (g *group) round(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
	_, err := hone.Step(ctx, r, "copies", g.Count, g.copyTree)
	if err != nil {
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
		all := r.Past().Attempts()
		i := slices.IndexFunc(all, func(a history.Attempt) bool { return a.Number == won.Number })
		if i < 0 {
			return struct{}{}, nil
		}
		all[i].Applied = true
		return struct{}{}, r.Attempted(all[i])
	})
	r.Trust.Passed = fmt.Sprintf("%s: %s", name, won.Why)
	return nil, err
}

// byHand is what the user can do with an attempt that cannot be applied.
func byHand(dir string) *hone.Next { return &hone.Next{First: "copy what you need from " + dir} }

// copies is the record of the step that copies the tree.
type copies struct {
	history.Report
}

// copyTree copies the tree for each attempt, before any starts, so that all start with
// the same.
func (g *group) copyTree(ctx context.Context) (c copies, err error) {
	if err := g.find(); err != nil {
		return c, err
	}
	if rel, err := filepath.Rel(g.place.top, g.place.root); err == nil && filepath.IsLocal(rel) {
		return c, &hone.UsageError{Why: fmt.Sprintf("the cache folder, in which attempts work, is in the tree that they copy: %s", g.place.root), Next: hone.Next{First: "set XDG_CACHE_HOME to a directory elsewhere"}}
	}
	skipped, err := g.place.make(ctx, g.session.Dir, g.run.Past().Outputs(), g.Count, config.MinFree.In(g.Values))
	c.Said = fmt.Sprintf("copied the tree %d times, to %s", g.Count, g.place.root)
	if len(skipped) > 0 {
		const most = 5
		c.Log = "not copied: " + strings.Join(skipped[:min(most, len(skipped))], ", ")
		if more := len(skipped) - most; more > 0 {
			c.Log += fmt.Sprintf(" and %d more", more)
		}
	}
	return c, err
}

func (g *group) find() (err error) {
	g.place, err = placeOf(g.session.Dir, g.session.ID())
	return err
}

// compete lets the attempts work until one is done. Without a winner the error is a
// [*hone.Stop]: then nothing is recorded, and a resumed run continues the attempts.
func (g *group) compete(ctx context.Context) (w winner, err error) {
	if err := g.find(); err != nil {
		return w, err
	}
	all := g.attempts()
	for _, a := range all {
		if _, err := os.Stat(a.dir); err != nil {
			return w, &hone.Stop{Kind: hone.KindFailed, Why: "the copies of the attempts were removed: " + err.Error(), Next: hone.Next{Verb: hone.NewRun}}
		}
	}
	if err := g.repayEarlier(all); err != nil {
		return w, err
	}
	total := amount{g.run.Limits.Tokens, g.run.Limits.Cost}
	g.bank = newBank(total, amountOf(g.run.Past().Ledger()))
	first, err := g.race(ctx, all)
	if err != nil {
		return w, err
	}
	if first == nil {
		return w, g.noWinner(all)
	}
	return g.winnerOf(first)
}

func (g *group) attempts() (all []*attempt) {
	for n := 1; n <= g.Count; n++ {
		all = append(all, &attempt{g: g, n: n, dir: g.place.dir(n)})
	}
	return all
}

// repayEarlier repays the loans of an earlier process, with what the attempts' journals
// say, and announces the attempts that have ended since.
func (g *group) repayEarlier(all []*attempt) error {
	past := g.run.Past()
	for seq, open := range past.Reserved() {
		i := slices.IndexFunc(all, func(a *attempt) bool { return a.role() == open.Role })
		if i < 0 {
			continue
		}
		r, err := all[i].read()
		if err != nil {
			return err // the loan counts in full
		}
		if err := g.run.Repay(seq, difference(r.used(), past.Charged(open.Role))); err != nil {
			return err
		}
		// It may have ended after that process was killed, and before it was killed itself.
		if r.end().Kind != "" {
			if err := all[i].announce(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// race lets all attempts work side by side, and returns the first that is done; nil if
// none is. It stops the others, and returns when all have ended.
func (g *group) race(ctx context.Context, all []*attempt) (first *attempt, err error) {
	parent := ctx
	ctx, g.stop = context.WithCancel(ctx)
	defer g.stop()
	g.tokens = map[int]int64{}
	var working sync.WaitGroup
	for _, a := range all {
		working.Go(func() {
			if err := a.work(ctx); err != nil && !errors.Is(err, context.Canceled) {
				g.fail(err)
				return
			}
			if r, err := a.read(); err == nil && r.end().Kind == hone.KindDone {
				g.mu.Lock()
				defer g.mu.Unlock()
				if first == nil {
					first = a
					g.stop()
				}
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

// fail stops all attempts because of an error.
func (g *group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault == nil {
		g.fault = err
	}
	g.stop()
}

// note gives a function the tokens that attempts have used.
func (g *group) note(do func(map[int]int64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do(g.tokens)
}

// winnerOf returns the record of the first attempt that is done.
func (g *group) winnerOf(a *attempt) (w winner, err error) {
	home, err := journal.FindHomeAt(a.dir, runs.HomePath(a.dir))
	if err != nil {
		return w, err
	}
	defer home.Close()
	r, err := readFirst(home)
	if err != nil {
		return w, err
	}
	w = winner{Number: a.n, Run: r.run, Dir: a.dir, Why: r.end().Why, Ignored: r.end().Ignored}
	if w.change, err = g.changeFrom(home, r); err != nil {
		return w, err
	}
	w.Said = fmt.Sprintf("attempt %d is the first that is done", a.n)
	return w, nil
}

// changeFrom returns the change of a run in a copy.
func (g *group) changeFrom(home *journal.Home, r record) (change, error) {
	edits, err := editsOf(r.past, home, ownOf(g.kinds, r.start))
	if err != nil {
		return change{}, err
	}
	return changeOf(edits, home.Get, home.Has, g.run.Journal.Home())
}

// noWinner returns why no attempt is done, and what to do about it. What can still
// continue comes first.
func (g *group) noWinner(all []*attempt) error {
	var states []history.Attempt
	var best *attempt
	var bestRecord record
	bought := "" // the run of an attempt whose check passes only with changes to what judges it
	for _, a := range all {
		r, err := a.read()
		if err != nil {
			return err
		}
		states = append(states, a.state(r))
		if r.past != nil && slices.ContainsFunc(r.past.Pending(), hone.Question.AboutJudges) {
			bought = r.run
		}
		if left := r.left(); left != nil && (best == nil || *left < *bestRecord.left()) {
			best, bestRecord = a, r
		}
	}
	stop := &hone.Stop{Kind: kindOf(states), Why: fmt.Sprintf("no attempt of %d is done", g.Count), Next: hone.Next{Verb: hone.NewRun}}
	if best != nil {
		stop.Why += "; " + fewestText(states, *bestRecord.left())
		stop.Next = hone.Next{Verb: hone.Take, Run: bestRecord.run}
		stop.Findings = bestRecord.past.State().Findings
	}
	for _, s := range states {
		stop.Why += "\n" + line(s)
	}
	var take *hone.Next
	if best != nil {
		take = &hone.Next{Verb: hone.Take, Run: bestRecord.run}
	}
	switch {
	case bought != "":
		stop.Kind, stop.Next = hone.KindBlocked, hone.Next{Verb: hone.Show, Run: bought, Or: &hone.Next{Verb: hone.NewRun,
			Flags: []hone.Flag{{Name: "judge", Value: "free"}}, Remark: "which accepts changed tests"}}
	case stop.Kind == hone.KindBudget:
		stop.Next = g.moreBudget(all)
		stop.Next.Or = take
	case stop.Kind == hone.KindBlocked:
		stop.Next = hone.Next{First: "answer questions in advance, with --approve all or --approve none", Verb: hone.NewRun, Or: take}
	case stop.Kind == hone.KindFailed, stop.Kind == hone.KindInterrupted:
		stop.Kind, stop.Next = hone.KindFailed, hone.Next{Verb: hone.Resume, Or: take}
	}
	return stop
}

// fewestText says which attempts have the fewest findings.
func fewestText(states []history.Attempt, least int) string {
	var numbers []string
	for _, s := range states {
		if s.Findings != nil && *s.Findings == least {
			numbers = append(numbers, fmt.Sprint(s.Number))
		}
	}
	last := len(numbers) - 1
	if last < 1 {
		return fmt.Sprintf("attempt %s has the fewest findings (%d)", strings.Join(numbers, ""), least)
	}
	return fmt.Sprintf("attempts %s and %s have the fewest findings (%d each)", strings.Join(numbers[:last], ", "), numbers[last], least)
}

// kindOf returns how a run ends whose attempts ended so: for lack of budget if that
// stopped any, else not done if any used up its rounds, else as the user can do most
// about it.
func kindOf(states []history.Attempt) hone.Kind {
	for _, kind := range []hone.Kind{hone.KindBudget, hone.KindRounds, hone.KindStuck, hone.KindUnreadable, hone.KindContext, hone.KindBlocked, hone.KindPrompt, hone.KindUsage} {
		if slices.ContainsFunc(states, func(s history.Attempt) bool { return s.Result == kind }) {
			return kind
		}
	}
	return hone.KindFailed
}

// moreBudget returns the flag that raises the limit that stopped an attempt.
func (g *group) moreBudget(all []*attempt) hone.Next {
	limits := g.run.Limits
	flag := hone.Flag{Name: "max-time", Value: (2 * limits.Time).String()}
	for _, a := range all {
		r, _ := a.read()
		switch name, _ := sharedLimit(r.end()); name {
		case "max-tokens":
			flag = hone.Flag{Name: name, Value: fmt.Sprint(2 * limits.Tokens)}
		case "max-cost":
			flag = hone.Flag{Name: name, Value: fmt.Sprint(2 * limits.Cost)}
		}
	}
	return hone.Next{Verb: hone.Resume, Flags: []hone.Flag{flag}}
}

// line returns an attempt in one line.
func line(s history.Attempt) string {
	text := fmt.Sprintf("attempt %d", s.Number)
	if s.Run != "" {
		text += fmt.Sprintf(" (run %s)", journal.ShortRun(s.Run))
	}
	why, _, _ := strings.Cut(s.Why, "\n")
	text += fmt.Sprintf(": %s", s.Result)
	if s.Findings != nil && s.Result != hone.KindDone {
		text += ", " + render.Count(*s.Findings, "finding")
	}
	if why != "" {
		text += ": " + render.Line(why)
	}
	return text
}

// summary says where the attempts are, and how to apply another one.
func (g *group) summary(end hone.End) string {
	if end.Kind != hone.KindDone {
		return ""
	}
	var others []string
	for _, a := range g.run.Past().Attempts() {
		if !a.Applied && a.Run != "" {
			others = append(others, journal.ShortRun(a.Run))
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("hone take RUN applies another attempt instead: %s\n", strings.Join(others, ", "))
}

// env returns the environment of an attempt.
func (g *group) env(n int) []string {
	environ := sandbox.CleanEnv(g.session.IO().Environ, []string{"HONE_TRUST", Variable})
	if g.Trusted != "" {
		environ = append(environ, "HONE_TRUST="+g.Trusted)
	}
	return append(environ, fmt.Sprintf("%s=%d", Variable, n))
}

// Variable is the environment variable that has the number of an attempt, in its process.
const Variable = "HONE_ATTEMPT"
