package hone

import "hone/history"

// What a caller gives to the engine and gets from it is in the journal too. All
// events and their payloads are in package history.
type (
	Start    = history.Start    // given to [Run.Start]
	State    = history.State    // returned by [Run.Next]
	Decision = history.Decision // in a State
	End      = history.End      // returned by [Run.Do]
)

// The decisions after a round.
const (
	AnotherRound = history.AnotherRound
	Done         = history.Done
	StopNow      = history.StopNow
)
