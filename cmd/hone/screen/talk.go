package screen

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/model"
)

// session is what the screen saw of a conversation; the zero value is none.
type session struct {
	round, number int
	complete      bool // the screen saw it from its first turn
	role          string
	turn          int  // the last one shown
	agent         bool // a command-line agent holds the conversation
	since, last   int64

	calls, failed, refused int
	files                  map[string]bool // changed ones

	attempts int // attempts at model calls that were charged
	tokens   int64
	cost     float64
	unpriced bool    // the cost of a part is unknown
	turnCost float64 // of the current turn
}

// trackSession follows a run from one session to the next. It skips the sessions
// with a negative number, in which a resume asks again.
func (s *Screen) trackSession(e history.Event) {
	_, decided := e.Payload.(history.State)
	switch {
	case decided:
		s.endSession(0, 0)
	case e.Step == nil || e.Step.Session < 0:
	case e.Step.Round != s.session.round || e.Step.Session != s.session.number:
		s.endSession(e.Step.Round, e.Step.Session)
		s.session.since = e.Active
	}
	s.session.last = e.Active
}

// endSession shows the totals of a session with more than one request, and
// starts the next one.
func (s *Screen) endSession(round, number int) {
	left := s.session
	s.session = session{round: round, number: number, files: map[string]bool{}}
	if s.o.Quiet || !left.complete || left.turn == 0 && !left.agent {
		return
	}
	s.waitFor("")
	if left.agent {
		s.detail("  %s, total: %s changed%s, in %s", left.role, render.Count(len(left.files), "file"), left.usage(), left.duration())
		return
	}
	s.detail("  %s, total: %s, %s%s, %s changed, %s tokens%s, in %s", left.role, render.Count(left.turn, "turn"), render.Count(left.calls, "call"),
		left.failures(), render.Count(len(left.files), "file"), render.Tokens(left.tokens), left.price(left.cost), left.duration())
}

// duration returns the active time of a session.
func (t session) duration() string {
	return render.Duration(time.Duration(t.last-t.since) * time.Millisecond)
}

// usage returns the usage of an agent's model calls, with a leading comma; empty
// if none is known.
func (t session) usage() string {
	text := ""
	if t.attempts > 0 {
		text = ", " + render.Count(t.attempts, "call") + " to models"
	}
	if t.tokens > 0 {
		text += ", " + render.Tokens(t.tokens) + " tokens" + t.price(t.cost)
	}
	return text
}

// failures returns how many calls failed or were refused; empty if none were.
func (t session) failures() string {
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

// price returns a cost with a leading comma; empty if a part is unknown.
func (t session) price(cost float64) string {
	if t.unpriced {
		return ""
	}
	return fmt.Sprintf(", $%.4f", cost)
}

// addAttempt adds a charged attempt to the totals.
func (s *Screen) addAttempt(c history.Commit) {
	if c.Basis != "agent" { // it sums up calls that were not counted
		s.session.attempts++
	}
	s.session.tokens += c.Tokens
	if c.Cost == nil {
		s.session.unpriced = true
	} else {
		s.session.cost += *c.Cost
		s.session.turnCost += *c.Cost
	}
	if s.session.agent && s.now.what != "" {
		s.now.what = render.Line(s.session.role + " works" + s.session.usage())
	}
}

// showRequest shows which model is asked. A later turn of a conversation gets
// its line only when it has ended, because there can be many per minute.
func (s *Screen) showRequest(a history.Asked, turn int) {
	s.session.role, s.session.turnCost = a.Role, 0
	switch {
	case a.Command:
		s.session.complete, s.session.agent = true, true
		s.detail("  %s works: %s, prompt of %s", a.Role, ModelName(a.Model), render.Bytes(a.Bytes))
		s.waitFor(a.Role + " works")
		return
	case turn <= 1:
		s.session.complete = true
		s.detail("  asking %s: %s, about %s tokens", ModelName(a.Model), render.Bytes(a.Bytes), render.Tokens(a.Bytes/4))
	}
	of := a.Role
	if turn > 1 || s.o.Turns[a.Role] > 0 {
		of = s.turnName(a.Role, max(1, turn))
	}
	s.waitForModel(ModelName(a.Model), of)
}

// ModelName returns the name of a model, or several with commas between them, as the user
// sees it: that of a script has no directories.
func ModelName(names string) string {
	list := strings.Split(names, ",")
	for i, name := range list {
		if file, ok := strings.CutPrefix(name, "script/"); ok {
			list[i] = "script/" + filepath.Base(file)
		}
	}
	return strings.Join(list, ",")
}

// turnName returns the name of a turn, with the maximum if it is known.
func (s *Screen) turnName(role string, turn int) string {
	if limit := s.o.Turns[role]; limit > 0 {
		return fmt.Sprintf("%s, turn %d/%d", role, turn, limit)
	}
	return fmt.Sprintf("%s, turn %d", role, turn)
}

// showReply shows a reply. A reply to the first request does not count as a
// conversation, unless the role has turns.
func (s *Screen) showReply(r history.Replied, turn int, took time.Duration) {
	s.waitFor("")
	summary := fmt.Sprintf("reply of %s in %s", render.Bytes(int64(r.Bytes)), render.Duration(took))
	switch {
	case s.session.agent || r.Request != "": // r.Request is set for a session that was cut off and started again
		s.detail("  %s: %s%s", r.Role, summary, usageText(r.Usage))
	case turn <= 1 && r.Finish != model.Calls && s.o.Turns[r.Role] == 0:
		s.detail("  %s%s", summary, usageText(r.Usage))
	case r.Finish == model.Calls:
		s.session.turn = turn
		s.detail("  %s: %s%s%s", s.turnName(r.Role, turn), render.Duration(took), usageText(r.Usage), s.session.price(s.session.turnCost))
	default:
		s.session.turn = turn
		s.detail("  %s: %s%s%s", s.turnName(r.Role, turn), summary, usageText(r.Usage), s.session.price(s.session.turnCost))
	}
	if !r.Finish.Normal() {
		s.detail("  ! the reply is incomplete: %s", finishReason(r))
	}
}

// finishReason returns why a reply ended early. For an unknown reason it returns
// only the detail.
func finishReason(r history.Replied) string {
	if r.Finish == model.Other && r.Detail != "" {
		return r.Detail
	}
	return strings.TrimSpace(string(r.Finish) + " " + r.Detail)
}

// usageText returns the usage of a reply, with a leading comma; empty if it is
// unknown.
func usageText(u *model.Usage) string {
	if u == nil {
		return ""
	}
	cached := ""
	if u.CacheRead > 0 {
		cached = fmt.Sprintf(" (%s of them cached)", render.Tokens(u.CacheRead))
	}
	return fmt.Sprintf(", %s tokens in%s, %s out", render.Tokens(u.Input+u.CacheRead+u.CacheWrite), cached, render.Tokens(u.Output))
}
