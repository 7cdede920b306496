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
	role          string
	turn          int  // the last one shown
	agent         bool // a command-line agent holds the conversation

	calls  int // calls of models that were charged
	tokens int64
}

func (f *Fold) addAttempt(c history.Commit) {
	if c.Basis != "agent" { // it sums up calls that were not counted
		f.session.calls++
	}
	if f.session.tokens += c.Tokens; f.session.agent && f.Now.What != "" {
		f.Now.What = render.Line(fmt.Sprintf("%s works, %s to models, %s tokens", f.session.role, render.Count(f.session.calls, "call"), render.Tokens(f.session.tokens)))
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
	f.session.role = a.Role
	switch {
	case a.Command:
		f.session.agent = true
		f.say(Detail, "  %s works: %s, prompt of %s", a.Role, ModelName(a.Model), render.Bytes(a.Bytes))
		f.waitFor(a.Role + " works")
		return
	case turn <= 1:
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
	summary, used := fmt.Sprintf("reply of %s in %s", render.Bytes(int64(r.Bytes)), render.Duration(took)), UsageText(r.Usage)
	if used != "" {
		used = ", " + used
	}
	switch {
	case f.session.agent || r.Request != "": // r.Request is set for a session that was cut off and started again
		f.say(Detail, "  %s: %s%s", r.Role, summary, used)
	case turn <= 1 && r.Finish != model.Calls && f.o.Turns[r.Role] == 0:
		f.say(Detail, "  %s%s", summary, used)
	default:
		if f.session.turn = turn; r.Finish == model.Calls {
			summary = render.Duration(took)
		}
		f.say(Detail, "  %s: %s%s", f.turnName(r.Role, turn), summary, used)
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

// UsageText returns the tokens of a call; empty if they are unknown.
func UsageText(u *model.Usage) string {
	if u == nil {
		return ""
	}
	cached := ""
	if u.CacheRead > 0 {
		cached = fmt.Sprintf(" (%s of them cached)", render.Tokens(u.CacheRead))
	}
	return fmt.Sprintf("%s tokens in%s, %s out", render.Tokens(u.Input+u.CacheRead+u.CacheWrite), cached, render.Tokens(u.Output))
}
