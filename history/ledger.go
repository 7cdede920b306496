package history

import "hone/model"

// Ledger is what a run's model calls cost. A reserve counts in full until it is
// committed.
type Ledger struct {
	Reserves int     // calls that were reserved
	Tokens   int64   // charged or reserved
	Assumed  int64   // the part of Tokens that no provider confirmed
	Cost     float64 // USD, of the calls whose cost is known
	Unpriced int     // calls whose cost is not known
	Known    model.Usage
}

// Price returns the cost in USD; nil if that of some call is unknown.
func (l Ledger) Price() *float64 {
	if l.Unpriced > 0 {
		return nil
	}
	return &l.Cost
}

func (l *Ledger) reserve(r Reserve) {
	l.Reserves++
	l.Tokens += r.Tokens
	l.Assumed += r.Tokens
	if r.Cost == nil {
		l.Unpriced++
		return
	}
	l.Cost += *r.Cost
}

func (l *Ledger) commit(r Reserve, c Commit) {
	l.Tokens += c.Tokens - r.Tokens
	l.Assumed -= r.Tokens
	if c.Usage == nil {
		l.Assumed += c.Tokens
	} else {
		l.Known = l.Known.Add(*c.Usage)
		l.Assumed += c.Assumed
	}
	switch {
	case c.Cost == nil:
	case r.Cost == nil: // the server reported it
		l.Unpriced--
		l.Cost += *c.Cost
	default:
		l.Cost += *c.Cost - *r.Cost
	}
}

// Reserved returns the ledger after a reserve.
func (l Ledger) Reserved(r Reserve) Ledger {
	l.reserve(r)
	return l
}

// Plus returns what two ledgers add up to.
func (l Ledger) Plus(o Ledger) Ledger {
	return Ledger{l.Reserves + o.Reserves, l.Tokens + o.Tokens, l.Assumed + o.Assumed, l.Cost + o.Cost, l.Unpriced + o.Unpriced, l.Known.Add(o.Known)}
}

// Repaid returns the ledger after a reserve is replaced.
func (l Ledger) Repaid(r Reserve, c Commit) Ledger {
	l.commit(r, c)
	return l
}

// Repayment returns the usage that replaces a reserve for another run.
func Repayment(reserve int64, used Ledger) Commit {
	return Commit{Reserve: reserve, Usage: &used.Known, Tokens: used.Tokens, Assumed: used.Assumed, Cost: used.Price(), Basis: "run"}
}
