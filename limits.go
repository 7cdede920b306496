package hone

import "hone/history"

// Limits limit a run.
type Limits = history.Limits

// Bounds limit one session of a conversation (rulings S8, S11 and G11). They
// end the session, never the run.
type Bounds struct {
	Turns   int `json:"turns"`    // maximum number of model calls; 0 means 30
	Calls   int `json:"calls"`    // maximum number of tool calls that are run; 0 means 120
	PerTurn int `json:"per_turn"` // maximum number of those in one reply; 0 means 10
}

// Resolved returns the bounds with the defaults in place of zeros.
func (b Bounds) Resolved() Bounds {
	return Bounds{Turns: orElse(b.Turns, 30), Calls: orElse(b.Calls, 120), PerTurn: orElse(b.PerTurn, 10)}
}

func orElse(n, standard int) int {
	if n == 0 {
		return standard
	}
	return n
}
