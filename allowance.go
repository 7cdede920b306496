package hone

import (
	"context"
	"math"

	"hone/history"
)

// A conversation is told in time that its budget comes to its end. Before each
// turn it is asked what is left: a turn is taken only where the call that ends
// the conversation can be paid after it, whatever the turn may take. Where it
// cannot, that call is made now: its reply is the answer, and nothing that was
// paid for ends in mid-work. The cap itself does not rest on any of this: each
// call is reserved before it leaves.

// Allowance is what the budget leaves for a turn of a conversation, the record
// of the step "budget". The zero Allowance is that there is no limit near.
type Allowance struct {
	// Last says that only the answer can be paid any more.
	Last bool `json:"last,omitempty"`
	// Request is how many bytes the call that ends the conversation may send; 0:
	// any number.
	Request int64 `json:"request,omitempty"`
	// Output is how many tokens a reply may have so that the answer can be paid
	// after it; 0: as many as the role's may.
	Output int64 `json:"output,omitempty"`
	history.Report
}

const (
	// leastTurn is how many tokens a turn's reply needs to be worth paying for:
	// one that is cut off is paid for, and not taken.
	minTurn = 1024
	// leastAnswer is how many tokens an answer needs.
	minAnswer = 1024
	// echoed is how many bytes a token of a reply takes when it is sent again.
	bytesPerToken = 4
	// mostWords is how many bytes the harness's own words take in a request.
	maxHarnessText = 512
	// mostNotes is how many bytes a turn adds to the next request beside its
	// reply, when the output of its calls is left out.
	maxTurnText = 4096 - maxHarnessText
)

// left is what the budget leaves for the turn. What the model is sent depends
// on it, and after a crash the ledger is another: so it is a step.
func (t *talk) recordedAllowance(ctx context.Context) (Allowance, error) {
	return Step(ctx, t.r, "budget", nil, func(context.Context) (Allowance, error) { return t.allowance() })
}

// allowance looks at the ledger. What cannot be paid at all is an error, which
// is not remembered: a run that is gone on with looks again.
func (t *talk) allowance() (Allowance, error) {
	if !t.r.limited() {
		return Allowance{}, nil
	}
	whole, err := t.encode()
	if err != nil {
		return Allowance{}, err
	}
	t.r.money.Lock()
	defer t.r.money.Unlock()
	in, a := int64(len(whole))+framingTokens, Allowance{}
	if t.Ended == "" && len(t.specs) > 0 {
		_, refusal := t.r.affordableOutput(t.role, t.role.turnAndAnswer(in))
		switch {
		case refusal == nil:
			return Allowance{Output: t.r.turnOutput(t.role, in)}, nil
		case t.Turns == 1:
			return a, refusal // a conversation that could only be ended is not begun
		}
		a.Last, a.Said = true, "the budget is nearly used up, and the "+t.role.Name+" is asked for its answer"
	}
	a.Request = t.r.requestBytes(t.role)
	in += maxHarnessText - t.elideOutput(math.MaxInt64, true, false).Bytes
	_, err = t.r.affordableOutput(t.role, need{in: in, out: t.role.atMost(minOutput), what: "the next request"})
	return a, err
}

// least is so many tokens, or what the role's replies may have if that is less.
func (role Role) atMost(tokens int64) int64 { return min(role.MaxOutput, tokens) }

// turnAndAnswer is what a turn whose request takes so many tokens needs, with
// the answer after it.
func (role Role) turnAndAnswer(in int64) need {
	turn := role.atMost(minTurn)
	return need{in: 2*in + bytesPerToken*turn + maxTurnText + maxHarnessText, out: turn + role.atMost(minAnswer), what: "the next turn and an answer after it"}
}

func (r *Run) limited() bool { return r.Limits.Tokens > 0 || r.Limits.Cost > 0 }

// purse is what is left of one of the run's limits, and what a token takes of
// it that is read or written.
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

// spare is how many tokens the reply to a request of so many may have where an
// answer is to be paid after it; 0 where that is no less than it may have
// anyway. Each of them is paid for as it is written, and sent again.
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

// room is how many bytes may be sent so that an answer can be paid; 0: any
// number.
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
