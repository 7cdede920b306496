package task

import (
	"hone/history"
	"hone/model"
)

// The usage of an agent's session is the sum of its model calls on the run's ledger, not what the agent reports.
type meter struct {
	agent bool         // an agent's session is open
	calls *model.Usage // of that session; nil if it is not known
	last  *model.Usage // of the last reply; nil if it is not known
	all   model.Usage
}

func (m *meter) add(e history.Event) {
	switch p := e.Payload.(type) {
	case history.Asked:
		m.agent, m.calls = p.Command, nil
	case history.Commit:
		if !m.agent || p.Usage == nil {
			return
		}
		sum := *p.Usage
		if m.calls != nil {
			sum = sum.Add(*m.calls)
		}
		m.calls = &sum
	case history.Replied:
		if m.last = p.Usage; m.agent {
			m.last = m.calls
		}
		if m.last != nil {
			m.all = m.all.Add(*m.last)
		}
	}
}
