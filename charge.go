package hone

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"hone/history"
	"hone/journal"
	"hone/model"
)

// framingTokens is how many tokens a provider's wire format may add to a
// request.
const framingTokens = 1024

// minOutput is how many tokens a reply needs to be worth asking for.
const minOutput = 256

// need is what the budget must pay for, in tokens: the request, and the
// shortest useful reply.
type need struct {
	in, out int64
	what    string // for the user
}

// affordableOutput returns how many tokens a reply may have so that the budget
// pays for it. If that is fewer than needed, the error is a [*Stop].
func (r *Run) affordableOutput(role Role, n need) (int64, error) {
	if role.MaxOutput <= 0 {
		return 0, &Stop{Kind: KindUsage, Why: "the role " + role.Name + " has no output limit, so nothing can be reserved for its replies"}
	}
	out, spent := max(role.MaxOutput, n.out), r.Past().Ledger()
	if limit := r.Limits.Tokens; limit > 0 {
		enough := max(limit*2, spent.Tokens+n.in+out)
		if out = min(out, limit-spent.Tokens-n.in); out < n.out {
			return 0, budgetStop(fmt.Sprintf("%s may need up to %d tokens, but only %d of the limit of %d are left",
				n.what, n.in+n.out, max(0, limit-spent.Tokens), limit), resumeWith("max-tokens", enough))
		}
	}
	if r.Limits.Cost > 0 {
		return r.affordableOutputByCost(role, n, out, spent)
	}
	return out, nil
}

func (r *Run) affordableOutputByCost(role Role, n need, out int64, spent history.Ledger) (int64, error) {
	if role.Price == nil || spent.Unpriced {
		return 0, &Stop{Kind: KindUsage, Why: "a cost limit needs the price of " + role.Called, Err: errNoPrice,
			Next: Next{First: fmt.Sprintf("write it into .config/hone.toml: [prices.%q] input = …, output = … (USD per million tokens)", role.Called), Verb: NewRun}}
	}
	limit := r.Limits.Cost
	left := limit - spent.Cost - role.Price.maxCost(n.in, 0)
	if role.Price.Output > 0 {
		// Compared before it is converted: a low price gives more than an int64.
		out = int64(min(float64(out), left*1e6/role.Price.Output))
	}
	if out < n.out || left < 0 {
		enough := max(limit*2, spent.Cost+role.Price.maxCost(n.in, max(role.MaxOutput, n.out)))
		return 0, budgetStop(fmt.Sprintf("%s may cost up to $%.4f, but only $%.4f of the limit of $%g is left",
			n.what, role.Price.maxCost(n.in, n.out), max(0, limit-spent.Cost), limit), resumeWith("max-cost", fmt.Sprintf("%.2f", math.Ceil(100*enough)/100)))
	}
	return out, nil
}

func budgetStop(why string, next Next) error {
	return &Stop{Kind: KindBudget, Why: why, Next: next}
}

// reservation is a reserve that is not committed yet.
type reservation struct {
	history.Reserve
	seq   int64
	out   int64 // maximum number of tokens of the reply
	price *Price
}

// The attempt sends at most in tokens. The disk space for its reply is held too.
func (r *Run) reserve(role Role, attempt int, in int64) (reservation, error) {
	r.money.Lock()
	defer r.money.Unlock()
	out, err := r.affordableOutput(role, need{in: in, out: role.atMost(minOutput), what: "the next request"})
	if err != nil {
		return reservation{}, err
	}
	h := reservation{Reserve: history.Reserve{Role: role.Name, Model: role.Called, Attempt: attempt, Tokens: in + out}, out: out, price: role.Price}
	if role.Price != nil {
		cost := role.Price.maxCost(in, out)
		h.Cost = &cost
	}
	if err := r.holdSpace(out); err != nil {
		return reservation{}, err
	}
	e, err := r.append(journal.Entry{Type: history.TypeReserve, Payload: h.Reserve, Sync: true})
	h.seq = e.Seq
	return h, err
}

// release lets the request of a reservation go, or commits that it was not sent.
func (r *Run) release(h reservation) error {
	err := r.sending()
	if err == nil {
		return nil
	}
	_, failed := r.commit(h, nil, &model.Error{Kind: model.Unreachable, Message: "not sent: " + err.Error()})
	return cmp.Or(failed, err)
}

func (r *Run) sending() error {
	if r.Sending == nil {
		return nil
	}
	return r.Sending()
}

// Reserve reserves the cost of a call that the engine does not make itself: an
// agent makes it, and a proxy forwards it (rulings A8 and G11). role is the
// model that the agent asks, with its price; its MaxOutput is the maximum that
// the reply may have. bytes is the size of the request.
//
// Reserve returns how many tokens the reply may have. The caller must call
// commit once, with the usage, or with nil if it is unknown. If the budget
// cannot pay for the call the error is a [*Stop]. Both functions may be called
// from any goroutine.
func (r *Run) Reserve(role Role, bytes int64) (maxOutput int64, commit func(used *model.Usage, fault error) error, err error) {
	r.noteRelayed(role)
	h, err := r.reserve(role, 0, bytes+framingTokens)
	if err == nil {
		err = r.release(h)
	}
	if err != nil {
		return 0, nil, err
	}
	return h.out, func(used *model.Usage, fault error) error {
		_, err := r.commit(h, used, fault)
		return err
	}, nil
}

// The calls are forwarded whether the budget pays for them or not. The agent's own report then does not count.
func (r *Run) noteRelayed(role Role) {
	r.money.Lock()
	defer r.money.Unlock()
	if r.relayed == nil {
		r.relayed = map[string]bool{}
	}
	r.relayed[role.Name] = true
}

// It returns nil if the provider reported nothing plausible.
func (r *Run) commit(h reservation, used *model.Usage, fault error) (*model.Usage, error) {
	r.money.Lock()
	defer r.money.Unlock()
	c := history.Commit{Reserve: h.seq, Usage: used, Tokens: h.Tokens, Cost: h.Cost, Basis: "assumed in full"}
	var f *model.Error
	if fault != nil {
		c.Error = r.cleanText(fault.Error())
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
		chargeSoFar(&c, h)
	default:
		c.Basis = "provider"
		charge(&c, h.price)
	}
	return c.Usage, r.recordCommit(c)
}

func charge(c *history.Commit, price *Price) {
	c.Tokens = c.Usage.Total()
	if price != nil {
		cost := price.cost(*c.Usage)
		c.Cost = &cost
	}
}

// The provider reported what it read, but not all that it wrote, so the maximum counts as written.
func chargeSoFar(c *history.Commit, h reservation) {
	if c.Usage.Total() > c.Usage.Output {
		most := *c.Usage
		most.Output = h.out
		c.Usage = &most
		charge(c, h.price)
	}
	c.Usage = nil
}

// maxPlausibleTokens is more than any attempt can use, and small enough to add
// up.
const maxPlausibleTokens = 1 << 40

// maxTokenBytes is more bytes than a token of a long text has on average: it is 3 to 5 in
// code, and up to 20 or so in long runs of spaces. Of a short request any usage is
// believed, because little is lost.
const maxTokenBytes, shortRequest = 64, 16 << 10

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
	if u.Total() > 0 && u.Input+u.CacheRead+u.CacheWrite < (bytes-shortRequest)/maxTokenBytes {
		return nil
	}
	return u
}

func (r *Run) recordCommit(c history.Commit) error {
	if _, err := r.append(journal.Entry{Type: history.TypeCommit, Payload: c}); err != nil {
		return err
	}
	spent := r.Past().Ledger()
	_, err := r.append(journal.Entry{Type: history.TypeUsage, Payload: history.Usage{Tokens: spent.Tokens, Cost: spent.Price(), Known: spent.Known}})
	return err
}

// chargeSession charges what an agent reports about its session, unless its
// calls were forwarded and charged one by one. If it reports nothing, the
// request counts, as tokens that no provider confirmed: there is no maximum for
// what an agent sends after that, but its session must not look free.
func (r *Run) chargeSession(role Role, used *model.Usage, bytes int64) error {
	r.money.Lock()
	defer r.money.Unlock()
	if r.relayed[role.Name] {
		return nil
	}
	reserved := history.Reserve{Role: role.Name, Model: role.Called}
	if used == nil {
		reserved.Tokens = bytes + framingTokens
	}
	if role.Price != nil {
		cost := role.Price.maxCost(reserved.Tokens, 0)
		reserved.Cost = &cost
	}
	e, err := r.append(journal.Entry{Type: history.TypeReserve, Payload: reserved})
	if err != nil {
		return err
	}
	c := history.Commit{Reserve: e.Seq, Usage: used, Tokens: reserved.Tokens, Cost: reserved.Cost, Basis: "agent"}
	if used != nil {
		charge(&c, role.Price)
	}
	return r.recordCommit(c)
}

// Lend reserves tokens and cost for another run, which a loop starts and this run pays
// for. A nil cost means that the price of the other run's model is not known. The loan
// counts in full until it is repaid, also after a crash: a resumed loop finds it with
// [history.Past.Reserved] and repays it with what the other run's journal says. Lend does
// not compare the loan with the run's limits. Lend and Repay may be called from any
// goroutine.
func (r *Run) Lend(role, model string, tokens int64, cost *float64) (loan int64, err error) {
	r.money.Lock()
	defer r.money.Unlock()
	e, err := r.append(journal.Entry{Type: history.TypeReserve, Sync: true,
		Payload: history.Reserve{Role: role, Model: model, Tokens: tokens, Cost: cost}})
	return e.Seq, err
}

// Repay replaces a loan with what the other run has used of it.
func (r *Run) Repay(loan int64, used history.Ledger) error {
	r.money.Lock()
	defer r.money.Unlock()
	return r.recordCommit(history.Repayment(loan, used))
}

// Attempted records the state of an attempt. It may be called from any goroutine.
func (r *Run) Attempted(a history.Attempt) error {
	_, err := r.append(journal.Entry{Type: history.TypeAttempt, Payload: a})
	return err
}

var errNoPrice = errors.New("the model's price is not known")
