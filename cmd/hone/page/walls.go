package page

import (
	"reflect"
	"slices"
	"time"

	"hone/history"
)

// Wall is the wall around the commands of a process that worked on a run.
type Wall struct {
	history.Walls
	Since time.Time
}

// WallsOf returns the walls of the processes that worked on a run, the last first. Successive
// processes with equal walls have one entry.
func (p Page) WallsOf() (all []Wall) {
	for e, w := range history.Of[history.Walls](p.Past.Events()) {
		if len(all) == 0 || !reflect.DeepEqual(w, all[len(all)-1].Walls) {
			all = append(all, Wall{w, e.Time})
		}
	}
	slices.Reverse(all)
	return all
}

// meanings are those of grades and of states of the network.
var meanings = map[string]string{
	"hidden":  ": a command does not see what it may not use",
	"guarded": ": a command cannot open what it may not use, but may see that it exists",
	"open":    ": a command can do what you can do",
	"off":     ": commands have no network",
	"doors":   ": commands reach only the addresses that their role needs",
	"on":      ": commands reach every address",
}
