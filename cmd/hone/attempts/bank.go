package attempts

import (
	"context"
	"sync"
)

// amount is a part of a budget. What has no limit is 0 in all amounts.
type amount struct {
	tokens int64
	cost   float64 // USD
}

func (a amount) plus(b amount) amount  { return amount{a.tokens + b.tokens, a.cost + b.cost} }
func (a amount) minus(b amount) amount { return amount{a.tokens - b.tokens, a.cost - b.cost} }

// covers reports whether a is enough for b.
func (a amount) covers(b amount) bool { return a.tokens >= b.tokens && a.cost >= b.cost }

func (a amount) least(b amount) amount {
	return amount{min(a.tokens, b.tokens), min(a.cost, b.cost)}
}

// bank lends parts of one budget to attempts. At any time what is lent, what is free
// and what was spent add up to the budget. An attempt never gets more than it borrows,
// so that all together cannot exceed the budget.
type bank struct {
	total amount // the limits of the budget; 0 means that there is none

	mu      sync.Mutex
	spent   amount
	lent    map[int]amount // by the borrower
	changed chan struct{}  // closed when a loan is repaid
}

// newBank returns a bank of whose budget a part is spent already.
func newBank(total, spent amount) *bank {
	return &bank{total: total, spent: spent, lent: map[int]amount{}, changed: make(chan struct{})}
}

// limited returns the amount without what the budget does not limit.
func (b *bank) limited(a amount) amount {
	if b.total.tokens == 0 {
		a.tokens = 0
	}
	if b.total.cost == 0 {
		a.cost = 0
	}
	return a
}

// free returns what is neither lent nor spent. A provider that exceeds the limit it
// was sent can make it less than 0.
func (b *bank) free() amount {
	free := b.total.minus(b.limited(b.spent))
	for _, loan := range b.lent {
		free = free.minus(loan)
	}
	return free
}

// borrow lends what a borrower without a loan wants. If less is free, it waits until
// other borrowers have repaid. If there are none it lends what is free, unless that is
// less than least; then ok is false. record records the loan before it is given. The
// error is that of record or of the context.
func (b *bank) borrow(ctx context.Context, who int, least, want amount, record func(amount) error) (loan amount, ok bool, err error) {
	least, want = b.limited(least), b.limited(want)
	for {
		b.mu.Lock()
		loan, wait := b.offer(least, want)
		if loan != nil {
			if err = record(*loan); err == nil {
				b.lent[who] = *loan
			}
			b.mu.Unlock()
			return *loan, err == nil, err
		}
		changed := b.changed
		b.mu.Unlock()
		if !wait {
			return amount{}, false, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return amount{}, false, context.Cause(ctx)
		}
	}
}

// offer returns the loan that can be given now; nil if there is none. wait means that
// more may become free.
func (b *bank) offer(least, want amount) (loan *amount, wait bool) {
	free := b.free()
	switch {
	case free.covers(want):
		return &want, false
	case len(b.lent) > 0:
		return nil, true
	case free.covers(least):
		some := free.least(want)
		return &some, false
	}
	return nil, false
}

// repay ends a loan, of which an amount was spent. record records that first.
func (b *bank) repay(who int, spent amount, record func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := record(); err != nil {
		return err // it stays lent: what is unknown counts in full
	}
	b.spent = b.spent.plus(spent)
	delete(b.lent, who)
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}
