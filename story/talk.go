package story

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/model"
)

// session is what was seen of a conversation; the zero value is none.
type session struct {
	round, number int
	complete      bool // it was seen from its first turn
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

// Sessions with a negative number are skipped: in these a resume asks again.
func (f *Fold) trackSession(e history.Event) {
	_, decided := e.Payload.(history.State)
	switch {
	case decided:
		f.endSession(0, 0)
	case e.Step == nil || e.Step.Session < 0:
	case e.Step.Round != f.session.round || e.Step.Session != f.session.number:
		f.endSession(e.Step.Round, e.Step.Session)
		f.session.since = e.Active
	}
	f.session.last = e.Active
}

// A session with more than one request gets a line with its totals.
func (f *Fold) endSession(round, number int) {
	left := f.session
	f.session = session{round: round, number: number, files: map[string]bool{}}
	if !left.complete || left.turn == 0 && !left.agent {
		return
	}
	f.waitFor("")
	changed, took := render.Count(len(left.files), "file"), render.Duration(time.Duration(left.last-left.since)*time.Millisecond)
	if left.agent {
		f.say(Detail, "  %s, total: %s changed%s, in %s", left.role, changed, left.usage(), took)
		return
	}
	f.say(Detail, "  %s, total: %s, %s%s, %s changed, %s tokens%s, in %s", left.role, render.Count(left.turn, "turn"), render.Count(left.calls, "call"),
		left.failures(), changed, render.Tokens(left.tokens), left.price(left.cost), took)
}

// It has a leading comma; empty if none is known.
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

// It has a leading comma; empty if a part is unknown.
func (t session) price(cost float64) string {
	if t.unpriced {
		return ""
	}
	return fmt.Sprintf(", $%.4f", cost)
}

func (f *Fold) addAttempt(c history.Commit) {
	if c.Basis != "agent" { // it sums up calls that were not counted
		f.session.attempts++
	}
	f.session.tokens += c.Tokens
	if c.Cost == nil {
		f.session.unpriced = true
	} else {
		f.session.cost += *c.Cost
		f.session.turnCost += *c.Cost
	}
	if f.session.agent && f.Now.What != "" {
		f.Now.What = render.Line(f.session.role + " works" + f.session.usage())
	}
}

func (f *Fold) waitForModel(name, role, turn string) {
	name = ModelName(name)
	what := path.Base(name)
	if turn != "" {
		what += ", " + turn
	}
	f.waitFor(what)
	f.Now.Model, f.Now.Role = name, role
}

// A later turn of a conversation gets its line only when it has ended, because there can be many per minute.
func (f *Fold) tellRequest(a history.Asked, turn int) {
	f.session.role, f.session.turnCost = a.Role, 0
	switch {
	case a.Command:
		f.session.complete, f.session.agent = true, true
		f.say(Detail, "  %s works: %s, prompt of %s", a.Role, ModelName(a.Model), render.Bytes(a.Bytes))
		f.waitFor(a.Role + " works")
		return
	case turn <= 1:
		f.session.complete = true
		f.say(Detail, "  asking %s: %s, about %s tokens", ModelName(a.Model), render.Bytes(a.Bytes), render.Tokens(a.Bytes/4))
	}
	of := a.Role
	if turn > 1 || f.o.Turns[a.Role] > 0 {
		of = f.turnName(a.Role, max(1, turn))
	}
	f.waitForModel(a.Model, a.Role, of)
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

func (f *Fold) turnName(role string, turn int) string {
	if limit := f.o.Turns[role]; limit > 0 {
		return fmt.Sprintf("%s, turn %d/%d", role, turn, limit)
	}
	return fmt.Sprintf("%s, turn %d", role, turn)
}

// A reply to the first request does not count as a conversation, unless the role has turns.
func (f *Fold) tellReply(r history.Replied, turn int, took time.Duration) {
	f.waitFor("")
	summary := fmt.Sprintf("reply of %s in %s", render.Bytes(int64(r.Bytes)), render.Duration(took))
	switch {
	case f.session.agent || r.Request != "": // r.Request is set for a session that was cut off and started again
		f.say(Detail, "  %s: %s%s", r.Role, summary, usageText(r.Usage))
	case turn <= 1 && r.Finish != model.Calls && f.o.Turns[r.Role] == 0:
		f.say(Detail, "  %s%s", summary, usageText(r.Usage))
	default:
		if f.session.turn = turn; r.Finish == model.Calls {
			summary = render.Duration(took)
		}
		f.say(Detail, "  %s: %s%s%s", f.turnName(r.Role, turn), summary, usageText(r.Usage), f.session.price(f.session.turnCost))
	}
	if r.Finish.Normal() {
		return
	}
	why := strings.TrimSpace(string(r.Finish) + " " + r.Detail)
	if r.Finish == model.Other && r.Detail != "" {
		why = r.Detail
	}
	f.say(Detail, "  ! the reply is incomplete: %s", why)
}

// It has a leading comma; empty if it is unknown.
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
