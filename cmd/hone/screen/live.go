package screen

import (
	"fmt"
	"path"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
)

// activity is what the run does now; the zero value is nothing.
type activity struct {
	what   string // safe to print; empty shows nothing
	since  time.Time
	output string // the last line of a command's output

	model    bool  // it waits for a model's reply
	received int64 // bytes of it
	text     int64 // bytes of visible text in it
	heard    time.Time
	try      string         // which attempt it is, if it is not the first
	until    time.Time      // when that attempt is made
	outage   history.Outage // the attempts before it
}

// spending is what the run has used so far.
type spending struct {
	known  bool // an event said so
	use    history.Usage
	active time.Duration // until the last event
	at     time.Time     // when that arrived
}

// waitFor shows what the run waits for; an empty text shows nothing.
func (s *Screen) waitFor(what string) {
	s.now = activity{what: render.Line(what), since: s.time()}
}

// time returns when the event that is being shown happened. For events of this process
// that is now.
func (s *Screen) time() time.Time {
	if s.o.Followed && !s.at.IsZero() {
		return s.at
	}
	return time.Now()
}

// waitForModel shows that the run waits for a model's reply.
func (s *Screen) waitForModel(name, turn string) {
	if turn != "" {
		turn = ", " + turn
	}
	s.waitFor(path.Base(name) + turn)
	s.now.model = true
}

// waitToRetry shows the wait before another attempt, and then that attempt.
func (s *Screen) waitToRetry(r history.Retried) {
	next := s.time().Add(time.Duration(r.Wait) * time.Millisecond)
	try := fmt.Sprintf("try %d", r.Attempt+2)
	if r.Limit > 0 {
		try += fmt.Sprintf("/%d", r.Limit)
	}
	s.now = activity{what: s.now.what, model: true, since: next, try: try, until: next, outage: s.outage}
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// silence is how long a model sends nothing before the screen says so.
const silence = 5 * time.Second

// liveLines returns the lines that are redrawn in place; nil if there are none now.
func (s *Screen) liveLines(now time.Time, columns, rows int) []string {
	round, open := s.rounds.Open()
	if s.closed || s.streaming || s.asking || s.now.what == "" && !open {
		return nil
	}
	var lines []string
	if s.o.folds() {
		if round.Number > 0 {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  round %d/%d  %s", round.Number, s.maxRounds(), round.FilesText(columns/2)), " "))
		}
		shown := s.details
		for _, d := range shown[max(0, len(shown)-rows/5):] {
			lines = append(lines, s.o.Colour.Dim("  "+d))
		}
	}
	if s.now.what != "" {
		lines = append(lines, s.now.line(now, columns, s.o))
	}
	if s.now.output != "" {
		lines = append(lines, s.o.Colour.Dim("  | "+short(s.now.output, max(1, columns-len("  | ")-1))))
	}
	return append(lines, s.o.Colour.Dim("  "+s.totals(now)))
}

// leastName is the number of columns that what the run does has on any terminal.
const leastName = 10

// line returns what the run does in one line. On a narrow terminal it leaves out whose
// turn it is, or the end of a command, rather than what arrives and the time.
func (a activity) line(now time.Time, columns int, o Options) string {
	if wait := a.until.Sub(now); wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		return fmt.Sprintf("%s %s%s in %d:%02d · %s", o.Colour.Yellow("⏸"), a.outageText(now), a.try, seconds/60, seconds%60, render.Line(a.outage.Error))
	}
	took := now.Sub(a.since)
	frame := spinner[int(max(0, took)/(100*time.Millisecond))%len(spinner)]
	rest := "  " + o.Colour.Dim(clock(took))
	for _, more := range a.progress(now, o) {
		rest += o.Colour.Dim(" · ") + more
	}
	what := a.what
	if a.model && render.Width(what+rest)+len("x ") >= columns {
		what, _, _ = strings.Cut(what, ", ")
	}
	what = render.Cut(what, max(leastName, columns-len("x ")-1-render.Width(rest)))
	return fmt.Sprintf("%c %s%s", frame, what, rest)
}

// progress says what has arrived of a model's reply.
func (a activity) progress(now time.Time, o Options) []string {
	var parts []string
	if !a.model {
		return nil
	}
	if a.try != "" {
		parts = append(parts, a.outageText(now)+a.try)
	}
	switch {
	case a.text > 0:
		parts = append(parts, "↓ ~"+render.Short(a.text/4)+" tokens")
	case a.received > 0:
		parts = append(parts, "↓ "+render.Bytes(a.received))
	}
	heard := a.since
	if a.heard.After(heard) {
		heard = a.heard
	}
	if quiet := now.Sub(heard); quiet >= silence && !o.Followed {
		parts = append(parts, o.Colour.Yellow("silent "+clock(quiet)))
	}
	return parts
}

// outageText returns since when a model has not replied; empty if that is less than a minute.
func (a activity) outageText(now time.Time) string {
	if !a.outage.Long(now) {
		return ""
	}
	return fmt.Sprintf("no reply since %s (%s) · ", a.outage.Since.Local().Format("15:04"), render.Duration(a.outage.Lasted(now)))
}

// clock formats a duration in whole seconds.
func clock(d time.Duration) string {
	if d = d.Truncate(time.Second); d < 10*time.Second {
		return fmt.Sprintf("%ds", max(0, d)/time.Second)
	}
	return render.Duration(d)
}

// note updates the totals of the run with an event that happened at a time.
func (t *spending) note(e history.Event, at time.Time) {
	if u, ok := e.Payload.(history.Usage); ok {
		t.known, t.use = true, u
	}
	t.active, t.at = time.Duration(e.Active)*time.Millisecond, at
}

// totals returns the run's time, its tokens and its cost.
func (s *Screen) totals(now time.Time) string {
	var took time.Duration
	if t := s.spent; !t.at.IsZero() {
		took = t.active + now.Sub(t.at)
	}
	text := clock(took)
	if !s.spent.known {
		return text
	}
	use := s.spent.use
	confirmed := min(use.Tokens, use.Known.Total())
	text += " · " + render.Short(confirmed)
	left := use.Tokens - confirmed
	if left > 0 {
		text += " (+" + render.Short(left) + " unconfirmed)"
	}
	if s.o.Tokens > 0 {
		text += " of " + render.Short(s.o.Tokens)
	}
	return text + " tokens · " + render.Cost(use.Cost, left > 0)
}
