package task

import (
	"hone/history"
	"hone/journal"
	"hone/model"
)

// meter reads off a journal what replies took. Of an agent's session that is
// what its calls of models came to on the run's ledger, whatever it says of
// them itself.
type meter struct {
	agent bool         // an agent's session is under way
	calls *model.Usage // of it; nil while nothing is known of any
	last  *model.Usage // of the last reply; nil where it is not known
	all   model.Usage
}

func (m *meter) take(e journal.Event) {
	switch {
	case e.Type == history.TypeAsk && e.Phase == journal.Begin:
		var a history.Asked
		m.agent, m.calls = e.Decode(&a) == nil && a.Command, nil
	case e.Type == history.TypeCommit && m.agent:
		var c history.Commit
		if e.Decode(&c) == nil && c.Usage != nil {
			sum := *c.Usage
			if m.calls != nil {
				sum = sum.Add(*m.calls)
			}
			m.calls = &sum
		}
	case e.Type == history.TypeReply:
		var got history.Replied
		_ = e.Decode(&got)
		if m.last = got.Usage; m.agent {
			m.last = m.calls
		}
		if m.last != nil {
			m.all = m.all.Add(*m.last)
		}
	}
}
