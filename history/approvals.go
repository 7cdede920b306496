package history

import (
	"slices"

	"hone/workspace"
)

// approvals are the questions to the user, and their outcomes.
type approvals struct {
	denied  []unaskedQuestion // because no user could be asked
	changes map[int]map[string]workspace.Verdict
	late    map[string]bool // edits that were applied after a question was asked again, by editKey
	granted bool            // such an edit was applied since the last decision
}

// unaskedQuestion is a question that was denied because no user could be asked.
type unaskedQuestion struct {
	Question
	round int
}

func (p *Past) foldApprovals(e Event) {
	switch v := e.Payload.(type) {
	case Answer:
		begin, _ := p.begin(*e.Step)
		if q, ok := begin.Payload.(Question); ok {
			p.answer(e.Step.Round, q, v)
		}
	case Changed:
		p.change(e.Step.Round, v)
	case Applied:
		if e.Step.Session < 0 {
			p.granted = true
			for _, edit := range v.Verdicts {
				p.late[editKey(edit)] = true
			}
		}
	case State:
		p.granted = false
	}
}

func (a *approvals) answer(round int, q Question, v Answer) {
	switch {
	case v.Approved:
	case v.By == NoUser:
		a.denied = append(a.denied, unaskedQuestion{q, round})
	default:
		a.close(q.Path)
	}
}

func (a *approvals) change(round int, c Changed) {
	if a.changes[round] == nil {
		a.changes[round] = map[string]workspace.Verdict{}
	}
	a.changes[round][c.Path] = c.Verdict
	if c.Ruling == workspace.Allow {
		a.close(c.Path)
	}
}

// close drops the questions about a path.
func (a *approvals) close(path string) {
	a.denied = slices.DeleteFunc(slices.Clone(a.denied), func(q unaskedQuestion) bool { return q.Path == path })
}

// editKey returns a key that is equal for edits that do the same to the same
// file.
func editKey(v workspace.Verdict) string {
	return v.Before.Digest + " " + v.After.Digest + " " + v.Path
}

// Unanswered returns the questions of a round, and of the one after it, that
// were denied because no user could be asked: the last question about each
// file, nil if there are none. holds reports whether a file is still as it was
// when the question was asked; Unanswered leaves out questions about files that
// have changed.
func (p *Past) Unanswered(round int, holds func(path string, before workspace.Image) bool) []Question {
	defer p.lock().Unlock()
	var open []Question
	for _, q := range p.denied {
		if q.round < round || !holds(q.Path, q.Before) {
			continue
		}
		if i := slices.IndexFunc(open, func(old Question) bool { return old.Path == q.Path }); i >= 0 {
			open[i] = q.Question
		} else {
			open = append(open, q.Question)
		}
	}
	return open
}

// Declined reports whether an edit of a round was not made because an approval
// was denied, and was not made later either.
func (p *Past) Declined(round int) bool {
	defer p.lock().Unlock()
	for _, v := range p.changes[round] {
		if v.Ruling == workspace.Declined && !p.late[editKey(v)] {
			return true
		}
	}
	return false
}

// Granted reports whether an edit was applied since the last decision because
// its question was asked again. Then there is something new to decide about.
func (p *Past) Granted() bool {
	defer p.lock().Unlock()
	return p.granted
}
