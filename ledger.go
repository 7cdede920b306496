package hone

import (
	"hone/history"
	"hone/journal"
	"hone/model"
)

// Price is what a model's tokens cost, in USD per million. It is the user's
// word: hone knows no prices by itself, because a wrong one is worse than none.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// of is what a usage costs, in USD.
func (p Price) of(u model.Usage) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

// most is what at most in tokens read and out tokens written can cost.
func (p Price) most(in, out int64) float64 {
	return (float64(in)*max(p.Input, p.CacheRead, p.CacheWrite) + float64(out)*p.Output) / 1e6
}

// ledger is the fold of a journal's reserves and commits.
type ledger struct {
	folded   int // events that are in
	open     map[int64]history.Reserve
	tokens   int64
	assumed  int64 // of tokens: what no provider confirmed
	cost     float64
	unpriced bool
	known    model.Usage
	passed   map[string]bool // roles whose agent's calls came by in this process
}

// fold takes in the events that are new.
func (l *ledger) fold(events []journal.Event) {
	if l.open == nil {
		l.open = map[int64]history.Reserve{}
	}
	for _, e := range events[l.folded:] {
		switch e.Type {
		case history.TypeReserve:
			var r history.Reserve
			if e.Decode(&r) == nil {
				l.open[e.Seq] = r
				l.add(r.Tokens, r.Cost)
			}
		case history.TypeCommit:
			var c history.Commit
			if e.Decode(&c) == nil {
				l.settle(c)
			}
		}
	}
	l.folded = len(events)
}

func (l *ledger) settle(c history.Commit) {
	r, ok := l.open[c.Reserve]
	if !ok {
		return
	}
	delete(l.open, c.Reserve)
	l.tokens += c.Tokens - r.Tokens
	l.assumed -= r.Tokens
	if c.Usage == nil {
		l.assumed += c.Tokens
	}
	if r.Cost != nil && c.Cost != nil {
		l.cost += *c.Cost - *r.Cost
	}
	if c.Usage != nil {
		l.known = l.known.Add(*c.Usage)
	}
}

func (l *ledger) add(tokens int64, cost *float64) {
	l.tokens += tokens
	l.assumed += tokens
	if cost == nil {
		l.unpriced = true
		return
	}
	l.cost += *cost
}

// price is the run's cost so far; nil where a model's price is not known.
func (l *ledger) price() *float64 {
	if l.unpriced {
		return nil
	}
	cost := l.cost
	return &cost
}
