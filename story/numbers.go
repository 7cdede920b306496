package story

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/render"
)

// Numbers are the figures of a run. Confirmed and unconfirmed tokens are never one number
// (ruling G25).
type Numbers struct {
	Rounds int   `json:"rounds"`
	Tokens int64 `json:"tokens"` // that providers reported
	// Unconfirmed is how many tokens are reserved for calls of which no use was reported.
	Unconfirmed int64    `json:"unconfirmed,omitempty"`
	Cost        *float64 `json:"cost,omitempty"` // USD; nil if a price is unknown
	// Findings is how many findings are left; nil before the first decision.
	Findings *int          `json:"findings,omitempty"`
	Active   time.Duration `json:"active_ns"`
	Cached   int           `json:"-"` // percent of the input that providers had cached
}

// NumbersOf returns the figures of a run. spent is what it has used, with what its attempts
// use now; active is how long it worked.
func NumbersOf(past *history.Past, spent history.Ledger, active time.Duration) Numbers {
	n := Numbers{Rounds: past.Rounds(), Tokens: spent.Tokens - spent.Assumed, Unconfirmed: spent.Assumed, Cost: spent.Price(), Active: active}
	if input := spent.Known.Input + spent.Known.CacheRead + spent.Known.CacheWrite; spent.Known.CacheRead > 0 {
		n.Cached = int(100 * spent.Known.CacheRead / input)
	}
	if st := past.Facts().State; st.Decision != "" {
		n.Findings = new(check.Count(check.BlockingOf(st.Findings)))
	}
	return n
}

// Parts returns, as parts of a line, the tokens, the cost, and the share of the input that was
// cached, if there was any. number formats tokens: [render.Tokens] or [render.Short].
func (n Numbers) Parts(number func(int64) string) []string {
	parts := render.UsageParts(n.Tokens, n.Unconfirmed, n.Cost, number)
	if n.Cached > 0 {
		parts = append(parts, fmt.Sprintf("%d%% of the input cached", n.Cached))
	}
	return parts
}

// TokensText returns the tokens in a cell of a table, with the unconfirmed ones after a plus.
func (n Numbers) TokensText() string {
	text := render.Short(n.Tokens)
	if n.Unconfirmed > 0 {
		text += " +" + render.Short(n.Unconfirmed)
	}
	return text
}

// CostText returns the cost in a cell of a table, such as "unknown"; empty if nothing was used.
func (n Numbers) CostText() string {
	if n.Tokens+n.Unconfirmed == 0 {
		return ""
	}
	return strings.TrimPrefix(render.Cost(n.Cost, n.Unconfirmed > 0), "cost ")
}

// Numbers returns the figures of the round alone.
func (r Round) Numbers() Numbers {
	return Numbers{Tokens: r.Tokens, Unconfirmed: r.Unconfirmed, Cost: r.Cost, Active: r.Took}
}

// Standing is how a run ended, or that it has not.
type Standing struct {
	Mark   Outcome
	Result string // the kind of the end; "running" or "died" if the run has none
	Text   string // Result in words, unless the run was undone since
}

// Line returns the standing in a few words that are safe to print.
func (s Standing) Line(c render.Colours) string { return s.Mark.Mark(c) + " " + render.Line(s.Text) }

// StandingOf returns how a run ended. A run that was undone after its end counts as undone.
// working means that a process works on it.
func StandingOf(past *history.Past, working bool) Standing {
	s := Standing{Mark: Running, Result: "running"}
	now := past.Facts()
	switch {
	case working:
	case now.Ended:
		s.Mark, s.Result = MarkOf(now.End.Kind), string(cmp.Or(now.End.Kind, "ended"))
	default:
		s.Mark, s.Result = Failed, "died"
	}
	s.Text = KindText(history.Kind(s.Result))
	switch to := past.UndoneTo(); {
	case working || to == nil:
	case *to == 0:
		s.Mark, s.Text = Unfinished, "undone"
	default:
		s.Mark, s.Text = Unfinished, fmt.Sprintf("undone to round %d", *to)
	}
	return s
}

// AttemptStanding returns how an attempt ended. working means that a process works on its run or on
// the run that it is of.
func AttemptStanding(a history.Attempt, working bool) Standing {
	s := Standing{Failed, "died", "died"}
	switch {
	case a.Result != "":
		s = Standing{MarkOf(a.Result), string(a.Result), KindText(a.Result)}
	case working:
		s = Standing{Running, "running", "running"}
	}
	return s
}

// KindText returns how a run ended in words: "usage" alone could mean tokens.
func KindText(kind history.Kind) string {
	switch kind {
	case history.KindUsage:
		return "usage error"
	case history.KindRounds:
		return "out of rounds"
	}
	return string(kind)
}

// MarkOf returns the mark of the way that a run ended.
func MarkOf(kind history.Kind) Outcome {
	switch kind {
	case history.KindDone:
		return Passed
	case history.KindBlocked, history.KindInterrupted:
		return Held
	}
	return Failed
}
