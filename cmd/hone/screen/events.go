package screen

import (
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// Event shows an event as a line or several, where it is worth one.
func (s *Screen) Event(e journal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heading(e)
	switch {
	case e.Type == "notice":
		show(s, e, s.notice)
	case e.Type == "outside":
		show(s, e, s.outside)
	case e.Type == "change":
		show(s, e, s.changed)
	case e.Type == "retry":
		show(s, e, s.retried)
	case e.Type == "round":
		show(s, e, s.decided)
	case s.o.Quiet:
	default:
		s.progress(e)
	}
}

// heading begins a round; also one that an earlier process began.
func (s *Screen) heading(e journal.Event) {
	if e.Step != nil && e.Step.Round > s.round && !s.o.Quiet {
		s.round = e.Step.Round
		s.line("round %d of %d", s.round, max(s.o.Rounds, s.round))
	}
}

// progress shows what Quiet leaves out.
func (s *Screen) progress(e journal.Event) {
	begin := e.Phase == journal.Begin
	switch {
	case e.Type == "walls":
		show(s, e, s.walls)
	case e.Type == "ask":
		s.asked = e.Time
		show(s, e, s.request)
	case e.Type == "reply":
		took := e.Time.Sub(s.asked)
		show(s, e, func(r hone.Replied) { s.reply(r, took) })
	case e.Type == "approval" && begin:
		s.waitFor("")
	case e.Type == "check" && begin:
		s.heard = false
		s.waitFor("checking")
	case e.Type == "check":
		show(s, e, s.checked)
	case e.Type == "end":
		s.waitFor("")
	}
}

// show decodes an event for whoever draws it. What cannot be decoded was
// written by another hone and is passed over.
func show[T any](s *Screen, e journal.Event, draw func(T)) {
	var v T
	if e.Decode(&v) == nil {
		draw(v)
	}
}

func (s *Screen) notice(n hone.Notice) { s.line("hone: %s", n.Text) }

// walls shows what commands stand behind, and with Verbose what is open all
// the same.
func (s *Screen) walls(w hone.Walls) {
	s.line("hone: commands run behind %s", w.Text)
	if !s.o.Verbose {
		return
	}
	if w.Why != "" {
		s.line("  no stronger wall: %s", w.Why)
	}
	for _, o := range w.Open {
		s.line("  open: %s", o)
	}
}

func (s *Screen) outside(o hone.Outside) {
	for _, p := range o.Paths {
		s.line("hone: %s was changed by somebody else while the run was stopped", p)
	}
}

func (s *Screen) request(a hone.Asked) {
	s.line("  asking %s: %s, about %s tokens", a.Model, render.Bytes(a.Bytes), render.Tokens(a.Bytes/4))
	s.waitFor("waiting for " + a.Model)
}

func (s *Screen) reply(r hone.Replied, took time.Duration) {
	s.waitFor("")
	used := ""
	if u := r.Usage; u != nil {
		used = fmt.Sprintf(", %s tokens in (%s of them cached), %s out", render.Tokens(u.Input+u.CacheRead+u.CacheWrite),
			render.Tokens(u.CacheRead), render.Tokens(u.Output))
	}
	s.line("  it answered: %s in %s%s", render.Bytes(int64(r.Bytes)), took.Round(100*time.Millisecond), used)
	if !r.Finish.Normal() {
		s.line("  ! the answer did not come to its end: %s %s", string(r.Finish), r.Detail)
	}
}

func (s *Screen) retried(r hone.Retried) {
	s.line("  ! %s; trying again in %s", r.Error, time.Duration(r.Wait)*time.Millisecond)
	s.waitFor("waiting before another attempt")
}

func (s *Screen) changed(c hone.Changed) {
	switch c.Ruling {
	case workspace.Allow:
		if !s.o.Quiet {
			s.line("  %s %s%s", sign(c), c.Path, size(c))
		}
	case workspace.Drop:
		if !s.o.Quiet {
			s.line("  = %s: %s", c.Path, c.Reason)
		}
	case workspace.Declined:
		s.line("  ! %s is not changed: %s", c.Path, c.Reason)
	default:
		s.line("  ! %s is refused: %s", wanted(c), c.Reason)
		s.attempted(c)
	}
}

// wanted says what a refused edit would have done.
func wanted(c hone.Changed) string {
	path := c.Path
	if path == "" {
		path = `""`
	}
	if c.Delete {
		return "deleting " + path
	}
	return path
}

// decided shows what stood in the way of the check: why a reply was not used.
// Quiet shows what is left at the end, and nothing before.
func (s *Screen) decided(st hone.State) {
	if s.o.Quiet {
		s.left(st)
		return
	}
	for _, f := range st.Findings[:max(0, len(st.Findings)-len(st.Checked))] {
		if !f.Advisory {
			s.lines("  ! ", "    ", f.Text)
		}
	}
}

// left shows the findings that a run ends with.
func (s *Screen) left(st hone.State) {
	for _, f := range st.Findings {
		if st.Decision == hone.StopNow && !f.Advisory {
			s.finding(f)
		}
	}
}

func sign(c hone.Changed) string {
	switch {
	case c.Delete:
		return "deleted"
	case c.Before.Exists():
		return "changed"
	}
	return "created"
}

func size(c hone.Changed) string {
	if c.Delete {
		return ""
	}
	return ", " + render.Bytes(c.After.Size)
}

// attempted shows what a refused edit would have written, as the seed asks.
func (s *Screen) attempted(c hone.Changed) {
	if c.Attempted == "" || s.o.Get == nil {
		return
	}
	b, err := s.o.Get(c.Attempted)
	if err != nil {
		return
	}
	s.line("    it would have held:")
	for line := range strings.Lines(string(b)) {
		s.line("    | %s", strings.TrimSuffix(line, "\n"))
	}
}

func (s *Screen) checked(c hone.Checked) {
	s.waitFor("")
	n := len(c.Findings)
	took := c.Took.Round(100 * time.Millisecond)
	if n == 0 {
		s.line("  the check found nothing, after %s", took)
		return
	}
	s.line("  the check found %s, after %s", Count(n, "thing"), took)
	for _, f := range c.Findings {
		if s.heard && !f.Broken && (f.Source == check.SourceBuild || f.Source == check.SourceCommand) {
			s.line("    - %s failed; what it printed stands above", f.Source)
			continue
		}
		s.finding(f)
	}
}

func (s *Screen) finding(f check.Finding) {
	where := f.Source
	if f.File != "" {
		where += ", " + f.File
	}
	s.lines("    - "+render.Line(where)+": ", "      ", f.Text)
}

// Count words a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Finding shows one finding.
func (s *Screen) Finding(f check.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding(f)
}
