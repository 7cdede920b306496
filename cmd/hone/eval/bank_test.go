package eval

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBank(t *testing.T) {
	b := &Bank{limit: Amount{Tokens: 1000, Time: time.Hour}}
	own := Amount{Tokens: 600, Time: 4 * time.Hour}
	first, ok := b.Lend(own, Amount{}, Amount{}, 2)
	if !ok || first.Limits != (Amount{Tokens: 500, Time: 30 * time.Minute}) || !first.Limits.below(own) {
		t.Fatalf("half of all: %+v, %v", first, ok)
	}
	second, ok := b.Lend(own, Amount{}, Amount{}, 1)
	if !ok || second.Limits.Tokens != 500 {
		t.Fatalf("the rest: %+v, %v", second, ok)
	}
	if l, ok := b.Lend(own, Amount{}, Amount{}, 1); ok {
		t.Fatalf("more than there is: %+v", l)
	}
	b.Return(first, Amount{Tokens: 100, Time: time.Minute})
	third, ok := b.Lend(Amount{Tokens: 300}, Amount{}, Amount{}, 1)
	if !ok || third.Limits.Tokens != 300 || third.Limits.Time != 29*time.Minute {
		t.Fatalf("what was returned, but not more than it needs: %+v, %v", third, ok)
	}
	b.Return(second, Amount{Tokens: 500})
	b.Return(third, Amount{Tokens: 300})
	if b.spent.Tokens != 900 || b.lent != (Amount{}) {
		t.Errorf("spent %+v, lent %+v", b.spent, b.lent)
	}
}

// A run that was begun keeps what it was lent, if the budget has it.
func TestBankBegun(t *testing.T) {
	b := &Bank{limit: Amount{Tokens: 1000}}
	b.Spend(Amount{Tokens: 300})
	had, used := Amount{Tokens: 500}, Amount{Tokens: 300}
	l, ok := b.Lend(Amount{}, had, used, 10)
	if !ok || l.Limits.Tokens != 500 {
		t.Fatalf("at least the limit of before: %+v, %v", l, ok)
	}
	b.Return(l, Amount{Tokens: 500})
	if l, ok = b.Lend(Amount{}, had, Amount{Tokens: 500}, 1); !ok || l.Limits.Tokens != 1000 {
		t.Fatalf("all that is left: %+v, %v", l, ok)
	}
	b.Return(l, Amount{Tokens: 1000})
	if _, ok = b.Lend(Amount{}, Amount{}, Amount{}, 1); ok {
		t.Error("nothing is left")
	}
	b.limit = Amount{} // the user has removed the limit
	if l, ok = b.Lend(Amount{Tokens: 5000}, had, used, 1); !ok || l.Limits.Tokens != 5000 {
		t.Errorf("its own limit: %+v, %v", l, ok)
	}
}

func TestFlags(t *testing.T) {
	got := withFlags([]string{"fix", "--", "-x"}, Amount{Tokens: 5, Cost: 0.25, Time: 90 * time.Second}.flags())
	if want := strings.Fields("fix --max-tokens 5 --max-cost 0.25 --max-time 1m30s -- -x"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := withFlags([]string{"fix"}, Amount{}.flags()); !slices.Equal(got, []string{"fix"}) {
		t.Errorf("%q", got)
	}
}
