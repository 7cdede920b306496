package hone

import (
	"context"
	"math"

	"hone/history"
)

// A conversation asks for its answer before the budget is used up, so that paid
// work does not end without one. A turn starts only if the budget can pay for it
// and for a final answer after it; otherwise the model is asked for the answer
// now. The budget itself does not depend on this: each call is reserved before it
// is made.

// Allowance is what the budget allows for one turn of a conversation. The zero
// Allowance sets no limit. The step "budget" records it.
type Allowance struct {
	// Last means that the budget pays only for the final answer.
	Last bool `json:"last,omitempty"`
	// Request limits the bytes of the request that ends the conversation; 0
	// means no limit.
	Request int64 `json:"request,omitempty"`
	// Output limits the tokens of the reply, so that the budget also pays for a
	// final answer after it; 0 means the role's MaxOutput.
	Output int64 `json:"output,omitempty"`
	history.Report
}

const (
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

// The allowance is a step, because the request depends on it and the ledger differs after a crash.
func (t *talk) recordedAllowance(ctx context.Context) (Allowance, error) {
	return Step(ctx, t.r, "budget", nil, func(context.Context) (Allowance, error) { return t.allowance() })
}

// If the budget cannot pay for the next request, the error is a [*Stop]. Errors are not recorded, so a resumed run computes the
// allowance again.
func (t *talk) allowance() (Allowance, error) {
	if !t.r.limited() {
		return Allowance{}, nil
	}
	whole, err := t.encode()
	if err != nil {
		return Allowance{}, err
	}
	role, _ := t.r.inService(t.role)
	t.r.money.Lock()
	defer t.r.money.Unlock()
	in, a := int64(len(whole))+framingTokens, Allowance{}
	if t.Ended == "" && len(t.specs) > 0 {
		_, refusal := t.r.affordableOutput(role, role.turnAndAnswer(in))
		switch {
		case refusal == nil:
			return Allowance{Output: t.r.turnOutput(role, in)}, nil
		case t.Turns == 1:
			return a, refusal // do not start a conversation that can only be ended
		}
		a.Last, a.Said = true, "the budget is nearly used up, and the "+t.role.Name+" is asked for its answer"
	}
	a.Request = t.r.requestBytes(role)
	in += maxHarnessText - t.elideOutput(math.MaxInt64, true, false).Bytes
	_, err = t.r.affordableOutput(role, need{in: in, out: role.atMost(minOutput), what: "the next request"})
	return a, err
}

func (role Role) atMost(tokens int64) int64 { return min(role.MaxOutput, tokens) }

// in is the number of tokens of the turn's request.
func (role Role) turnAndAnswer(in int64) need {
	turn := role.atMost(minTurn)
	return need{in: 2*in + bytesPerToken*turn + maxTurnText + maxHarnessText, out: turn + role.atMost(minAnswer), what: "the next turn"}
}

func (r *Run) limited() bool { return r.Limits.Tokens > 0 || r.Limits.Cost > 0 }

// remainingBudget is what is left of one of the run's limits, and what each
// token that is read (in) or written (out) takes of it.
type remainingBudget struct{ left, in, out float64 }

func (r *Run) remainingBudgets(role Role) []remainingBudget {
	spent := r.Past().Ledger()
	var all []remainingBudget
	if r.Limits.Tokens > 0 {
		all = append(all, remainingBudget{float64(r.Limits.Tokens - spent.Tokens), 1, 1})
	}
	if r.Limits.Cost > 0 && role.Price != nil {
		all = append(all, remainingBudget{r.Limits.Cost - spent.Cost, role.Price.maxCost(1, 0), role.Price.maxCost(0, 1)})
	}
	return all
}

// The budget still pays for an answer after such a reply. It returns 0 if the role's own limit is lower. Each token is paid for
// twice: when it is written, and when it is sent again.
func (r *Run) turnOutput(role Role, in int64) int64 {
	most := float64(role.MaxOutput)
	for _, p := range r.remainingBudgets(role) {
		fixed := p.in*float64(2*in+maxTurnText+maxHarnessText) + p.out*float64(role.atMost(minAnswer))
		if each := p.out + bytesPerToken*p.in; each > 0 {
			most = min(most, (p.left-fixed)/each)
		}
	}
	if most >= float64(role.MaxOutput) {
		return 0
	}
	return max(int64(most), role.atMost(minTurn))
}

// requestBytes returns how many bytes may be sent so that the budget pays for
// an answer; 0 means any number.
func (r *Run) requestBytes(role Role) int64 {
	most := math.Inf(1)
	for _, p := range r.remainingBudgets(role) {
		if p.in > 0 {
			most = min(most, (p.left-p.out*float64(role.atMost(minAnswer)))/p.in)
		}
	}
	if most > 1<<53 {
		return 0
	}
	return max(1, int64(most)-framingTokens-1)
}
