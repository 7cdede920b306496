// Package bank divides the budget of a batch among its jobs.
//
// A job borrows before each leg, and repays after it what the leg has not spent. Lent + free +
// spent always equals the cap, exactly: costs are counted in units of 1e-9 USD. The ledger of
// its run limits a job to what it was lent; if it still spends more, free becomes negative,
// and the bank lends nothing until free is positive again.
//
// A Bank depends only on its calls, so that the replay of a workflow arrives at the same
// figures. It has no lock. Its JSON form is complete.
package bank

import (
	"fmt"
	"math"

	"hone/fleet/job"
)

// Bank is the budget of a batch. A part of the cap that is 0 has no limit: the bank lends as
// much as a job wants, and counts what is spent.
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

// Minus returns s without t.
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

// Free returns what can be lent; in a part without a limit, the negative of what is lent and
// spent.
func (b *Bank) Free() Sum { return b.Cap.Minus(b.Spent).Minus(b.Lent()) }

// Borrow lends a job what it wants, or all that is free if that is less. If in a limited
// part less than least is free, or nothing, it returns false and lends nothing. A job that
// has borrowed must repay before it borrows again; otherwise Borrow panics.
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

// Figures is the state of a bank, for people.
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
