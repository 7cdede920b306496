package flow

import (
	"fmt"

	"hone/fleet/bank"
	"hone/history"
	"hone/internal/render"
)

// borrow borrows for the next leg of a job. If the bank lends nothing, why is not empty.
func (b *batch) borrow(i int) (loan bank.Sum, why string) {
	if b.usedOwnLimit(i) {
		why = fmt.Sprintf("its own limit of %s is used up", sumText(bank.SumOf(b.Jobs[i].Max)))
		if b.usedAllowance(i) && b.Progress[i].Outcome.Why != "" {
			why += ": " + b.Progress[i].Outcome.Why
		}
		return loan, why
	}
	want, least := b.share(i)
	loan, ok := b.Bank.Borrow(b.Jobs[i].Name, want, least)
	if !ok && len(b.legs) == 0 { // no other job will repay, so this one gets what is left
		loan, ok = b.Bank.Borrow(b.Jobs[i].Name, want, b.leastLoan(i, least))
	}
	switch {
	case !ok && b.usedAllowance(i):
		return loan, "the batch has no budget left for it: " + b.Progress[i].Outcome.Why
	case !ok:
		return loan, "the batch has too little left for it: " + sumText(bank.SumOf(b.Bank.Figures().Free))
	}
	return loan, ""
}

// usedOwnLimit reports whether a job has used up a limit of its own.
func (b *batch) usedOwnLimit(i int) bool {
	own, used, had := bank.SumOf(b.Jobs[i].Max), bank.SumOf(b.Progress[i].Outcome.Spent), bank.SumOf(b.Progress[i].Limit)
	if own.Tokens > 0 && used.Tokens >= own.Tokens || own.Nano > 0 && used.Nano >= own.Nano {
		return true
	}
	grows := func(had, own int64) bool { return had > 0 && (own == 0 || had < own) }
	return b.usedAllowance(i) && !grows(had.Tokens, own.Tokens) && !grows(had.Nano, own.Nano)
}

// usedAllowance reports whether the last leg of a job ended because its allowance was used up.
func (b *batch) usedAllowance(i int) bool {
	return b.Progress[i].Outcome.Kind == history.KindBudget
}

// share returns what the next leg of a job should borrow: an equal part of what is free, but
// no less than a useful leg needs.
func (b *batch) share(i int) (want, least bank.Sum) {
	open := len(b.legs)
	for _, p := range b.Progress {
		if p.State == Queued || p.State == Waiting {
			open++
		}
	}
	limit, free, floor := b.Bank.Cap, b.Bank.Free(), bank.SumOf(b.Least)
	used, had, own := bank.SumOf(b.Progress[i].Outcome.Spent), bank.SumOf(b.Progress[i].Limit), bank.SumOf(b.Jobs[i].Max)
	want.Tokens, least.Tokens = b.partialShare(i, limit.Tokens, free.Tokens/int64(open), floor.Tokens, used.Tokens, had.Tokens, own.Tokens)
	want.Nano, least.Nano = b.partialShare(i, limit.Nano, free.Nano/int64(open), floor.Nano, used.Nano, had.Nano, own.Nano)
	return want, least
}

// partialShare is share for tokens or for cost.
func (b *batch) partialShare(i int, limit, equal, floor, used, had, own int64) (want, least int64) {
	if limit == 0 { // only the job's own limit
		return max(0, own-used), 0
	}
	least = max(floor, had-used)
	if b.usedAllowance(i) {
		least = max(floor, 2*had-used)
	}
	want = max(least, equal)
	if own > 0 {
		want, least = min(want, own-used), min(least, own-used)
	}
	return want, least
}

// leastLoan returns the smallest useful loan when no other job will repay: for a new job, a
// tenth of the usual minimum; for any other job, what it had left, or more than that if it
// used up its allowance.
func (b *batch) leastLoan(i int, least bank.Sum) bank.Sum {
	p := b.Progress[i]
	if p.Legs == 0 {
		return bank.Sum{Tokens: least.Tokens / 10, Nano: least.Nano / 10}
	}
	had := bank.SumOf(p.Limit).Minus(bank.SumOf(p.Outcome.Spent))
	if b.usedAllowance(i) {
		had = had.Plus(bank.Sum{Tokens: 1, Nano: 1})
	}
	return bank.Sum{Tokens: min(least.Tokens, had.Tokens), Nano: min(least.Nano, had.Nano)}
}

// sumText returns a sum for people.
func sumText(s bank.Sum) string {
	a := s.Amount()
	switch {
	case s.Nano == 0:
		return render.Tokens(a.Tokens) + " tokens"
	case s.Tokens == 0:
		return fmt.Sprintf("$%.4f", a.Cost)
	}
	return fmt.Sprintf("%s tokens and $%.4f", render.Tokens(a.Tokens), a.Cost)
}
