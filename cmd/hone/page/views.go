package page

import (
	"fmt"

	"hone/internal/render"
)

// Wall is a wall around the commands of a run.
type Wall struct {
	Name  string // all of it in one line
	Facts []Fact
	Open  []string // what a command can do against the policy
}

// Call is a call of a model, or the session of an agent.
type Call struct {
	Seq         int64 // of the event that begins it
	Round       int
	Name, Model string
	Size        string // of the request
	Replied     bool
	Used        *Use   // nil if the provider did not report it
	Link        string // the page with everything that was sent; empty if there is none
	Texts       []Fact // what was sent
	Replies     []Fact // what came back
}

// Use is the number of tokens of a call. Cached is the part of Sent that came from the
// provider's cache.
type Use struct{ Sent, Cached, Received int64 }

// Share returns the cached part of the sent tokens, from 0 to 1.
func (u Use) Share() float64 { return float64(u.Cached) / float64(max(1, u.Sent)) }

// useText words the tokens of a call; nil means that they are not known.
func useText(u *Use) string {
	if u == nil {
		return "tokens not reported"
	}
	cached := ""
	if u.Cached > 0 {
		cached = fmt.Sprintf(", %.0f%% of them cached", 100*u.Share())
	}
	return fmt.Sprintf("%s tokens sent%s · %s received", render.Short(u.Sent), cached, render.Short(u.Received))
}

// totalUse adds up the tokens of calls; nil if none is known.
func totalUse(calls []Call) *Use {
	var sum *Use
	for _, c := range calls {
		if c.Used == nil {
			continue
		}
		if sum == nil {
			sum = &Use{}
		}
		sum.Sent, sum.Cached, sum.Received = sum.Sent+c.Used.Sent, sum.Cached+c.Used.Cached, sum.Received+c.Used.Received
	}
	return sum
}

// Call renders the page of a call of a run. The link leads to its place in the run.
func (r *Renderer) Call(c Call, run, link string) (Part, error) {
	return r.part("call", "call", struct {
		Call
		Run, RunLink string
	}{c, run, link})
}

// Wait is a call of a model that has not ended.
type Wait struct {
	Model string // empty if no model is asked now
	Role  string
	Since string // the time of day
	Text  string // of the reply so far; empty if none has arrived, or if it is unknown
}

// Wait renders what a run waits for. If it waits for nothing, the element exists and is
// empty.
func (r *Renderer) Wait(w Wait) (Part, error) { return r.part("wait", "wait", w) }
