package group

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"hone/history"
	"hone/internal/render"
)

// Amount is a part of a budget. In a limit, a part that is 0 has no limit.
type Amount struct {
	Tokens int64         `json:"tokens,omitempty"`
	Cost   USD           `json:"cost,omitempty"`
	Time   time.Duration `json:"time,omitempty"`
}

// USD is an amount of money in billionths of a dollar, so that sums are exact. In JSON it is a
// number of dollars.
type USD int64

// Dollars rounds a number of dollars to an amount.
func Dollars(usd float64) USD { return USD(math.Round(usd * 1e9)) }

// Float returns the number of dollars.
func (u USD) Float() float64 { return float64(u) / 1e9 }

// MarshalJSON implements json.Marshaler.
func (u USD) MarshalJSON() ([]byte, error) { return json.Marshal(u.Float()) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *USD) UnmarshalJSON(text []byte) error {
	var usd float64
	err := json.Unmarshal(text, &usd)
	*u = Dollars(usd)
	return err
}

// LimitsOf returns the limits of a run that a bank can raise.
func LimitsOf(l history.Limits) Amount { return Amount{l.Tokens, Dollars(l.Cost), l.Time} }

const parts = 3

// Parts are parts of an amount: tokens, cost and time.
type Parts [parts]bool

func (a Amount) parts() [parts]int64 { return [parts]int64{a.Tokens, int64(a.Cost), int64(a.Time)} }

func amountOf(p [parts]int64) Amount { return Amount{p[0], USD(p[1]), time.Duration(p[2])} }

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Tokens + b.Tokens, a.Cost + b.Cost, a.Time + b.Time}
}

// Minus returns a without b.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Tokens - b.Tokens, a.Cost - b.Cost, a.Time - b.Time}
}

// Flags returns the limits as flags of a loop or of resume: those that are higher than had.
func (a Amount) Flags(had Amount) (flags []string) {
	if a.Tokens > had.Tokens {
		flags = append(flags, "--max-tokens", strconv.FormatInt(a.Tokens, 10))
	}
	if a.Cost > had.Cost {
		flags = append(flags, "--max-cost", strconv.FormatFloat(a.Cost.Float(), 'f', -1, 64))
	}
	if a.Time > had.Time {
		flags = append(flags, "--max-time", a.Time.String())
	}
	return flags
}

// String returns the tokens and the cost for users, without a part that is 0.
func (a Amount) String() string {
	tokens := render.Tokens(a.Tokens) + " tokens"
	switch {
	case a.Cost == 0:
		return tokens
	case a.Tokens == 0:
		return a.Cost.String()
	}
	return a.Cost.String() + " and " + tokens
}

// String returns the amount for users; empty if it is 0.
func (u USD) String() string {
	if u == 0 {
		return ""
	}
	usd := u.Float()
	return render.Cost(&usd, false)
}

// Bank divides a budget. Lent + free + spent always equals the cap, exactly. A run never gets
// more than its member borrows, so that all together cannot exceed the budget. A Bank has no
// lock, depends only on its calls, and its JSON form is complete.
type Bank struct {
	Cap   Amount            `json:"cap"` // of a part that is 0, the bank lends what a member wants, and counts what is spent
	Spent Amount            `json:"spent"`
	Loans map[string]Amount `json:"loans,omitempty"` // by the name of the member
	// Least is the smallest loan of use to a new run, if so much is free.
	Least Amount `json:"least,omitzero"`
}

// Claim is what a member asks a bank for.
type Claim struct {
	Used Amount // by its run
	Had  Amount // the limits of its run, which cannot be lowered; zero for a new run
	Own  Amount // what the member may use in all; a part that is 0 has only the limit of the bank
	// Again are the limits that the run has used up, so that it needs more.
	Again Parts
	// Open is how many members without a loan share what is free, this one included.
	Open int
}

// Lent returns what the members have borrowed and not repaid.
func (b *Bank) Lent() (lent Amount) {
	for _, loan := range b.Loans {
		lent = lent.Plus(loan)
	}
	return lent
}

// Free returns what can be lent, 0 in a part without a limit. A part is negative if a provider
// exceeded the limit that it was sent; then nothing is lent of it.
func (b *Bank) Free() Amount {
	free := b.Cap.Minus(b.Spent).Minus(b.Lent()).parts()
	for i, limit := range b.Cap.parts() {
		if limit == 0 {
			free[i] = 0
		}
	}
	return amountOf(free)
}

// Borrow lends a member an equal part of what is free, and at least as much as is of use to it:
// what its run had left, or if that was used up, as much again as it had. So the number of loans
// grows with the logarithm of what a run uses. If nobody will repay, because there is no other
// loan, the member gets what there is, if it is more than its run had left. Otherwise, or if a
// limit of its own is used up, Borrow returns false. A member borrows once before it repays.
func (b *Bank) Borrow(name string, c Claim) (Amount, bool) {
	var loan [parts]int64
	free, floor, used, had, own := b.Free().parts(), b.Least.parts(), c.Used.parts(), c.Had.parts(), c.Own.parts()
	for i, limit := range b.Cap.parts() {
		if limit == 0 {
			loan[i] = max(0, own[i]-used[i])
			continue
		}
		left, least := had[i]-used[i], max(floor[i], had[i]-used[i])
		if c.Again[i] {
			left, least = left+1, max(floor[i], 2*had[i]-used[i])
		}
		want := max(least, 1, free[i]/int64(max(1, c.Open))) // a run says how much it lacks
		if own[i] > 0 {
			want, least = min(want, own[i]-used[i]), min(least, own[i]-used[i])
		}
		switch alone := len(b.Loans) == 0; {
		case alone && had[i] == 0:
			least /= 10
		case alone:
			least = min(least, left)
		}
		if loan[i] = min(want, free[i]); loan[i] <= 0 || loan[i] < least {
			return Amount{}, false
		}
	}
	if c.OwnUsed() {
		return Amount{}, false
	}
	if _, twice := b.Loans[name]; twice {
		panic(fmt.Sprintf("group: %s borrows twice", name))
	}
	if b.Loans == nil {
		b.Loans = map[string]Amount{}
	}
	b.Loans[name] = amountOf(loan)
	return amountOf(loan), true
}

// OwnUsed reports whether a limit of the member's own is used up, or no loan can raise the
// limits of its run.
func (c Claim) OwnUsed() bool {
	grows := false
	used, had, own := c.Used.parts(), c.Had.parts(), c.Own.parts()
	for i := range own {
		if own[i] > 0 && used[i] >= own[i] {
			return true
		}
		grows = grows || had[i] > 0 && (own[i] == 0 || had[i] < own[i])
	}
	return c.Again != (Parts{}) && !grows
}

// Limits returns the limits of a run whose member has borrowed.
func (b *Bank) Limits(c Claim, loan Amount) Amount {
	limits := c.Used.Plus(loan).parts()
	own := c.Own.parts()
	for i, limit := range b.Cap.parts() {
		if limit == 0 {
			limits[i] = own[i]
		}
	}
	return amountOf(limits)
}

// Repay ends the loan of a member, and charges what its run has spent of it.
func (b *Bank) Repay(name string, spent Amount) {
	if _, ok := b.Loans[name]; !ok {
		panic(fmt.Sprintf("group: %s repays what it has not borrowed", name))
	}
	delete(b.Loans, name)
	b.Spent = b.Spent.Plus(spent)
}
