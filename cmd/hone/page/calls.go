package page

import (
	"cmp"
	"fmt"

	"hone/history"
	"hone/internal/excerpt"
	"hone/model"
	"hone/story"
)

// Call is a call of a model, or the session of an agent.
type Call struct {
	Seq         int64 // of the event that begins it
	Name, Model string
	Replied     bool
	Used        *model.Usage // nil if the provider did not report it
	Texts       []story.Part // what was sent
}

// totalUse returns what these calls used together; nil if no provider reported it.
func totalUse(calls []Call) (sum *model.Usage) {
	for _, c := range calls {
		if u := c.Used; u != nil {
			if sum == nil {
				sum = &model.Usage{}
			}
			sum.Input, sum.CacheRead, sum.CacheWrite, sum.Output = sum.Input+u.Input, sum.CacheRead+u.CacheRead, sum.CacheWrite+u.CacheWrite, sum.Output+u.Output
		}
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
			call.Replied, call.Used = true, p.Usage
		}
	}
	return nil
}
