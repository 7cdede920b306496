package bank_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"hone/fleet/bank"
	"hone/fleet/job"
)

// sum returns tokens, and as many hundredths of a USD.
func sum(n int64) bank.Sum { return bank.SumOf(job.Amount{Tokens: n, Cost: float64(n) / 100}) }

func TestBorrow(t *testing.T) {
	for _, c := range []struct {
		about                   string
		limit, want, least, got int64
		ok                      bool
	}{
		{"all that it wants", 100, 60, 60, 60, true},
		{"what is free", 100, 160, 60, 100, true},
		{"less than the least", 100, 160, 101, 0, false},
		{"nothing", 100, 0, 0, 0, false},
		{"less than nothing", 100, -5, -5, 0, false},
		{"without a limit", 0, 160, 170, 160, true},
		{"no limit of its own either", 0, 0, 0, 0, true},
	} {
		b := bank.New(sum(c.limit).Amount())
		got, ok := b.Borrow("a", sum(c.want), sum(c.least))
		if got != sum(c.got) || ok != c.ok {
			t.Errorf("%s: got %v and %v, want %v and %v", c.about, got, ok, sum(c.got), c.ok)
		}
	}
}

// TestOverdrawn: a job that spends more than it was lent leaves a negative rest, and
// nothing is lent.
func TestOverdrawn(t *testing.T) {
	b := bank.New(sum(100).Amount())
	b.Borrow("a", sum(90), sum(1))
	b.Repay("a", sum(130))
	if free := b.Free(); free != sum(-30) {
		t.Errorf("free: %v", free)
	}
	if loan, ok := b.Borrow("b", sum(1), sum(0)); ok {
		t.Errorf("lent %v", loan)
	}
}

// TestExact: after any operations, lent + free + spent is the cap, to the last unit.
func TestExact(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 21))
		limit := job.Amount{Tokens: 1 + random.Int64N(1e9), Cost: 1e-3 + 100*random.Float64()}
		b, open := bank.New(limit), map[string]bank.Sum{}
		var spent bank.Sum
		for step := range 200 {
			name := fmt.Sprint(random.IntN(20))
			if loan, ok := open[name]; ok {
				part := random.Float64() * 1.01 // at times more than the loan
				a := loan.Amount()
				used := bank.SumOf(job.Amount{Tokens: int64(part * float64(a.Tokens)), Cost: part * a.Cost})
				b.Repay(name, used)
				spent = spent.Plus(used)
				delete(open, name)
			} else {
				want := bank.SumOf(job.Amount{Tokens: random.Int64N(limit.Tokens), Cost: random.Float64() * limit.Cost})
				least := bank.Sum{Tokens: random.Int64N(want.Tokens + 1), Nano: random.Int64N(want.Nano + 1)}
				loan, ok := b.Borrow(name, want, least)
				if ok {
					open[name] = loan
				}
				if ok && (loan.Tokens < least.Tokens || loan.Nano < least.Nano || loan.Tokens > want.Tokens || loan.Nano > want.Nano) {
					t.Fatalf("seed %d, step %d: lent %v, but wanted were %v and at least %v", seed, step, loan, want, least)
				}
			}
			b = stored(t, b)
			var lent bank.Sum
			for _, loan := range open {
				lent = lent.Plus(loan)
			}
			if b.Lent() != lent || b.Spent != spent || b.Lent().Plus(b.Free()).Plus(b.Spent) != bank.SumOf(limit) {
				t.Fatalf("seed %d, step %d: lent %v (want %v), free %v, spent %v (want %v), cap %v", seed, step, b.Lent(), lent, b.Free(), b.Spent, spent, b.Cap)
			}
		}
	}
}

// stored returns a bank that was written and read again.
func stored(t *testing.T, b *bank.Bank) *bank.Bank {
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	read := new(bank.Bank)
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}

// TestRounding: the sum of many small costs is not rounded.
func TestRounding(t *testing.T) {
	b := bank.New(job.Amount{Cost: 1})
	for range 1000 {
		b.Borrow("a", bank.SumOf(job.Amount{Cost: 0.001}), bank.Sum{})
		b.Repay("a", bank.SumOf(job.Amount{Cost: 0.001}))
	}
	if f := b.Figures(); f.Free != (job.Amount{}) || f.Spent != (job.Amount{Cost: 1}) {
		t.Errorf("%+v", f)
	}
}
