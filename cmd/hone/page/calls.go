package page

import (
	"cmp"
	"fmt"

	"hone/history"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/model"
	"hone/story"
)

// Call is a call of a model, or the session of an agent.
type Call struct {
	Seq         int64 // of the event that begins it
	Name, Model string
	Replied     bool
	Used        *Use         // nil if the provider did not report it
	Texts       []story.Part // what was sent
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

// mostAsked is how many bytes of a request a page shows. The middle of a longer one is left out.
const mostAsked = 32 << 10

func (m *Maker) addCall(e history.Event) error {
	switch p := e.Payload.(type) {
	case history.Asked:
		one := Call{Seq: e.Seq, Name: cmp.Or(p.Role, "model"), Model: story.ModelName(p.Model)}
		if e.Step.Turn > 0 {
			one.Name += fmt.Sprintf(", turn %d", e.Step.Turn)
		}
		var err error
		if one.Texts, err = story.RequestParts(p.Request, false, m.get); err != nil {
			return err
		}
		room := mostAsked
		for i := range one.Texts {
			if m.Clean != nil { // before a cut can split a secret
				one.Texts[i].Text = m.Clean(one.Texts[i].Text)
			}
			one.Texts[i].Text = excerpt.Middle(one.Texts[i].Text, max(room, mostAsked/8))
			room -= len(one.Texts[i].Text)
		}
		m.at[*e.Step] = len(m.calls[e.Step.Round])
		m.calls[e.Step.Round] = append(m.calls[e.Step.Round], one)
	case history.Replied:
		if i, ok := m.at[*e.Step]; ok {
			call := &m.calls[e.Step.Round][i]
			call.Replied, call.Used = true, useOf(p.Usage)
		}
	}
	return nil
}

func useOf(u *model.Usage) *Use {
	if u == nil {
		return nil
	}
	return &Use{Sent: u.Input + u.CacheRead + u.CacheWrite, Cached: u.CacheRead, Received: u.Output}
}
