package attempts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"hone"
	"hone/check"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/child"
	"hone/journal"
	"hone/loop"
)

// attempt is one attempt of a group. What it did so far is in the journal of its run.
type attempt struct {
	g   *group
	n   int    // 1 is the first
	dir string // its workspace, in its copy
	// died says why the last process of the attempt ended without recording an end.
	died error
}

// role is the name under which the ledger has the attempt.
func (a *attempt) role() string { return roleOf(a.n) }

const rolePattern = "attempt %d"

func roleOf(n int) string { return fmt.Sprintf(rolePattern, n) }

// record is what an attempt's run has recorded.
type record struct {
	run    string // empty: there is no run yet
	events []journal.Event
	past   *history.Past // nil: there is no run yet
	start  hone.Start
}

// read reads the journal of the attempt's run, which is the first in its copy: the user
// may have started others there.
func (a *attempt) read() (record, error) {
	home, err := findHome(a.dir)
	if err != nil {
		return record{}, fmt.Errorf("read attempt %d: %w", a.n, err)
	}
	if home == nil {
		return record{}, nil
	}
	defer home.Close()
	r, err := readFirst(home)
	if err == nil && r.past != nil && a.g.session.Unbound() == nil && runs.Foreign(home)(r.run, r.events) != 0 {
		err = fmt.Errorf("the journal of attempt %d, in %s, was not written by hone", a.n, a.dir)
	}
	return r, err
}

// findHome opens the home of the run in an attempt's copy; nil if the attempt had not begun it.
func findHome(dir string) (*journal.Home, error) {
	home, err := journal.FindHomeAt(dir, runs.HomePath(dir))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return home, err
}

// readFirst reads the first run of a home; it is zero if there is none.
func readFirst(home *journal.Home) (r record, err error) {
	all, err := home.Runs()
	if err != nil || len(all) == 0 {
		return r, err
	}
	events, err := home.Read(all[0])
	if err != nil || len(events) == 0 {
		return r, err
	}
	r.run, r.events, r.past = all[0], events, history.Read(events)
	r.start, err = runs.Started(events)
	return r, err
}

// Spent returns what a run has used. Of a loan to an attempt, such as one that a killed
// process left, only what the attempt's journal says counts, as when it is repaid: nothing
// if the attempt had not begun one, and all of it if it cannot be read.
func Spent(home *journal.Home, run string, past *history.Past) history.Ledger {
	spent := past.Ledger()
	for loan, open := range past.Reserved() {
		var n int // an attempt that has just begun has no state yet
		if _, err := fmt.Sscanf(open.Role, rolePattern, &n); err != nil {
			continue
		}
		if all, err := usedBy(home.Workspace(), run, n); err == nil {
			used := difference(all, past.Charged(open.Role))
			spent = spent.Repaid(open, history.Repayment(loan, used))
		}
	}
	return spent
}

// usedBy returns what the nth attempt of a run has used, as its journal says.
func usedBy(workspace, run string, n int) (history.Ledger, error) {
	p, err := placeOf(workspace, run)
	if err != nil {
		return history.Ledger{}, err
	}
	home, err := findHome(p.dir(n))
	if home == nil {
		return history.Ledger{}, err
	}
	defer home.Close()
	r, err := readFirst(home)
	return r.used(), err
}

// used returns what the run has used; zero before it starts.
func (r record) used() history.Ledger {
	if r.past == nil {
		return history.Ledger{}
	}
	return r.past.Ledger()
}

// end returns how the run ended; the zero End if it did not.
func (r record) end() hone.End {
	if r.past == nil {
		return hone.End{}
	}
	end, _ := r.past.End()
	return end
}

// left returns how many findings the last round left; nil if the check has not run.
func (r record) left() *int {
	if r.past == nil || r.past.State().Decision == "" {
		return nil
	}
	n := check.Count(blocking(r.past.State().Findings))
	return &n
}

func blocking(findings []check.Finding) []check.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return !f.Blocks() })
}

// sharedLimit returns which of the limits that attempts share stopped the run: the name of a
// flag and the value that its end names; empty if none did.
func sharedLimit(end hone.End) (flag, value string) {
	for _, f := range end.Next.Flags {
		if end.Kind == hone.KindBudget && (f.Name == "max-tokens" || f.Name == "max-cost") {
			return f.Name, f.Value
		}
	}
	return "", ""
}

// resumable reports whether a process can continue the run, by itself or with the limits
// of its group.
func (a *attempt) resumable(r record) bool {
	end, has := r.end(), a.g.run.Limits
	if r.past == nil {
		return true
	}
	was := r.past.Limits()
	switch end.Kind {
	case hone.KindRounds:
		return has.Rounds > was.Rounds
	case hone.KindStuck:
		return has.Patience > was.Patience
	case hone.KindUnreadable:
		return has.Unreadable > was.Unreadable
	case hone.KindDone, hone.KindUsage, hone.KindPrompt, hone.KindContext, hone.KindBlocked:
		return false
	}
	return true // it died, was interrupted, failed, or used up its budget
}

// work lets processes work on the attempt until its run ends for a reason that no further
// process removes. If the run lacks tokens or cost, it borrows more.
func (a *attempt) work(ctx context.Context) error {
	r, err := a.read()
	if err != nil || !a.resumable(r) {
		return err
	}
	for {
		loan, ok, err := a.borrow(ctx, r)
		if err != nil || !ok {
			return err
		}
		if r, err = a.process(ctx, r, loan); err != nil {
			return err
		}
		if flag, _ := sharedLimit(r.end()); flag == "" || ctx.Err() != nil {
			return nil
		}
	}
}

// borrow borrows what the next process may use. At least that is what the run's own
// limits still allow, because they cannot be lowered, and more than that if it was not
// enough.
func (a *attempt) borrow(ctx context.Context, r record) (borrowed, bool, error) {
	b := a.g.bank
	used := amountOf(r.used())
	share := amount{b.total.tokens / int64(a.g.Count), b.total.cost / float64(a.g.Count)}
	least, want := amount{tokens: 1}, share
	if r.past != nil {
		limits := r.past.Limits()
		left := amount{limits.Tokens, limits.Cost}.minus(used)
		least = amount{max(0, left.tokens), max(0, left.cost)}
		want = least
		switch flag, value := sharedLimit(r.end()); flag {
		case "max-tokens":
			enough, _ := strconv.ParseInt(value, 10, 64)
			least.tokens++
			want.tokens = max(least.tokens, enough-used.tokens)
		case "max-cost":
			enough, _ := strconv.ParseFloat(value, 64)
			want.cost = max(least.cost, enough-used.cost)
			least.cost += want.cost / 100
		}
	}
	loan := borrowed{before: used}
	var ok bool
	var err error
	loan.amount, ok, err = b.borrow(ctx, a.n, least, want, func(given amount) (err error) {
		var cost *float64
		if a.g.hasPrice(a.n) {
			cost = &given.cost
		}
		loan.number, err = a.g.run.Lend(a.role(), a.g.model(a.n), given.tokens, cost)
		return err
	})
	return loan, ok, err
}

// borrowed is a loan of an attempt.
type borrowed struct {
	amount
	number int64  // of its event
	before amount // what the run had used
}

func amountOf(l history.Ledger) amount { return amount{l.Tokens, l.Cost} }

// process runs one process of hone on the attempt's run, and repays what it did not use.
// It returns what is recorded then.
func (a *attempt) process(ctx context.Context, r record, loan borrowed) (record, error) {
	c := child.Command{Dir: a.g.Cwd, Args: a.args(r, loan), Env: a.g.env(a.n), Keeper: a.g.session.Keeper}
	c.Event = func(e history.Event) { a.follow(ctx, e) }
	result, err := c.Run(ctx)
	after, readErr := a.read()
	if readErr != nil {
		return r, readErr
	}
	if err == nil && after.end().Kind == "" && ctx.Err() == nil {
		if err = result.Error(); err == nil {
			err = errors.New("its process was killed")
		}
	}
	a.died = err
	used := after.used()
	repaid := a.g.bank.repay(a.n, amountOf(used).minus(loan.before), func() error {
		return a.g.run.Repay(loan.number, difference(used, r.used()))
	})
	if repaid == nil {
		repaid = a.announce(after)
	}
	return after, repaid
}

// difference returns what a ledger has more than an earlier state of it.
func difference(l, before history.Ledger) history.Ledger {
	l.Tokens -= before.Tokens
	l.Assumed -= before.Assumed
	l.Cost -= before.Cost
	k, b := &l.Known, before.Known
	k.Input, k.Output, k.Reasoning = k.Input-b.Input, k.Output-b.Output, k.Reasoning-b.Reasoning
	k.CacheRead, k.CacheWrite = k.CacheRead-b.CacheRead, k.CacheWrite-b.CacheWrite
	return l
}

// args returns the arguments of the next process: of a new run, or of resume with the
// limits of the group.
func (a *attempt) args(r record, loan borrowed) []string {
	l := a.g.run.Limits
	tokens, cost := loan.before.tokens+loan.tokens, inMicros(loan.before.cost+loan.cost)
	if r.past == nil {
		line := append(a.g.line(a.n, a.g.session.Dir, a.dir), limitFlags(hone.Limits{Tokens: limitOf(l.Tokens, tokens), Cost: limitOf(l.Cost, cost), Time: l.Time}, hone.Limits{})...)
		return append(append(line, "--"), a.g.texts(a.g.session.Dir, a.dir)...)
	}
	was := r.past.Limits()
	raised := hone.Limits{Rounds: l.Rounds, Patience: l.Patience, Unreadable: l.Unreadable, Time: l.Time,
		Tokens: limitOf(l.Tokens, tokens), Cost: limitOf(l.Cost, cost)}
	line := append([]string{"resume", r.run, "--dir", a.dir}, limitFlags(raised, was)...)
	var shared loop.Settings
	_ = json.Unmarshal(r.start.Settings, &shared) // the process itself reports settings that it cannot read
	if address := a.g.address(a.n); address != "" && address != shared.Model.BaseURL {
		line = append(line, "--base-url", address)
	}
	return line
}

// inMicros rounds a cost down to a millionth, but not because a sum of decimal fractions
// is a little too low.
func inMicros(cost float64) float64 { return math.Floor(cost*1e6+1e-3) / 1e6 }

// limitOf returns the limit of an attempt: none if the group has none.
func limitOf[T int64 | float64](group, lent T) T {
	if group == 0 {
		return 0
	}
	return lent
}

// limitFlags returns the flags for the limits that are higher than they were.
func limitFlags(l, was hone.Limits) (flags []string) {
	add := func(higher bool, flag, value string) {
		if higher {
			flags = append(flags, "--"+flag, value)
		}
	}
	add(l.Rounds > was.Rounds, "rounds", strconv.Itoa(l.Rounds))
	add(l.Patience > was.Patience, "patience", strconv.Itoa(l.Patience))
	add(l.Unreadable > was.Unreadable, "unreadable", strconv.Itoa(l.Unreadable))
	add(l.Tokens > was.Tokens, "max-tokens", strconv.FormatInt(l.Tokens, 10))
	add(l.Cost > was.Cost, "max-cost", strconv.FormatFloat(l.Cost, 'g', -1, 64))
	add(l.Time > was.Time, "max-time", l.Time.String())
	return flags
}

// follow records what an event of the attempt's run means to users. An error of the
// journal stops the attempts when the process ends.
func (a *attempt) follow(ctx context.Context, e history.Event) {
	now := history.Attempt{Number: a.n, Dir: a.dir, Run: e.Run, Model: a.g.model(a.n)}
	switch p := e.Payload.(type) {
	case hone.Start:
	case history.Usage:
		a.g.note(func(s map[int]int64) { s[a.n] = p.Tokens })
		return
	case hone.State:
		if p.Round == 0 || p.Decision == hone.Done {
			return
		}
		left := check.Count(blocking(p.Findings))
		now.Rounds, now.Findings = p.Round, &left
	default:
		return
	}
	a.g.note(func(s map[int]int64) { now.Tokens = s[a.n] })
	if err := a.g.run.Attempted(now); err != nil {
		a.g.fail(err)
	}
}

// state returns the attempt for the journal and the user.
func (a *attempt) state(r record) history.Attempt {
	end := r.end()
	s := history.Attempt{Number: a.n, Dir: a.dir, Run: r.run, Model: a.g.model(a.n), Findings: r.left(), Tokens: r.used().Tokens, Result: end.Kind, Why: end.Why}
	if r.past != nil {
		s.Rounds = r.past.State().Round
	}
	if s.Result == "" && a.died != nil {
		s.Result, s.Why = hone.KindFailed, a.died.Error()
	}
	return s
}

// announce records the state of the attempt after a process.
func (a *attempt) announce(r record) error {
	return a.g.run.Attempted(a.state(r))
}
