package eval

import (
	"strconv"
	"sync"
	"time"

	"hone/internal/render"
)

// Amount is what tries use, or may use. In a limit, zero means that there is none.
type Amount struct {
	Tokens int64
	Cost   float64 // USD
	Time   time.Duration
}

// flags returns the limits as flags of a loop, without those that are zero.
func (a Amount) flags() []string {
	var flags []string
	if a.Tokens > 0 {
		flags = append(flags, "--max-tokens", strconv.FormatInt(a.Tokens, 10))
	}
	if a.Cost > 0 {
		flags = append(flags, "--max-cost", strconv.FormatFloat(a.Cost, 'f', -1, 64))
	}
	if a.Time > 0 {
		flags = append(flags, "--max-time", a.Time.String())
	}
	return flags
}

// Bank lends the budget of an evaluation to its tries. The ledger of each run keeps to
// what it was lent, so that all of them together keep to the budget.
type Bank struct {
	mu    sync.Mutex
	limit Amount
	spent Amount // by all tries, also those of earlier processes
	lent  Amount // to tries that run
}

// Spend charges what was used before, or is not part of a loan.
func (b *Bank) Spend(a Amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = Amount{b.spent.Tokens + a.Tokens, b.spent.Cost + a.Cost, b.spent.Time + a.Time}
}

// Loan is what a try was lent.
type Loan struct {
	Limits Amount // of the run; zero where the evaluation has no limit
	amount Amount
	used   Amount // before
}

// Lend lends a try at most a share, 1/n of what is left, and not more than it needs to
// reach its own limits. had are the limits that the run has already, of which it has used
// some; all zero for a new run. It returns false if the budget does not have so much.
func (b *Bank) Lend(own, had, used Amount, n int) (Loan, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := Loan{used: used}, true
	lend(&l.Limits.Tokens, &l.amount.Tokens, b.limit.Tokens, b.spent.Tokens+b.lent.Tokens, own.Tokens, had.Tokens, used.Tokens, n, &ok)
	lend(&l.Limits.Cost, &l.amount.Cost, b.limit.Cost, b.spent.Cost+b.lent.Cost, own.Cost, had.Cost, used.Cost, n, &ok)
	lend(&l.Limits.Time, &l.amount.Time, b.limit.Time, b.spent.Time+b.lent.Time, own.Time, had.Time, used.Time, n, &ok)
	if ok {
		b.lent = Amount{b.lent.Tokens + l.amount.Tokens, b.lent.Cost + l.amount.Cost, b.lent.Time + l.amount.Time}
	}
	return l, ok
}

// lend is Lend for one kind of amount. A run that has a limit keeps at least that.
func lend[T int64 | float64 | time.Duration](limit, amount *T, budget, gone, own, had, used T, n int, ok *bool) {
	if budget == 0 {
		if own > had {
			*limit = own
		}
		return
	}
	left := budget - gone
	*amount = left / T(max(1, n))
	if own > 0 {
		*amount = min(*amount, own-used)
	}
	*amount = max(*amount, had-used)
	*limit = used + *amount
	if *amount > left || left <= 0 {
		*ok = false
	}
}

// Return ends a loan, with what the run has used in all.
func (b *Bank) Return(l Loan, used Amount) {
	b.Spend(Amount{used.Tokens - l.used.Tokens, used.Cost - l.used.Cost, used.Time - l.used.Time})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent = Amount{b.lent.Tokens - l.amount.Tokens, b.lent.Cost - l.amount.Cost, b.lent.Time - l.amount.Time}
}

// below reports whether one of the limits is below that of another one.
func (a Amount) below(own Amount) bool {
	below := func(limit, own float64) bool { return limit > 0 && (own == 0 || limit < own) }
	return below(float64(a.Tokens), float64(own.Tokens)) || below(a.Cost, own.Cost) || below(float64(a.Time), float64(own.Time))
}

// Spent returns what was used so far, as a text for users.
func (b *Bank) Spent() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return render.Tokens(b.spent.Tokens) + " tokens, $" + strconv.FormatFloat(b.spent.Cost, 'f', 4, 64) + ", " + render.Duration(b.spent.Time)
}
