// Package bank divides the budget of a batch among its jobs.
//
// A job borrows before each leg and repays after it, with what the leg has spent. At every
// moment lent + free + spent = cap, exactly: costs are counted in units of 1e-9 USD. A job
// can spend only what it was lent, because its run's own ledger keeps to that; if it still
// spends more, free becomes negative, and nothing is lent until it is not.
//
// A Bank depends on nothing but its calls, so that a workflow that is replayed comes to the
// same figures. It has no lock. Its JSON is all of it.
package bank

import (
	"fmt"
	"math"

	"hone/fleet/job"
)

// Bank is the budget of a batch. A part of the cap that is 0 has no limit: as much is lent
// as a job wants, and what is spent is counted.
type Bank struct {
	Cap   Sum            `json:"cap"`
	Spent Sum            `json:"spent"`
	Loans map[string]Sum `json:"loans,omitempty"` // by the name of the job
}

// Sum is an amount that can be added without rounding.
type Sum struct {
	Tokens int64 `json:"tokens"`
	Nano   int64 `json:"nano"` // 1e-9 USD
}

const nano = 1e9 // of one USD

// SumOf returns an amount as a sum. The cost is rounded to 1e-9 USD.
func SumOf(a job.Amount) Sum { return Sum{a.Tokens, int64(math.Round(a.Cost * nano))} }

// Amount returns a sum as an amount.
func (s Sum) Amount() job.Amount { return job.Amount{Tokens: s.Tokens, Cost: float64(s.Nano) / nano} }

// Plus returns the sum of two.
func (s Sum) Plus(t Sum) Sum { return Sum{s.Tokens + t.Tokens, s.Nano + t.Nano} }

// Minus returns what is left of s without t.
func (s Sum) Minus(t Sum) Sum { return Sum{s.Tokens - t.Tokens, s.Nano - t.Nano} }

// New returns a bank that has lent nothing.
func New(limit job.Amount) *Bank { return &Bank{Cap: SumOf(limit)} }

// Lent returns what the jobs have borrowed and not repaid.
func (b *Bank) Lent() (lent Sum) {
	for _, loan := range b.Loans {
		lent = lent.Plus(loan)
	}
	return lent
}

// Free returns what can be lent. A part without a limit is 0 minus what is lent and spent.
func (b *Bank) Free() Sum { return b.Cap.Minus(b.Spent).Minus(b.Lent()) }

// Borrow lends a job what it wants, or less if less is free, but in each limited part at
// least least and more than nothing. It returns false, and lends nothing, if less is free.
// A job that has borrowed must repay before it borrows again.
func (b *Bank) Borrow(name string, want, least Sum) (Sum, bool) {
	if _, ok := b.Loans[name]; ok {
		panic(fmt.Sprintf("bank: job %s borrows twice", name))
	}
	free := b.Free()
	tokens, ok := part(b.Cap.Tokens, free.Tokens, want.Tokens, least.Tokens)
	cost, affordable := part(b.Cap.Nano, free.Nano, want.Nano, least.Nano)
	if !ok || !affordable {
		return Sum{}, false
	}
	if b.Loans == nil {
		b.Loans = map[string]Sum{}
	}
	b.Loans[name] = Sum{tokens, cost}
	return b.Loans[name], true
}

// part is Borrow for tokens or for cost.
func part(limit, free, want, least int64) (int64, bool) {
	if limit == 0 {
		return max(0, want), true
	}
	loan := min(want, free)
	return loan, loan > 0 && loan >= least
}

// Repay ends the loan of a job, and charges what the job has spent of it.
func (b *Bank) Repay(name string, spent Sum) {
	if _, ok := b.Loans[name]; !ok {
		panic(fmt.Sprintf("bank: job %s repays what it has not borrowed", name))
	}
	delete(b.Loans, name)
	b.Spent = b.Spent.Plus(spent)
}

// Figures are what a bank has, for people.
type Figures struct {
	Cap   job.Amount `json:"cap,omitzero"` // a part that is 0 has no limit
	Lent  job.Amount `json:"lent,omitzero"`
	Spent job.Amount `json:"spent,omitzero"`
	Free  job.Amount `json:"free,omitzero"` // of the limited parts; negative if more was spent than lent
}

// Figures returns what the bank has now.
func (b *Bank) Figures() Figures {
	free := b.Free()
	if b.Cap.Tokens == 0 {
		free.Tokens = 0
	}
	if b.Cap.Nano == 0 {
		free.Nano = 0
	}
	return Figures{b.Cap.Amount(), b.Lent().Amount(), b.Spent.Amount(), free.Amount()}
}
