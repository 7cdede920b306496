package page

import (
	"cmp"
	"fmt"

	"hone/history"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/story"
)

// Call is a call of a model, or the session of an agent.
type Call struct {
	Seq         int64 // of the event that begins it
	Round       int
	Name, Model string
	Size        string // of the request
	Replied     bool
	Used        *Use         // nil if the provider did not report it
	Link        string       // the page with everything that was sent; empty if there is none
	Texts       []story.Part // what was sent
	Replies     []story.Part // what came back
}

// Use is the number of tokens of a call. Cached is the part of Sent that came from the
// provider's cache.
type Use struct{ Sent, Cached, Received int64 }

// Share returns the cached part of the sent tokens, from 0 to 1.
func (u Use) Share() float64 { return float64(u.Cached) / float64(max(1, u.Sent)) }

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

// Calls follows the model calls of a run.
type Calls struct {
	// Most is how many bytes of a request the round shows. Calls leaves out the middle of a
	// longer one.
	Most int
	// Clean removes secrets from a text; nil removes nothing.
	Clean func(string) string
	// Link returns the address of the page of the call that an event begins; nil if calls
	// have no pages.
	Link func(seq int64) string

	rounds map[int][]Call
	at     map[journal.Identity]int // in their rounds
}

func (c *Calls) add(e history.Event, get history.Get) (err error) {
	switch p := e.Payload.(type) {
	case history.Asked:
		one := callOf(e, p)
		if one.Texts, err = c.added(p.Request, get); err != nil {
			return err
		}
		if c.Link != nil {
			one.Link = c.Link(e.Seq)
		}
		if c.rounds == nil {
			c.rounds, c.at = map[int][]Call{}, map[journal.Identity]int{}
		}
		c.at[*e.Step] = len(c.rounds[one.Round])
		c.rounds[one.Round] = append(c.rounds[one.Round], one)
	case history.Replied:
		if i, ok := c.at[*e.Step]; ok {
			call := &c.rounds[e.Step.Round][i]
			call.Replied, call.Used = true, useOf(p.Usage)
		}
	}
	return nil
}

// Its texts are missing.
func callOf(e history.Event, asked history.Asked) Call {
	name := cmp.Or(asked.Role, "model")
	if e.Step.Turn > 0 {
		name += fmt.Sprintf(", turn %d", e.Step.Turn)
	}
	return Call{Seq: e.Seq, Round: e.Step.Round, Name: name, Model: story.ModelName(asked.Model), Size: render.Bytes(asked.Bytes)}
}

func useOf(u *model.Usage) *Use {
	if u == nil {
		return nil
	}
	return &Use{Sent: u.Input + u.CacheRead + u.CacheWrite, Cached: u.CacheRead, Received: u.Output}
}

func (c *Calls) added(object string, get history.Get) ([]story.Part, error) {
	texts, err := story.RequestParts(object, false, get)
	room := c.Most
	for i := range texts {
		if c.Clean != nil { // before a cut can split a secret
			texts[i].Text = c.Clean(texts[i].Text)
		}
		texts[i].Text = excerpt.Middle(texts[i].Text, max(room, c.Most/8))
		room -= len(texts[i].Text)
	}
	return texts, err
}

// WholeCall returns the call that an event begins, with the full request and reply. ok is
// false if the event begins no call.
func WholeCall(events []history.Event, seq int64, get history.Get) (call Call, ok bool, err error) {
	if seq < 1 || seq > int64(len(events)) {
		return call, false, nil
	}
	e := events[seq-1]
	asked, ok := e.Payload.(history.Asked)
	if !ok {
		return call, false, nil
	}
	call = callOf(e, asked)
	if call.Texts, err = story.WholeRequest(asked.Request, get); err != nil {
		return call, true, err
	}
	for record, p := range history.Of[history.Replied](events[seq:]) {
		if *record.Step == *e.Step {
			call.Replied, call.Used = true, useOf(p.Usage)
			call.Replies, err = story.WholeReply(p, get)
			break
		}
	}
	return call, true, err
}
