package paid

import (
	"errors"
	"fmt"
	"math"

	"hone/history"
	"hone/model"
)

// A conversation asks for its answer before the budget is used up, so that paid
// work does not end without one. A turn starts only if the budget can pay for it
// and for a final answer after it; otherwise the model is asked for the answer
// now. The budget itself does not depend on this: each call is reserved before it
// is made.

// Allowance is what the budget allows for one turn of a conversation. The zero
// Allowance sets no limit.
type Allowance struct {
	// Last means that the budget pays only for the final answer.
	Last bool `json:"last,omitempty"`
	// Request limits the bytes of the request that ends the conversation; 0
	// means no limit.
	Request int64 `json:"request,omitempty"`
	// Output limits the tokens of the reply, so that the budget also pays for a
	// final answer after it; 0 means the candidate's MaxOutput.
	Output int64 `json:"output,omitempty"`
	history.Report
}

const (
	// minOutput is how many tokens a reply needs to be worth asking for.
	minOutput = 256
	// minTurn is the number of tokens that a turn's reply needs to be worth its
	// cost. A reply that stops at its limit is charged, but discarded.
	minTurn = 1024
	// minAnswer is the number of tokens that an answer needs.
	minAnswer = 1024
	// bytesPerToken is the number of bytes that a token of a reply takes when
	// it is sent again.
	bytesPerToken = 4
	// maxHarnessText is the maximum number of bytes that hone's own texts add
	// to a request.
	maxHarnessText = 512
	// maxTurnText is the maximum number of bytes that a turn adds to the next
	// request in addition to its reply, if the output of its calls is omitted.
	maxTurnText = 4096 - maxHarnessText
)

// Turn returns what the budget allows for a turn whose request has so many bytes, after which
// the conversation goes on. If the budget pays at most for an answer, the error is a
// [*history.Stop].
func (m Model) Turn(bytes int64) (Allowance, error) {
	if !m.Account.limited() {
		return Allowance{}, nil
	}
	now, _ := m.InService()
	m.Account.mu.Lock()
	defer m.Account.mu.Unlock()
	in, turn, answer := bytes+framingTokens, now.atMost(minTurn), now.atMost(minAnswer)
	both := need{in: 2*in + bytesPerToken*turn + maxTurnText + maxHarnessText, out: turn + answer, what: "the next turn"}
	if _, err := m.Account.affordableOutput(m.Role, now, both); err != nil {
		return Allowance{}, err
	}
	// The budget still pays for an answer after a reply of that many tokens. Each is paid for twice: when it is written, and when
	// it is sent again.
	most := float64(now.MaxOutput)
	for _, p := range m.Account.remainingBudgets(now) {
		fixed := p.in*float64(2*in+maxTurnText+maxHarnessText) + p.out*float64(answer)
		if each := p.out + bytesPerToken*p.in; each > 0 {
			most = min(most, (p.left-fixed)/each)
		}
	}
	if most >= float64(now.MaxOutput) {
		return Allowance{}, nil
	}
	return Allowance{Output: max(int64(most), turn)}, nil
}

// Answer returns what the budget allows for the last turn. The request has so many bytes, of which
// spare can be omitted. If the budget does not even pay for that, the error is a [*history.Stop].
func (m Model) Answer(bytes, spare int64) (Allowance, error) {
	if !m.Account.limited() {
		return Allowance{}, nil
	}
	now, _ := m.InService()
	m.Account.mu.Lock()
	defer m.Account.mu.Unlock()
	in := bytes + framingTokens + maxHarnessText - spare
	_, err := m.Account.affordableOutput(m.Role, now, need{in: in, out: now.atMost(minOutput), what: "the next request"})
	most := math.Inf(1) // bytes that may be sent so that the budget pays for an answer
	for _, p := range m.Account.remainingBudgets(now) {
		if p.in > 0 {
			most = min(most, (p.left-p.out*float64(now.atMost(minAnswer)))/p.in)
		}
	}
	if most > 1<<53 {
		return Allowance{}, err
	}
	return Allowance{Request: max(1, int64(most)-framingTokens-1)}, err
}

// need is what the budget must pay for, in tokens: the request, and the
// shortest useful reply.
type need struct {
	in, out int64
	what    string // for the user
}

// affordableOutput returns how many tokens a reply may have so that the budget
// pays for it. If that is fewer than needed, the error is a [*history.Stop].
func (a *Account) affordableOutput(role string, c Candidate, n need) (int64, error) {
	if c.MaxOutput <= 0 {
		return 0, &history.Stop{Kind: history.KindUsage, Why: "the role " + role + " has no output limit, so nothing can be reserved for its replies"}
	}
	out, spent := max(c.MaxOutput, n.out), a.Past().Facts().Ledger
	if limit := a.Limits.Tokens; limit > 0 {
		enough := spent.Tokens + n.in + out
		if out = min(out, limit-spent.Tokens-n.in); out < n.out {
			return 0, budgetStop(fmt.Sprintf("%s may need up to %d tokens, but only %d of the limit of %d are left",
				n.what, n.in+n.out, max(0, limit-spent.Tokens), limit), history.MoreTokens(limit, enough))
		}
	}
	limit := a.Limits.Cost
	if limit == 0 {
		return out, nil
	}
	if c.Price == nil || spent.Unpriced > 0 {
		return 0, &history.Stop{Kind: history.KindUsage, Why: "a cost limit needs the price of " + c.Called, Err: errNoPrice,
			Next: history.Next{First: fmt.Sprintf("write it into .config/hone.toml: [prices.%q] input = …, output = … (USD per million tokens)", c.Called), Verb: history.NewRun}}
	}
	left := limit - spent.Cost - c.Price.maxCost(n.in, 0)
	if each := c.Price.maxCost(0, 1); each > 0 {
		// Compared before it is converted: a low price gives more than an int64.
		out = int64(min(float64(out), left/each))
	}
	if out < n.out || left < 0 {
		enough := spent.Cost + c.Price.maxCost(n.in, max(c.MaxOutput, n.out))
		return 0, budgetStop(fmt.Sprintf("%s may cost up to $%.4f, but only $%.4f of the limit of $%g is left",
			n.what, c.Price.maxCost(n.in, n.out), max(0, limit-spent.Cost), limit), history.MoreCost(limit, enough))
	}
	return out, nil
}

var errNoPrice = errors.New("the model's price is not known")

func budgetStop(why string, next history.Next) error {
	return &history.Stop{Kind: history.KindBudget, Why: why, Next: next}
}

func (c Candidate) atMost(tokens int64) int64 { return min(c.MaxOutput, tokens) }

func (a *Account) limited() bool { return a.Limits.Tokens > 0 || a.Limits.Cost > 0 }

// remainingBudget is what is left of one of the run's limits, and what each
// token that is read (in) or written (out) takes of it.
type remainingBudget struct{ left, in, out float64 }

func (a *Account) remainingBudgets(c Candidate) []remainingBudget {
	spent := a.Past().Facts().Ledger
	var all []remainingBudget
	if a.Limits.Tokens > 0 {
		all = append(all, remainingBudget{float64(a.Limits.Tokens - spent.Tokens), 1, 1})
	}
	if a.Limits.Cost > 0 && c.Price != nil {
		all = append(all, remainingBudget{a.Limits.Cost - spent.Cost, c.Price.maxCost(1, 0), c.Price.maxCost(0, 1)})
	}
	return all
}

// Price is what a model's tokens cost, in USD per million.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`

	// A call whose prompt has more than Above tokens, cached ones included, costs these
	// prices in full; what it writes to the cache costs more by the same factor as other
	// input. 0 means that the length of a prompt does not matter.
	Above         int64   `json:"above,omitempty"`
	LongInput     float64 `json:"long_input,omitempty"`
	LongOutput    float64 `json:"long_output,omitempty"`
	LongCacheRead float64 `json:"long_cache_read,omitempty"`

	// Configured means that it is the user's own, so that it counts even if the server
	// reports what a call costs.
	Configured bool `json:"configured,omitempty"`
}

// forLength returns the prices of a call whose prompt has that many tokens.
func (p Price) forLength(prompt int64) Price {
	if p.Above == 0 || prompt <= p.Above {
		return p
	}
	long := Price{Input: p.LongInput, Output: p.LongOutput, CacheRead: p.LongCacheRead, CacheWrite: p.LongInput}
	if p.Input > 0 {
		long.CacheWrite = p.CacheWrite * p.LongInput / p.Input
	}
	return long
}

// maxReportedFactor is how much the cost that a server reports may differ from that of the
// list. More is a mistake in its units, such as cents for dollars or a price for a token.
const maxReportedFactor = 100

// costOf returns the cost in USD; nil if it is not known. p is nil if the price is not.
func costOf(u model.Usage, p *Price) *float64 {
	if p == nil {
		return u.Cost
	}
	at := p.forLength(u.Input + u.CacheRead + u.CacheWrite)
	listed := (float64(u.Input)*at.Input + float64(u.Output)*at.Output +
		float64(u.CacheRead)*at.CacheRead + float64(u.CacheWrite)*at.CacheWrite) / 1e6
	if u.Cost == nil || p.Configured || *u.Cost > listed*maxReportedFactor && listed > 0 || *u.Cost < listed/maxReportedFactor {
		return &listed
	}
	return u.Cost
}

// maxCost returns the most that a call can cost, in USD: the tokens that it sends are not
// known before, so the dearer prices count. in and out are tokens.
func (p Price) maxCost(in, out int64) float64 {
	long := p.forLength(p.Above + 1)
	return (float64(in)*max(p.Input, p.CacheRead, p.CacheWrite, long.Input, long.CacheRead, long.CacheWrite) +
		float64(out)*max(p.Output, long.Output)) / 1e6
}
