package hone

import (
	"errors"
	"fmt"
	"math"

	"hone/history"
	"hone/journal"
	"hone/model"
)

// framing is what a wire may add to a request's bytes, in tokens.
const framing = 1024

// leastOutput is what a reply needs to be worth asking for, in tokens.
const leastOutput = 256

// need is what is to be paid for, in tokens: those that are sent, and the least
// that can be written in reply to be of use.
type need struct {
	in, out int64
	what    string // for people
}

// afford is the output limit that fits what is left of the budget.
func (r *Run) afford(role Role, n need) (int64, error) {
	r.ledger.fold(r.Journal.Events())
	if role.MaxOutput <= 0 {
		return 0, &Stop{Kind: KindUsage, Why: "the role " + role.Name + " has no output limit, so nothing can be reserved for its replies"}
	}
	out := max(role.MaxOutput, n.out)
	if limit := r.Limits.Tokens; limit > 0 {
		enough := max(limit*2, r.ledger.tokens+n.in+out)
		if out = min(out, limit-r.ledger.tokens-n.in); out < n.out {
			return 0, budgetStop("token", fmt.Sprintf("%d of %d tokens are used or reserved, and %s can take %d more",
				r.ledger.tokens, limit, n.what, n.in+n.out), resumeWith("max-tokens", enough))
		}
	}
	if r.Limits.Cost > 0 {
		return r.affordCost(role, n, out)
	}
	return out, nil
}

// affordCost lowers an output limit to what is left of the cost limit.
func (r *Run) affordCost(role Role, n need, out int64) (int64, error) {
	if role.Price == nil || r.ledger.unpriced {
		return 0, &Stop{Kind: KindUsage, Why: "a cost limit needs the price of " + role.Called, Err: errNoPrice,
			Next: Next{First: fmt.Sprintf("write it into .config/hone.toml: [prices.%q] input = …, output = … (USD per million tokens)", role.Called), Verb: NewRun}}
	}
	limit := r.Limits.Cost
	left := limit - r.ledger.cost - role.Price.most(n.in, 0)
	if role.Price.Output > 0 {
		// Compared before it is converted: a low price gives more than an int64.
		out = int64(min(float64(out), left*1e6/role.Price.Output))
	}
	if out < n.out || left < 0 {
		enough := max(limit*2, r.ledger.cost+role.Price.most(n.in, max(role.MaxOutput, n.out)))
		return 0, budgetStop("cost", fmt.Sprintf("$%.4f of $%.4f are used or reserved, and %s can cost $%.4f more",
			r.ledger.cost, limit, n.what, role.Price.most(n.in, n.out)), resumeWith("max-cost", fmt.Sprintf("%.2f", math.Ceil(100*enough)/100)))
	}
	return out, nil
}

func budgetStop(which, why string, next Next) error {
	return &Stop{Kind: KindBudget, Why: "the " + which + " budget is used up: " + why, Next: next}
}

// held is a reserve that is open.
type held struct {
	history.Reserve
	seq   int64
	out   int64 // most tokens that the reply may have
	price *Price
}

// reserve puts an attempt on the ledger that sends at most so many tokens.
func (r *Run) reserve(role Role, attempt int, in int64) (held, error) {
	r.money.Lock()
	defer r.money.Unlock()
	out, err := r.afford(role, need{in: in, out: role.least(leastOutput), what: "the next request"})
	if err != nil {
		return held{}, err
	}
	h := held{Reserve: history.Reserve{Role: role.Name, Model: role.Called, Attempt: attempt, Tokens: in + out}, out: out, price: role.Price}
	if role.Price != nil {
		cost := role.Price.most(in, out)
		h.Cost = &cost
	}
	e, err := r.append(journal.Entry{Type: history.TypeReserve, Payload: h.Reserve, Sync: true})
	h.seq = e.Seq
	return h, err
}

// Reserve puts a call on the ledger that is not the engine's own: an agent
// makes it in its session, and somebody passes it on (rulings A8 and G11). The
// role says whom the agent asks: its price, and in MaxOutput the most that the
// reply may have. bytes are those of the request. The answer is how many tokens
// the reply may have, and what settles the reserve, once; used is nil where it
// is not known. The error is a [*Stop] where the call cannot be afforded. Both
// may be called from any goroutine.
func (r *Run) Reserve(role Role, bytes int64) (maxOutput int64, settle func(used *model.Usage, fault error) error, err error) {
	r.passes(role)
	h, err := r.reserve(role, 0, bytes+framing)
	if err != nil {
		return 0, nil, err
	}
	return h.out, func(used *model.Usage, fault error) error {
		_, err := r.commit(h, used, fault)
		return err
	}, nil
}

// passes notes that a role's calls are passed on, whether they can be afforded
// or not: what its agent says of them does not count then.
func (r *Run) passes(role Role) {
	r.money.Lock()
	defer r.money.Unlock()
	if r.ledger.passed == nil {
		r.ledger.passed = map[string]bool{}
	}
	r.ledger.passed[role.Name] = true
}

// commit puts on the ledger what an attempt used, and returns it; nil where
// the provider said nothing of it that counts.
func (r *Run) commit(h held, used *model.Usage, fault error) (*model.Usage, error) {
	r.money.Lock()
	defer r.money.Unlock()
	c := history.Commit{Reserve: h.seq, Usage: used, Tokens: h.Tokens, Cost: h.Cost, Basis: "assumed in full"}
	var f *model.Error
	if fault != nil {
		c.Error = r.clean(fault.Error())
		if errors.As(fault, &f) && f.Usage != nil {
			c.Usage = f.Usage
		}
	}
	if c.Usage = counted(c.Usage); c.Usage != nil && c.Usage.Total() == 0 && (fault == nil || f != nil) {
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
	return c.Usage, r.settle(c)
}

// charge fills in what the usage of a commit takes, at a price.
func charge(c *history.Commit, price *Price) {
	c.Tokens = c.Usage.Total()
	if price != nil {
		cost := price.of(*c.Usage)
		c.Cost = &cost
	}
}

// chargeSoFar takes what was told of a reply that did not come to its end: what
// was read is known then, and what was written after the last word of it is
// not.
func chargeSoFar(c *history.Commit, h held) {
	if c.Usage.Total() > c.Usage.Output {
		most := *c.Usage
		most.Output = h.out
		c.Usage = &most
		charge(c, h.price)
	}
	c.Usage = nil
}

// mostTokens is more than any attempt can use, and little enough for sums.
const mostTokens = 1 << 40

// counted is what was used, by somebody's word; nil where its numbers cannot be
// counts of tokens.
func counted(u *model.Usage) *model.Usage {
	if u == nil {
		return nil
	}
	for _, n := range []int64{u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > mostTokens {
			return nil
		}
	}
	return u
}

// settle writes a commit, and the run's sums after it.
func (r *Run) settle(c history.Commit) error {
	if _, err := r.append(journal.Entry{Type: history.TypeCommit, Payload: c}); err != nil {
		return err
	}
	r.ledger.fold(r.Journal.Events())
	_, err := r.append(journal.Entry{Type: history.TypeUsage, Payload: history.Usage{Tokens: r.ledger.tokens, Cost: r.ledger.price(), Known: r.ledger.known}})
	return err
}

// believe charges what an agent says that it used, where nobody else counted.
func (r *Run) believe(role Role, used *model.Usage) error {
	r.money.Lock()
	defer r.money.Unlock()
	if r.ledger.passed[role.Name] {
		return nil
	}
	e, err := r.append(journal.Entry{Type: history.TypeReserve, Payload: history.Reserve{Role: role.Name, Model: role.Called, Cost: free(role.Price)}})
	if err != nil {
		return err
	}
	c := history.Commit{Reserve: e.Seq, Usage: used, Basis: "agent"}
	charge(&c, role.Price)
	return r.settle(c)
}

// free is a cost of nothing; nil where the price is not known.
func free(price *Price) *float64 {
	if price == nil {
		return nil
	}
	return new(float64)
}

// errNoPrice is why a run with a cost limit cannot ask a model.
var errNoPrice = errors.New("the model's price is not known")
