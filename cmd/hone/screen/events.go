package screen

import (
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// Event shows an event as a line or several, where it is worth one.
func (s *Screen) Event(e journal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(e)
	s.heading(e)
	switch {
	case e.Type == history.TypeNotice:
		show(s, e, s.notice)
	case e.Type == history.TypeOutside:
		show(s, e, s.outside)
	case e.Type == history.TypeUndo:
		show(s, e, s.undone)
	case e.Type == history.TypeChange:
		show(s, e, func(c history.Changed) { s.changed(c, indent(e)) })
	case e.Type == history.TypeTool:
		s.tool(e)
	case e.Type == history.TypeRetry:
		show(s, e, s.retried)
	case e.Type == history.TypeRound:
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
	case e.Type == history.TypeWalls:
		show(s, e, s.walls)
	case e.Type == history.TypeAsk:
		s.asked = e.Time
		show(s, e, func(a history.Asked) { s.request(a, turn(e)) })
	case e.Type == history.TypeReply:
		took := e.Time.Sub(s.asked)
		show(s, e, func(r history.Replied) { s.reply(r, turn(e), took) })
	case e.Type == history.TypeCommit:
		show(s, e, s.paid)
	case e.Type == history.TypeCommand:
		s.commanded(e)
	case e.Type == history.TypeStep:
		s.stepped(e)
	case e.Type == history.TypeServer:
		show(s, e, s.served)
	case e.Type == history.TypeApproval && begin:
		s.waitFor("")
	case e.Type == history.TypeApproval:
		s.waitFor(s.running())
	case e.Type == history.TypeCheck && begin:
		s.heard = false
		s.waitFor("checking")
	case e.Type == history.TypeCheck:
		show(s, e, func(c history.Checked) { s.checked(c, e.Step != nil && e.Step.Name == "prove") })
	case e.Type == history.TypeEnd, e.Type == history.TypeResume:
		s.waitFor("")
		s.settle()
	}
}

// turn is the turn of a conversation that an event belongs to, or 0.
func turn(e journal.Event) int {
	if e.Step == nil {
		return 0
	}
	return e.Step.Turn
}

// indent sets what a tool call does below its conversation.
func indent(e journal.Event) string {
	if e.Step != nil && e.Step.Call > 0 {
		return "    "
	}
	return "  "
}

// show decodes an event for whoever draws it. What cannot be decoded was
// written by another hone and is passed over.
func show[T any](s *Screen, e journal.Event, draw func(T)) {
	var v T
	if e.Decode(&v) == nil {
		draw(v)
	}
}

func (s *Screen) notice(n history.Notice) { s.line("hone: %s", n.Text) }

// walls shows what commands stand behind, and in whole what is open all
// the same.
func (s *Screen) walls(w history.Walls) {
	s.line("hone: commands run behind %s", w.Text)
	if !s.o.whole() {
		return
	}
	if w.Why != "" {
		s.line("  no stronger wall: %s", w.Why)
	}
	for _, o := range w.Open {
		s.line("  open: %s", o)
	}
}

func (s *Screen) outside(o history.Outside) {
	for _, p := range o.Paths {
		s.line("hone: %s was changed by somebody else while the run was stopped", p)
	}
}

// undone shows that a person, or the run itself, had the files put back.
func (s *Screen) undone(u history.Undone) {
	when := "before the first round"
	if u.Round > 0 {
		when = fmt.Sprintf("at the end of round %d", u.Round)
	}
	s.line("hone: %s put back as %s %s", are(len(u.Paths), "file"), were(len(u.Paths)), when)
	if !s.o.Quiet {
		s.list(u.Paths)
	}
}

func are(n int, thing string) string {
	if n == 1 {
		return render.Count(n, thing) + " is"
	}
	return render.Count(n, thing) + " are"
}

func were(n int) string {
	if n == 1 {
		return "it was"
	}
	return "they were"
}

// list shows some of the paths, or all of them.
func (s *Screen) list(paths []string) {
	for i, p := range paths {
		if i == mostChanged && len(paths) > mostChanged+1 && !s.o.whole() {
			s.line("    [%s: hone show last]", render.Count(len(paths)-i, "more file"))
			return
		}
		s.line("    %s", p)
	}
}

func (s *Screen) retried(r history.Retried) {
	s.line("  ! %s; trying again in %s", r.Error, time.Duration(r.Wait)*time.Millisecond)
	s.waitFor("waiting before another attempt")
}

// changed shows what became of an edit, indented by in.
func (s *Screen) changed(c history.Changed, in string) {
	switch c.Ruling {
	case workspace.Allow:
		s.session.files[c.Path] = true
		if !s.o.Quiet {
			s.line("%s%s %s%s", in, sign(c), c.Path, written(c))
		}
	case workspace.Drop:
		if !s.o.Quiet {
			s.line("%s= %s: %s", in, c.Path, c.Reason)
		}
	case workspace.Declined:
		s.line("%s! %s is not changed: %s", in, c.Path, c.Reason)
	default:
		s.line("%s! %s is refused: %s", in, wanted(c), c.Reason)
		s.attempted(c, in)
	}
}

// wanted says what a refused edit would have done.
func wanted(c history.Changed) string {
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
	defer clear(s.logs)
	if s.o.Quiet {
		s.left(st)
		return
	}
	for _, f := range st.Findings[:max(0, len(st.Findings)-len(st.Checked))] {
		if !f.Advisory && !s.logs[f.Text] {
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

func sign(c history.Changed) string {
	switch {
	case c.Delete:
		return "deleted"
	case c.Before.Exists():
		return "changed"
	}
	return "created"
}

// differs words a difference between two manifests.
func differs(d workspace.Delta) string {
	switch {
	case d.Op == workspace.Removed:
		return "deleted " + d.Path
	case d.Op == workspace.Added:
		return "created " + d.Path + sized(d.After)
	case d.Before.Digest == d.After.Digest && d.Before.Mode != d.After.Mode:
		return "changed the mode of " + d.Path
	}
	return "changed " + d.Path + sized(d.After)
}

// sized words how large a regular file is.
func sized(e workspace.Entry) string {
	if e.Digest == "" {
		return ""
	}
	return ", " + render.Bytes(e.Size)
}

// written words how large a file is now.
func written(c history.Changed) string {
	if c.Delete {
		return ""
	}
	return ", " + render.Bytes(c.After.Size)
}

// attempted shows what a refused edit would have written, as the seed asks.
func (s *Screen) attempted(c history.Changed, in string) {
	if c.Attempted == "" || s.o.Get == nil {
		return
	}
	b, err := s.o.Get(c.Attempted)
	if err != nil {
		return
	}
	s.line("%s  it would have held:", in)
	for line := range strings.Lines(string(b)) {
		s.line("%s  | %s", in, strings.TrimSuffix(line, "\n"))
	}
}

// checked shows what the check found, or what it found in a clean copy when it
// had found nothing in the tree.
func (s *Screen) checked(c history.Checked, copied bool) {
	s.waitFor("")
	n := len(c.Findings)
	where := ""
	if copied {
		where = " in a clean copy"
	}
	found := render.Count(n, "thing")
	if n == 0 {
		found = "nothing"
	}
	s.line("  the check%s found %s, after %s", where, found, c.Took.Round(100*time.Millisecond))
	for _, f := range c.Findings {
		if s.heard && !f.Broken && (f.Source == check.SourceBuild || f.Source == check.SourceCommand) {
			s.line("    - %s failed; what it printed stands above", f.Source)
			continue
		}
		s.finding(f)
	}
	for _, f := range c.Flaky {
		f.Text = "(flaky: it did not come again, and counts for nothing) " + f.Text
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

// Finding shows one finding.
func (s *Screen) Finding(f check.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding(f)
}
