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

// Event shows an event of the journal; see [Screen.Show].
func (s *Screen) Event(e journal.Event) { s.Show(history.Decode(e)) }

// Show shows an event as a line or several, if it is worth one. It passes over an
// event that it cannot read, because another version of hone wrote it.
func (s *Screen) Show(e history.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(e)
	s.heading(e)
	switch p := e.Payload.(type) {
	case history.Notice:
		s.line("hone: %s", p.Text)
	case history.Outside:
		s.outside(p)
	case history.Undone:
		s.undone(p)
	case history.Changed:
		s.changed(p, indent(e))
	case history.ToolCall:
		s.call(p, e)
	case history.ToolResult:
		s.called(s.take(*e.Step, e), e)
	case history.Retried:
		s.retried(p)
	case history.State:
		s.decided(p)
	default:
		if !s.o.Quiet {
			s.progress(e)
		}
	}
}

// heading begins a round; also one that an earlier process began.
func (s *Screen) heading(e history.Event) {
	if e.Step != nil && e.Step.Round > s.round && !s.o.Quiet {
		s.round = e.Step.Round
		s.line("round %d of %d", s.round, max(s.o.Rounds, s.round))
	}
}

// progress shows what Quiet leaves out.
func (s *Screen) progress(e history.Event) {
	switch p := e.Payload.(type) {
	case history.Walls:
		s.walls(p)
	case history.Asked:
		s.asked = e.Time
		s.request(p, turn(e))
	case history.Replied:
		s.reply(p, turn(e), e.Time.Sub(s.asked))
	case history.Commit:
		s.paid(p)
	case history.CommandBegun:
		s.commandBegun(e)
	case history.CommandResult:
		s.commandEnded(e)
	case history.StepResult:
		s.showReport("", s.reportOf(e))
	case history.Snapshot:
		s.snapshot(p)
	case history.Served:
		s.served(p)
	case history.Question:
		s.waitFor("")
	case history.Answer:
		s.waitFor(s.running())
	case history.CheckBegun:
		s.heard = false
		s.waitFor("checking")
	case history.Checked:
		s.checked(p, e.Step.Name == "prove")
	case history.End, history.Resumed:
		s.waitFor("")
		s.closeCalls()
	}
}

// turn is the turn of a conversation that an event belongs to, or 0.
func turn(e history.Event) int {
	if e.Step == nil {
		return 0
	}
	return e.Step.Turn
}

// indent sets what a tool call does below its conversation.
func indent(e history.Event) string {
	if e.Step != nil && e.Step.Call > 0 {
		return "    "
	}
	return "  "
}

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
		s.line("hone: %s was changed outside the run while it was stopped", p)
	}
}

// undone shows that a person, or the run itself, had the files put back.
func (s *Screen) undone(u history.Undone) {
	when := "before the first round"
	if u.Round > 0 {
		when = fmt.Sprintf("at the end of round %d", u.Round)
	}
	s.line("hone: %s restored as %s %s", are(len(u.Paths), "file"), were(len(u.Paths)), when)
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
	for _, f := range st.RoundFindings() {
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
	s.line("%s  its contents would have been:", in)
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
			s.line("    - %s failed; see its output above", f.Source)
			continue
		}
		s.finding(f)
	}
	for _, f := range c.Flaky {
		f.Text = "(flaky: not reproduced, does not count) " + f.Text
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
