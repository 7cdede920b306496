package attempts

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

func recorded() error             { return nil }
func recordedLoan(_ amount) error { return nil }

// checkSum checks that what is lent, free and spent adds up to the budget.
func checkSum(t *testing.T, b *bank) {
	t.Helper()
	sum := b.free().plus(b.limited(b.spent))
	for _, loan := range b.lent {
		sum = sum.plus(loan)
	}
	if sum != b.total {
		t.Fatalf("%+v, not %+v", sum, b.total)
	}
	if free := b.free(); free.tokens < 0 || free.cost < 0 {
		t.Fatalf("%+v is free", free)
	}
}

// Borrowers who borrow and repay in any order never have more than the budget, and none
// waits forever. Costs are multiples of 1/1024, so that they add up exactly.
func TestBankAddsUp(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		total := amount{random.Int64N(1000), float64(random.IntN(1000)) / 1024}
		b := newBank(total, amount{total.tokens / 10, 0})
		var all sync.WaitGroup
		var check sync.Mutex // held while the sums are compared, so that nobody borrows
		for who := range 1 + random.IntN(5) {
			steps := rand.New(rand.NewPCG(seed, uint64(2+who)))
			all.Go(func() {
				for range 20 {
					least := amount{steps.Int64N(100), 0}
					want := least.plus(amount{steps.Int64N(300), float64(steps.IntN(300)) / 1024})
					loan, ok, err := b.borrow(context.Background(), who, least, want, recordedLoan)
					if err != nil {
						t.Error(err)
					}
					if !ok {
						return
					}
					if limited := b.limited(least); !loan.covers(limited) || !b.limited(want).covers(loan) {
						t.Errorf("seed %d: %+v for %+v to %+v", seed, loan, least, want)
					}
					check.Lock()
					b.mu.Lock()
					checkSum(t, b)
					b.mu.Unlock()
					check.Unlock()
					used := amount{steps.Int64N(loan.tokens + 1), float64(steps.IntN(int(loan.cost*1024)+1)) / 1024}
					if err := b.repay(who, used, recorded); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if checkSum(t, b); len(b.lent) > 0 {
			t.Errorf("seed %d: %+v is lent", seed, b.lent)
		}
	}
}

// The last borrower gets the rest, and only if that is enough.
func TestBankRest(t *testing.T) {
	b := newBank(amount{tokens: 100}, amount{})
	ctx := context.Background()
	if loan, ok, _ := b.borrow(ctx, 1, amount{tokens: 1}, amount{40, 7}, recordedLoan); !ok || loan != (amount{tokens: 40}) {
		t.Fatal(loan, ok)
	}
	waits := make(chan amount)
	go func() {
		loan, _, _ := b.borrow(ctx, 2, amount{tokens: 50}, amount{tokens: 80}, recordedLoan)
		waits <- loan
	}()
	if err := b.repay(1, amount{30, 1}, recorded); err != nil {
		t.Fatal(err)
	}
	if loan := <-waits; loan.tokens != 70 {
		t.Fatal(loan)
	}
	if err := b.repay(2, amount{tokens: 70}, recorded); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.borrow(ctx, 1, amount{tokens: 1}, amount{tokens: 1}, recordedLoan); ok || err != nil {
		t.Fatal(ok, err)
	}
	checkSum(t, b)
}

// A loan that cannot be recorded is not given, and one whose use cannot be recorded stays.
func TestBankRecords(t *testing.T) {
	b := newBank(amount{tokens: 100}, amount{})
	broken := errors.New("disk full")
	if _, ok, err := b.borrow(t.Context(), 1, amount{}, amount{tokens: 10}, func(amount) error { return broken }); ok || err != broken || len(b.lent) > 0 {
		t.Fatal(ok, err, b.lent)
	}
	if _, ok, _ := b.borrow(t.Context(), 1, amount{}, amount{tokens: 90}, recordedLoan); !ok {
		t.Fatal("no loan")
	}
	if err := b.repay(1, amount{tokens: 5}, func() error { return broken }); err != broken || b.free().tokens != 10 {
		t.Fatal(err, b.free())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := b.borrow(ctx, 2, amount{}, amount{tokens: 20}, recordedLoan); ok || !errors.Is(err, context.Canceled) {
		t.Fatal(ok, err)
	}
}
