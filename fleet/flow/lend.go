package flow

import (
	"fmt"

	"hone/fleet/bank"
	"hone/history"
	"hone/internal/render"
)

// borrow borrows for the next leg of a job. If the bank lends nothing, why is not empty.
func (b *batch) borrow(i int) (loan bank.Sum, why string) {
	if b.ownUsed(i) {
		why = fmt.Sprintf("its own limit of %s is used up", text(bank.SumOf(b.Jobs[i].Max)))
		if b.again(i) && b.Progress[i].Outcome.Why != "" {
			why += ": " + b.Progress[i].Outcome.Why
		}
		return loan, why
	}
	want, least := b.share(i)
	loan, ok := b.Bank.Borrow(b.Jobs[i].Name, want, least)
	if !ok && len(b.legs) == 0 { // nothing comes back, so that the job gets what there is
		loan, ok = b.Bank.Borrow(b.Jobs[i].Name, want, b.rest(i, least))
	}
	switch {
	case !ok && b.again(i):
		return loan, "the batch has no budget left for it: " + b.Progress[i].Outcome.Why
	case !ok:
		return loan, "the batch has too little left for it: " + text(bank.SumOf(b.Bank.Figures().Free))
	}
	return loan, ""
}

// ownUsed reports whether a job has used up a limit of its own.
func (b *batch) ownUsed(i int) bool {
	own, used, had := bank.SumOf(b.Jobs[i].Max), bank.SumOf(b.Progress[i].Outcome.Spent), bank.SumOf(b.Progress[i].Limit)
	if own.Tokens > 0 && used.Tokens >= own.Tokens || own.Nano > 0 && used.Nano >= own.Nano {
		return true
	}
	grows := func(had, own int64) bool { return had > 0 && (own == 0 || had < own) }
	return b.again(i) && !grows(had.Tokens, own.Tokens) && !grows(had.Nano, own.Nano)
}

// again reports whether the last leg of a job ended because its allowance was used up.
func (b *batch) again(i int) bool {
	return b.Progress[i].Outcome.Kind == history.KindBudget
}

// share returns what the next leg of a job should borrow: an equal part of what is free,
// and at least as much as it needs to be of use.
func (b *batch) share(i int) (want, least bank.Sum) {
	open := len(b.legs)
	for _, p := range b.Progress {
		if p.State == Queued || p.State == Waiting {
			open++
		}
	}
	limit, free, floor := b.Bank.Cap, b.Bank.Free(), bank.SumOf(b.Least)
	used, had, own := bank.SumOf(b.Progress[i].Outcome.Spent), bank.SumOf(b.Progress[i].Limit), bank.SumOf(b.Jobs[i].Max)
	want.Tokens, least.Tokens = b.part(i, limit.Tokens, free.Tokens/int64(open), floor.Tokens, used.Tokens, had.Tokens, own.Tokens)
	want.Nano, least.Nano = b.part(i, limit.Nano, free.Nano/int64(open), floor.Nano, used.Nano, had.Nano, own.Nano)
	return want, least
}

// part is share for tokens or for cost.
func (b *batch) part(i int, limit, equal, floor, used, had, own int64) (want, least int64) {
	if limit == 0 { // only the job's own limit
		return max(0, own-used), 0
	}
	least = max(floor, had-used)
	if b.again(i) {
		least = max(floor, 2*had-used)
	}
	want = max(least, equal)
	if own > 0 {
		want, least = min(want, own-used), min(least, own-used)
	}
	return want, least
}

// rest returns the smallest useful loan when no other job will repay: for a new job a part of
// the usual one, for any other job more than it had left.
func (b *batch) rest(i int, least bank.Sum) bank.Sum {
	p := b.Progress[i]
	if p.Legs == 0 {
		return bank.Sum{Tokens: least.Tokens / 10, Nano: least.Nano / 10}
	}
	had := bank.SumOf(p.Limit).Minus(bank.SumOf(p.Outcome.Spent))
	if b.again(i) {
		had = had.Plus(bank.Sum{Tokens: 1, Nano: 1})
	}
	return bank.Sum{Tokens: min(least.Tokens, had.Tokens), Nano: min(least.Nano, had.Nano)}
}

// text returns a sum as a text for users.
func text(s bank.Sum) string {
	a := s.Amount()
	switch {
	case s.Nano == 0:
		return render.Tokens(a.Tokens) + " tokens"
	case s.Tokens == 0:
		return fmt.Sprintf("$%.4f", a.Cost)
	}
	return fmt.Sprintf("%s tokens and $%.4f", render.Tokens(a.Tokens), a.Cost)
}
