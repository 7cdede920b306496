package hone_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/model"
)

// A loan counts in full until it is repaid with what the other run used, and a resumed
// loop finds it.
func TestLoans(t *testing.T) {
	dir := crashtest.Workspace(t, nil)
	price := 0.5
	var first int64
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		first = must(r.Account().Lend("attempt 1", "m", 1000, &price))
		second := must(r.Account().Lend("attempt 2", "m", 500, new(float64)))
		if got := r.Past().Facts().Ledger; got.Tokens != 1500 || got.Assumed != 1500 || got.Cost != 0.5 {
			t.Errorf("lent: %+v", got)
		}
		must(0, r.Account().Repay(second, history.Ledger{Tokens: 70, Assumed: 20, Cost: 0.25, Known: model.Usage{Input: 30, Output: 20}}))
		return nil, context.Canceled
	}}
	wantEnd(t, p.end(t, dir), hone.KindFailed)
	p.round = func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		if open := r.Past().Reserved(); len(open) != 1 || open[first].Role != "attempt 1" || open[first].Tokens != 1000 {
			t.Errorf("open: %+v", open)
		}
		must(0, r.Account().Repay(first, history.Ledger{Tokens: 100, Known: model.Usage{Input: 100}}))
		if got, want := r.Past().Facts().Ledger, (history.Ledger{Reserves: 2, Tokens: 170, Assumed: 20, Cost: 0.25, Known: model.Usage{Input: 130, Output: 20}}); !cmp.Equal(got, want) {
			t.Errorf("repaid: %+v", got)
		}
		return nil, nil
	}
	end := p.end(t, dir)
	if wantEnd(t, end, hone.KindDone); end.Tokens != 170 || end.Assumed != 20 {
		t.Errorf("%+v", end)
	}
}
