// Package group drives several runs of hone within one budget.
//
// A [Member] is a directory in which at most one run works, and the command line that starts
// this run. [Group.Work] lets processes of hone (package internal/child) work on it until the
// run ends for another reason than its allowance, and returns its [Outcome]: what the journal
// of the run says. Before each process the member borrows from the [Bank] of the group, and
// after it repays what the process has not used; the run's own ledger keeps to what was lent.
// A member whose run has used up its allowance waits until others have repaid, and borrows
// again. A process that works on a member of which a run was recorded resumes that run, so
// that no reply is paid for twice, whatever ended the process before it.
//
// Attempts are a group whose first clean member is applied, an evaluation is a group whose
// members have a judge, and a fleet lets workers on other machines drive the members: it uses
// the bank alone. The package decides neither which members there are nor what becomes of
// them. [Copy] and [Remove] make and remove the directories in which members work.
package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hone/harness/runs"
	"hone/history"
	"hone/internal/child"
	"hone/journal"
	"hone/sandbox/wall"
	"hone/workspace"
	"hone/workspace/clone"
)

// Member is one run of a group.
type Member struct {
	Name string   // in the bank
	Dir  string   // where its run works
	Cwd  string   // where its processes start; empty means Dir
	Env  []string // of its processes, complete
	Own  Amount   // its own limits; a part that is 0 has only the limit of the group
	// New returns the command line of a new run, without limits, once all is ready for it.
	New func(ctx context.Context) ([]string, error)
	// Raise returns flags of resume for a recorded run; nil means none.
	Raise func(Outcome) []string
	// Event is called for each event of the run; nil does nothing.
	Event func(history.Event)
	// Lend records a loan before it is given, and Repay what the run has done with it. If Repay
	// fails, the loan stays: what is unknown counts in full. One of all members' is called at a
	// time; nil does nothing.
	Lend  func(loan Amount) error
	Repay func(Outcome) error
}

// Group is a group of members. Its methods may be called at the same time for different members.
type Group struct {
	Bank   Bank         // not to be used while members work
	Width  int          // how many members work side by side
	Keeper *wall.Keeper // ends the processes if this one is killed

	mu      sync.Mutex
	changed chan struct{} // closed when a loan is repaid
}

// ErrShort means that the budget of the group did not pay for the rest of a run.
var ErrShort = errors.New("the budget is used up")

// Work lets processes work on a member, whose last outcome is o. The error is ErrShort, that of
// the context, of Lend or Repay, or why the member cannot be started or read.
func (g *Group) Work(ctx context.Context, m *Member, o Outcome) (Outcome, error) {
	for {
		c := Claim{Used: o.Used(), Had: o.Limits(), Own: m.Own, Again: g.Short(m, o)}
		loan, err := g.borrow(ctx, m, c)
		if err != nil {
			return o, err
		}
		o, err = g.process(ctx, m, o, g.Bank.Limits(c, loan))
		if err != nil || ctx.Err() != nil || g.Short(m, o) == (Parts{}) {
			return o, cmp.Or(err, context.Cause(ctx))
		}
	}
}

// Short returns which limits of a run were used up that another loan can raise; none if the run
// ended for another reason.
func (g *Group) Short(m *Member, o Outcome) (short Parts) {
	end := o.End()
	bank, own, had := g.Bank.Cap.parts(), m.Own.parts(), o.Limits().parts()
	for i, flag := range []string{"max-tokens", "max-cost", "max-time"} {
		raised := bank[i] > 0
		if own[i] > 0 {
			raised = had[i] < own[i]
		}
		short[i] = end.Kind == history.KindBudget && raised && slices.ContainsFunc(end.Next.Flags, func(f history.Flag) bool { return f.Name == flag })
	}
	return short
}

// It waits until others have repaid, while there are others.
func (g *Group) borrow(ctx context.Context, m *Member, c Claim) (Amount, error) {
	for {
		g.mu.Lock()
		c.Open = g.Width - len(g.Bank.Loans)
		loan, ok := g.Bank.Borrow(m.Name, c)
		var err error
		if ok && m.Lend != nil {
			if err = m.Lend(loan); err != nil {
				delete(g.Bank.Loans, m.Name)
			}
		}
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed, others := g.changed, len(g.Bank.Loans) > 0
		g.mu.Unlock()
		switch {
		case ok:
			return loan, err
		case !others:
			return loan, ErrShort
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return loan, context.Cause(ctx)
		}
	}
}

func (g *Group) process(ctx context.Context, m *Member, o Outcome, limits Amount) (after Outcome, err error) {
	var args []string
	if o.Past != nil {
		if o.Past.Facts().Limits.Cost == 0 {
			limits.Cost = 0 // a run that began without such a limit gets none
		}
		args = append([]string{"resume", o.Run, "--dir", m.Dir}, limits.Flags(o.Limits())...)
		if m.Raise != nil {
			args = append(args, m.Raise(o)...)
		}
	} else if args, err = m.New(ctx); err == nil {
		args = child.With(args, limits.Flags(Amount{})...)
	}
	var died error
	if err == nil {
		var r child.Result
		r, died = child.Command{Dir: cmp.Or(m.Cwd, m.Dir), Args: args, Env: m.Env, Keeper: g.Keeper, Event: m.Event}.Run(ctx)
		if died == nil {
			died = r.Error()
		}
	}
	after, readErr := Read(context.WithoutCancel(ctx), m.Dir)
	if err = errors.Join(err, readErr); readErr != nil {
		return after, err // the loan stays
	}
	if died == nil && err == nil && after.End().Kind == "" && ctx.Err() == nil {
		died = errors.New("its process was killed")
		if _, err := os.Stat(m.Dir); errors.Is(err, fs.ErrNotExist) {
			died = fmt.Errorf("its directory %s was removed", m.Dir)
		}
	}
	after.Died = died
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.Repay != nil {
		if err = errors.Join(err, m.Repay(after)); err != nil {
			return after, err
		}
	}
	g.Bank.Repay(m.Name, after.Used().Minus(o.Used()))
	close(g.changed)
	g.changed = make(chan struct{})
	return after, err
}

// Outcome is what the journal of a member's run says.
type Outcome struct {
	Run    string          // empty: there is no run yet
	Events []journal.Event // all of them
	Past   *history.Past   // nil: there is no run yet
	// Died is why the last process, if [Group.Work] ran one, ended without recording an end.
	Died error
}

// Used returns what the run has used, lost calls in full.
func (o Outcome) Used() Amount {
	if o.Past == nil {
		return Amount{}
	}
	l := o.Past.Facts().Ledger
	return Amount{l.Tokens, Dollars(l.Cost), time.Duration(o.Past.Last().Active) * time.Millisecond}
}

// Limits returns the limits that the run has now.
func (o Outcome) Limits() Amount {
	if o.Past == nil {
		return Amount{}
	}
	return LimitsOf(o.Past.Facts().Limits)
}

// End returns how the run ended; the zero End if it did not.
func (o Outcome) End() (end history.End) {
	if o.Past != nil {
		end = o.Past.Facts().End
	}
	return end
}

// Read reads the run of a member, which is the first in its directory: the user may have started
// others there. It waits for a process that still works on it, because the one that drove the
// group was killed. A journal that hone did not write is an error.
func Read(ctx context.Context, dir string) (o Outcome, err error) {
	for {
		if _, _, working := runs.Working(dir); !working {
			break
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	home, err := OpenHome(dir)
	if home == nil {
		return o, err
	}
	defer home.Close()
	if o, err = first(home); err == nil && o.Past != nil && runs.CheckBinding(dir) == nil && runs.Foreign(home)(o.Run, o.Events) != 0 {
		err = fmt.Errorf("the journal of the run in %s was not written by hone", dir)
	}
	return o, err
}

// OpenHome opens the home of a member's run; nil if there is none.
func OpenHome(dir string) (*journal.Home, error) {
	home, err := journal.FindHomeAt(dir, runs.HomePath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return home, err
}

// Recorded is [Read] for who knows the run: it waits for no process, and asks not who wrote the journal.
func Recorded(dir string) (o Outcome, err error) {
	home, err := OpenHome(dir)
	if home == nil {
		return o, err
	}
	defer home.Close()
	return first(home)
}

// A journal without events is none: its process died, or found that another one works here.
func first(home *journal.Home) (o Outcome, err error) {
	all, err := home.Runs()
	for _, run := range all {
		events, err := home.Read(run)
		if err != nil {
			return o, err
		}
		if len(events) > 0 {
			return Outcome{Run: run, Events: events, Past: history.Read(events)}, nil
		}
	}
	return o, err
}

// Cache returns the directory in the user's cache for the copies of groups of a kind. It need not
// exist.
func Cache(kind string) (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache, err = filepath.Abs(cache)
	}
	if err != nil {
		return "", fmt.Errorf("there is no cache directory for copies: %w; set XDG_CACHE_HOME to a writable directory", err)
	}
	return filepath.Join(cache, "hone", kind), nil
}

// Copy copies a directory into a new one, except hone's own home at its top and outputs, which are paths
// below from. It returns what cannot be copied; see [clone.Tree].
func Copy(ctx context.Context, from, to string, outputs ...string) (skipped []string, err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("copy %s: %w", from, err)
	}
	tree, err := workspace.Open(from, workspace.Options{})
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	runs.ShutOutputs(tree, outputs)
	return clone.Tree(ctx, tree, to)
}

// Remove removes a directory with copies below dir/*/, and what was recorded of their runs outside
// of them.
func Remove(dir string) error {
	groups, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, copies := range groups {
		_ = RemoveCopy(copies)
	}
	return clone.Remove(dir)
}

// RemoveCopy removes a directory with a copy in it, and what was recorded of its run elsewhere.
func RemoveCopy(dir string) error {
	homes, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, home := range homes {
		runs.RemoveHome(home)
	}
	return clone.Remove(dir)
}
