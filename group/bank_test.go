package group_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"hone/group"
)

func tokens(n int64) group.Amount { return group.Amount{Tokens: n} }

func TestBorrow(t *testing.T) {
	again := group.Parts{true}
	for _, c := range []struct {
		about         string
		limit, others int64
		claim         group.Claim
		got           int64 // 0: no loan
	}{
		{"an equal part", 900, 0, group.Claim{Open: 3}, 300},
		{"the least that is of use", 900, 0, group.Claim{Open: 90}, 50},
		{"too little while others may repay", 900, 860, group.Claim{Open: 1}, 0},
		{"what there is if nobody will repay", 40, 0, group.Claim{Open: 1}, 40},
		{"too little to begin", 4, 0, group.Claim{Open: 1}, 0},
		{"no more than its own limit", 900, 0, group.Claim{Open: 1, Own: tokens(70)}, 70},
		{"what its run had left", 900, 0, group.Claim{Open: 9, Used: tokens(100), Had: tokens(400)}, 300},
		{"as much again", 900, 0, group.Claim{Open: 9, Used: tokens(390), Had: tokens(400), Again: again}, 410},
		{"the rest, if it is more than was left", 12, 0, group.Claim{Open: 1, Used: tokens(390), Had: tokens(400), Again: again}, 12},
		{"no rest that was not enough", 10, 0, group.Claim{Open: 1, Used: tokens(390), Had: tokens(400), Again: again}, 0},
		{"a used up limit of its own", 900, 0, group.Claim{Open: 1, Used: tokens(70), Had: tokens(70), Own: tokens(70)}, 0},
		{"no loan can help", 900, 0, group.Claim{Open: 1, Used: tokens(69), Had: tokens(70), Own: tokens(70), Again: again}, 0},
		{"without a limit, its own", 0, 0, group.Claim{Open: 1, Own: tokens(70), Used: tokens(20)}, 50},
	} {
		b := group.Bank{Cap: tokens(c.limit), Least: tokens(50)}
		if c.others > 0 {
			b.Loans = map[string]group.Amount{"other": tokens(c.others)}
		}
		if got, ok := b.Borrow("a", c.claim); got.Tokens != c.got || ok != (c.got > 0) {
			t.Errorf("%s: got %v and %v, want %d", c.about, got, ok, c.got)
		}
	}
}

// TestOverdrawn: a run that spends more than it was lent leaves a negative rest, and nothing is
// lent.
func TestOverdrawn(t *testing.T) {
	b := group.Bank{Cap: tokens(100)}
	b.Borrow("a", group.Claim{Open: 1})
	b.Repay("a", tokens(130))
	if free := b.Free(); free != tokens(-30) {
		t.Errorf("free: %v", free)
	}
	if loan, ok := b.Borrow("b", group.Claim{Open: 1}); ok {
		t.Errorf("lent %v", loan)
	}
}

// TestExact: after any operations, lent + free + spent is the cap, to the last unit, and no loan
// is more than was free.
func TestExact(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 21))
		amount := func(most group.Amount) group.Amount {
			return group.Amount{Tokens: random.Int64N(most.Tokens + 1), Cost: group.USD(random.Int64N(int64(most.Cost) + 1))}
		}
		limit := group.Amount{Tokens: 1 + random.Int64N(1e9), Cost: group.Dollars(1e-3 + 100*random.Float64())}
		b, open := &group.Bank{Cap: limit, Least: amount(group.Amount{Tokens: 1e6, Cost: 1e8})}, map[string]group.Amount{}
		var spent group.Amount
		for step := range 200 {
			name, free := fmt.Sprint(random.IntN(20)), b.Free()
			if loan, ok := open[name]; ok {
				used := amount(loan)
				if random.IntN(50) == 0 {
					used = loan.Plus(amount(loan)) // more than it was lent
				}
				b.Repay(name, used)
				spent = spent.Plus(used)
				delete(open, name)
			} else {
				had := amount(limit)
				if loan, ok := b.Borrow(name, group.Claim{Had: had, Used: amount(had), Again: group.Parts{random.IntN(2) == 0}, Open: 1 + random.IntN(20)}); ok {
					open[name] = loan
					if loan.Tokens > free.Tokens || loan.Cost > free.Cost || loan.Tokens <= 0 || loan.Cost <= 0 {
						t.Fatalf("seed %d, step %d: lent %v of %v", seed, step, loan, free)
					}
				}
			}
			b = stored(t, b)
			var lent group.Amount
			for _, loan := range open {
				lent = lent.Plus(loan)
			}
			if b.Lent() != lent || b.Spent != spent || b.Lent().Plus(b.Free()).Plus(b.Spent) != limit {
				t.Fatalf("seed %d, step %d: %+v, want lent %v, spent %v", seed, step, b, lent, spent)
			}
		}
	}
}

// stored returns a bank that was written and read again.
func stored(t *testing.T, b *group.Bank) *group.Bank {
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	read := new(group.Bank)
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}
