package screen

import (
	"fmt"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/model"
)

// session is what was seen of a conversation; the zero value is none.
type session struct {
	round, number int
	whole         bool // it was seen from its first turn on
	role          string
	turn          int  // that was shown last
	agent         bool // it holds the whole conversation by itself
	since, last   int64

	calls, failed, refused int
	files                  map[string]bool // that were changed

	paid     int // attempts that are paid for
	tokens   int64
	cost     float64
	unpriced bool    // of some of it the cost is not known
	turnCost float64 // of the turn under way
}

// enter follows a run from one session into the next. What a resume asks again
// lies between, in a session of its own that has a negative number.
func (s *Screen) enter(e history.Event) {
	_, decided := e.Payload.(history.State)
	switch {
	case decided:
		s.leave(0, 0)
	case e.Step == nil || e.Step.Session < 0:
	case e.Step.Round != s.session.round || e.Step.Session != s.session.number:
		s.leave(e.Step.Round, e.Step.Session)
		s.session.since = e.Active
	}
	s.session.last = e.Active
}

// leave ends a session with its sums, where it was more than one question, and
// begins another.
func (s *Screen) leave(round, number int) {
	left := s.session
	s.session = session{round: round, number: number, files: map[string]bool{}}
	if s.o.Quiet || !left.whole || left.turn == 0 && !left.agent {
		return
	}
	s.waitFor("")
	if left.agent {
		s.line("  %s, total: %s changed%s, in %s", left.role, render.Count(len(left.files), "file"), left.spent(), left.took())
		return
	}
	s.line("  %s, total: %s, %s%s, %s changed, %s tokens%s, in %s", left.role, render.Count(left.turn, "turn"), render.Count(left.calls, "call"),
		left.faults(), render.Count(len(left.files), "file"), render.Tokens(left.tokens), left.price(left.cost), left.took())
}

// took is how long a session was worked on.
func (t session) took() time.Duration {
	return (time.Duration(t.last-t.since) * time.Millisecond).Round(100 * time.Millisecond)
}

// spent words what an agent's calls of models took; nothing where none is known
// of.
func (t session) spent() string {
	text := ""
	if t.paid > 0 {
		text = ", " + render.Count(t.paid, "call") + " to models"
	}
	if t.tokens > 0 {
		text += ", " + render.Tokens(t.tokens) + " tokens" + t.price(t.cost)
	}
	return text
}

// faults words how many calls came to nothing.
func (t session) faults() string {
	switch {
	case t.failed > 0 && t.refused > 0:
		return fmt.Sprintf(" (%d failed, %d refused)", t.failed, t.refused)
	case t.failed > 0:
		return fmt.Sprintf(" (%d failed)", t.failed)
	case t.refused > 0:
		return fmt.Sprintf(" (%d refused)", t.refused)
	}
	return ""
}

// price words a cost; a cost that is not known is left out.
func (t session) price(cost float64) string {
	if t.unpriced {
		return ""
	}
	return fmt.Sprintf(", $%.4f", cost)
}

// paid adds an attempt to the sums.
func (s *Screen) paid(c history.Commit) {
	if c.Basis != "agent" { // which sums up calls that nobody counted
		s.session.paid++
	}
	s.session.tokens += c.Tokens
	if c.Cost == nil {
		s.session.unpriced = true
	} else {
		s.session.cost += *c.Cost
		s.session.turnCost += *c.Cost
	}
	if s.session.agent && s.wait.what != "" {
		s.wait.what = render.Line(s.session.role + " works" + s.session.spent())
	}
}

// request says who is asked. The later turns of a conversation get a line of
// their own only when they are over, as there can be many a minute.
func (s *Screen) request(a history.Asked, turn int) {
	s.session.role, s.session.turnCost = a.Role, 0
	switch {
	case a.Command:
		s.session.whole, s.session.agent, s.before = true, true, a.Manifest
		s.line("  %s works: %s, prompt of %s", a.Role, a.Model, render.Bytes(a.Bytes))
		s.waitFor(a.Role + " works")
		return
	case turn <= 1:
		s.session.whole = true
		s.line("  asking %s: %s, about %s tokens", a.Model, render.Bytes(a.Bytes), render.Tokens(a.Bytes/4))
		s.waitFor(of(a.Role) + "waiting for " + a.Model)
		return
	}
	s.waitFor(fmt.Sprintf("waiting for %s, %s tokens so far%s", s.turnOf(a.Role, turn), render.Tokens(s.session.tokens), s.session.price(s.session.cost)))
}

// of begins what is said of a role, where it is known.
func of(role string) string {
	if role == "" {
		return ""
	}
	return role + ": "
}

// turnOf names a turn.
func (s *Screen) turnOf(role string, turn int) string {
	if most := s.o.Turns[role]; most > 0 {
		return fmt.Sprintf("%s, turn %d/%d", role, turn, most)
	}
	return fmt.Sprintf("%s, turn %d", role, turn)
}

// reply says what came back. One that answers the first question is no
// conversation, unless the role is known for them.
func (s *Screen) reply(r history.Replied, turn int, took time.Duration) {
	s.waitFor("")
	took = took.Round(100 * time.Millisecond)
	said := fmt.Sprintf("reply of %s in %s", render.Bytes(int64(r.Bytes)), took)
	switch {
	case s.session.agent || r.Request != "": // the second was cut off and begun afresh
		s.line("  %s: %s%s", r.Role, said, used(r.Usage))
	case turn <= 1 && r.Finish != model.Calls && s.o.Turns[r.Role] == 0:
		s.line("  %s%s", said, used(r.Usage))
	case r.Finish == model.Calls:
		s.session.turn = turn
		s.line("  %s: %s%s%s", s.turnOf(r.Role, turn), took.String(), used(r.Usage), s.session.price(s.session.turnCost))
	default:
		s.session.turn = turn
		s.line("  %s: %s%s%s", s.turnOf(r.Role, turn), said, used(r.Usage), s.session.price(s.session.turnCost))
	}
	if !r.Finish.Normal() {
		s.line("  ! the reply is incomplete: %s", unfinished(r))
	}
}

// unfinished words why a reply ended early. What is none of the reasons that
// models have is told by its detail alone.
func unfinished(r history.Replied) string {
	if r.Finish == model.Other && r.Detail != "" {
		return r.Detail
	}
	return strings.TrimSpace(string(r.Finish) + " " + r.Detail)
}

// used words what a reply took.
func used(u *model.Usage) string {
	if u == nil {
		return ""
	}
	return fmt.Sprintf(", %s tokens in (%s of them cached), %s out", render.Tokens(u.Input+u.CacheRead+u.CacheWrite),
		render.Tokens(u.CacheRead), render.Tokens(u.Output))
}
