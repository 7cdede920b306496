package paid

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"hone/history"
	"hone/journal"
	"hone/model"
)

// Account is what the calls of a run are paid from. Its ledger is the run's journal: each
// attempt is a reserve, durable before its request leaves, and a commit with what it used. A
// reserve without a commit counts in full, also after a crash (ruling G11). The methods may be
// called from any goroutine.
type Account struct {
	Past   func() *history.Past
	Limits history.Limits
	Retry  Retry
	// Append adds an event to the journal.
	Append func(journal.Entry) (journal.Event, error)
	// Hold holds the disk space for a reply of at most so many tokens, so that what is paid
	// for can be recorded.
	Hold func(tokens int64) error
	// Sending is called before each request leaves. If it fails, the request is not sent and
	// costs nothing. Nil does nothing.
	Sending func() error
	// Active returns how long the run has worked.
	Active func() time.Duration

	mu      sync.Mutex
	relayed map[string]bool // roles whose agent's calls this process forwarded
}

// framingTokens is how many tokens a provider's wire format may add to a
// request.
const framingTokens = 1024

// reservation is a reserve that is not committed yet.
type reservation struct {
	history.Reserve
	seq   int64
	out   int64 // maximum number of tokens of the reply
	price *Price
}

// reserve pays in advance for a request of at most in tokens, holds the disk space for its reply,
// and lets the request go.
func (a *Account) reserve(role string, c Candidate, attempt int, in int64) (reservation, error) {
	h, err := a.recordReserve(role, c, attempt, in)
	if err != nil || a.Sending == nil {
		return h, err
	}
	if err := a.Sending(); err != nil {
		_, failed := a.commit(h, nil, &model.Error{Kind: model.Unreachable, Message: "not sent: " + err.Error()})
		return h, cmp.Or(failed, err)
	}
	return h, nil
}

func (a *Account) recordReserve(role string, c Candidate, attempt int, in int64) (reservation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out, err := a.affordableOutput(role, c, need{in: in, out: c.atMost(minOutput), what: "the next request"})
	if err != nil {
		return reservation{}, err
	}
	h := reservation{Reserve: history.Reserve{Role: role, Model: c.Called, Attempt: attempt, Tokens: in + out}, out: out, price: c.Price}
	if c.Price != nil {
		cost := c.Price.maxCost(in, out)
		h.Cost = &cost
	}
	if err := a.Hold(out); err != nil {
		return reservation{}, err
	}
	e, err := a.Append(journal.Entry{Type: history.TypeReserve, Payload: h.Reserve, Sync: true})
	h.seq = e.Seq
	return h, err
}

// It returns nil if the provider reported nothing plausible.
func (a *Account) commit(h reservation, used *model.Usage, fault error) (*model.Usage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := history.Commit{Reserve: h.seq, Usage: used, Tokens: h.Tokens, Cost: h.Cost, Basis: "assumed in full"}
	var f *model.Error
	if fault != nil {
		c.Error = fault.Error()
		if errors.As(fault, &f) && f.Usage != nil {
			c.Usage = f.Usage
		}
	}
	if c.Usage = plausibleUsage(c.Usage, h.Tokens-h.out-framingTokens); c.Usage != nil && c.Usage.Total() == 0 && (fault == nil || f != nil) {
		c.Usage = nil
	}
	switch {
	case c.Usage == nil && f != nil && f.Rejected():
		c.Usage, c.Basis = &model.Usage{}, "nothing was generated"
		charge(&c, h.price)
	case c.Usage == nil:
	case f != nil && f.Temporary() && c.Usage.Output <= h.out:
		// The provider reported what it read, but not all that it wrote, so the maximum counts as written.
		if c.Usage.Total() > c.Usage.Output {
			c.Usage = new(*c.Usage)
			c.Usage.Output, c.Usage.Cost = h.out, nil
			charge(&c, h.price)
		}
		c.Usage = nil
	default:
		c.Basis = "provider"
		charge(&c, h.price)
	}
	return c.Usage, a.recordCommit(c)
}

func charge(c *history.Commit, price *Price) {
	c.Tokens = c.Usage.Total()
	c.Cost = costOf(*c.Usage, price)
}

func (a *Account) recordCommit(c history.Commit) error {
	if _, err := a.Append(journal.Entry{Type: history.TypeCommit, Payload: c}); err != nil {
		return err
	}
	spent := a.Past().Facts().Ledger
	_, err := a.Append(journal.Entry{Type: history.TypeUsage, Payload: history.Usage{Tokens: spent.Tokens, Cost: spent.Price(), Known: spent.Known}})
	return err
}

// maxPlausibleTokens is more than any attempt can use, and small enough to add
// up.
const maxPlausibleTokens = 1 << 40

// Of a request of so many bytes any usage is believed, because little is lost.
const shortRequest = 16 << 10

// plausibleUsage returns the reported usage of a request of that many bytes; nil if its
// numbers cannot be counts of tokens, or are too few for the request: a provider that
// reports almost nothing would make the budget endless.
func plausibleUsage(u *model.Usage, bytes int64) *model.Usage {
	if u == nil {
		return nil
	}
	for _, n := range []int64{u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > maxPlausibleTokens {
			return nil
		}
	}
	if u.Total() > 0 && u.Input+u.CacheRead+u.CacheWrite < (bytes-shortRequest)/model.MaxTokenBytes {
		return nil
	}
	return u
}

// Reserve reserves the cost of a call that an agent makes and a proxy forwards (rulings A8
// and G11). c is the model that the agent asks; its Model is not used, and its MaxOutput is
// the maximum that the reply may have. bytes is the size of the request.
//
// Reserve returns how many tokens the reply may have. The caller must call
// commit once, with the usage, or with nil if it is unknown. If the budget
// cannot pay for the call the error is a [*history.Stop].
func (a *Account) Reserve(role string, c Candidate, bytes int64) (maxOutput int64, commit func(used *model.Usage, fault error) error, err error) {
	a.mu.Lock()
	if a.relayed == nil {
		a.relayed = map[string]bool{}
	}
	a.relayed[role] = true // the call is forwarded whether the budget pays for it or not; the agent's own report then does not count
	a.mu.Unlock()
	h, err := a.reserve(role, c, 0, bytes+framingTokens)
	if err != nil {
		return 0, nil, err
	}
	return h.out, func(used *model.Usage, fault error) error {
		_, err := a.commit(h, used, fault)
		return err
	}, nil
}

// Lend reserves tokens and cost for another run, which a loop starts and this run pays
// for. A nil cost means that the price of the other run's model is not known. The loan
// counts in full until it is repaid, also after a crash: a resumed loop finds it with
// [history.Past.Reserved] and repays it with what the other run's journal says. Lend does
// not compare the loan with the run's limits.
func (a *Account) Lend(role, model string, tokens int64, cost *float64) (loan int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Hold(0); err != nil {
		return 0, err
	}
	e, err := a.Append(journal.Entry{Type: history.TypeReserve, Sync: true,
		Payload: history.Reserve{Role: role, Model: model, Tokens: tokens, Cost: cost}})
	return e.Seq, err
}

// Repay replaces a loan with what the other run has used of it.
func (a *Account) Repay(loan int64, used history.Ledger) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.recordCommit(history.Repayment(loan, used))
}
