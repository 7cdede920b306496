package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/rounds"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// Show shows an event as a line or several, if it is worth one. It passes over an
// event that it cannot read, because another version of hone wrote it.
func (s *Screen) Show(e history.Event) {
	defer s.lock()()
	s.at = e.Time
	defer func() { s.at = time.Time{} }()
	s.spent.note(e, s.time())
	s.trackSession(e)
	s.showHeading(e)
	over := s.outage.Add(e)
	if _, replied := e.Payload.(history.Replied); replied {
		s.showOutage(over)
	}
	switch p := e.Payload.(type) {
	case history.Notice:
		s.line("hone: %s", failure.NoticeText(p))
	case history.Outside:
		s.showOutside(p)
	case history.Undone:
		s.showUndone(p)
	case history.Changed:
		s.showChange(p, indent(e))
	case history.ToolCall:
		s.showCall(p, e)
	case history.ToolResult:
		s.showResult(s.takeCall(*e.Step, e), e)
	case history.Retried:
		s.showRetry(p)
	case history.FailedOver:
		s.line("  ! %s has failed and is not asked again: %s; %s takes its place", ModelName(p.From), p.Error, ModelName(p.To))
		s.waitForModel(ModelName(p.To), p.Role)
	case history.Escalated:
		s.line("  ! %s", p)
	case history.State:
		s.showDecision(p)
	default:
		if !s.o.Quiet {
			s.showProgress(e)
		}
	}
}

// showHeading prints the heading of a round once, also if an earlier process
// started the round.
func (s *Screen) showHeading(e history.Event) {
	if s.o.Quiet {
		return
	}
	before, wasOpen := s.rounds.Open()
	s.ended = s.rounds.Add(e)
	now, isOpen := s.rounds.Open()
	if s.ended == nil && isOpen && (!wasOpen || now.Number > before.Number) {
		s.details = nil
	}
	if now.Number > before.Number && !s.o.folds() {
		s.line("round %d of %d", now.Number, s.maxRounds())
	}
}

func (s *Screen) maxRounds() int {
	now, _ := s.rounds.Open()
	return max(s.o.Rounds, now.Number)
}

// showRound prints the round that has ended as one line.
func (s *Screen) showRound() {
	if !s.o.folds() || s.ended == nil {
		return
	}
	s.endLine()
	s.details = nil
	columns, _ := s.o.Size()
	r, named := *s.ended, []string(nil)
	if blocking := blocking(r.Findings); r.Number == 0 && len(blocking) > 1 {
		r.Verdict = check.Tally(blocking)
		named = rounds.FindingLines(blocking, columns-len("    "), "hone show")
	}
	for _, line := range r.Lines(s.o.Colour, rounds.LayoutFor(columns, s.maxRounds())) {
		s.text.WriteString(line + "\n")
	}
	for _, line := range named {
		s.text.WriteString("    " + line + "\n")
	}
}

// showProgress shows the events that Quiet omits.
func (s *Screen) showProgress(e history.Event) {
	switch p := e.Payload.(type) {
	case history.Walls:
		s.showWalls(p)
	case history.Asked:
		s.requestTime = e.Time
		s.showRequest(p, turn(e))
	case history.Replied:
		s.showReply(p, turn(e), e.Time.Sub(s.requestTime))
	case history.Commit:
		s.addAttempt(p)
	case history.CommandBegun:
		s.startCommand(e)
	case history.CommandResult:
		s.endCommand(e)
	case history.StepResult:
		s.showReport("", e.Report(s.o.Get))
	case history.Snapshot:
		s.showSnapshot(p)
	case history.Served:
		s.showServer(p)
	case history.Attempt:
		s.line("  %s", AttemptText(p, false)) // line escapes colours
	case history.Question:
		s.asking = true
		s.waitFor("")
	case history.Answer:
		s.asking = false
		s.waitFor(s.openCalls())
	case history.CheckBegun:
		s.outputShown, s.asking = false, s.o.Asking
		s.waitFor(strings.TrimSpace("checking  " + s.o.Check))
	case history.Checked:
		s.asking = false
		s.showCheck(p, e.Step.Name == history.StepConfirm)
	case history.End, history.Resumed:
		s.asking = false
		s.waitFor("")
		s.reportOpenCalls()
		s.showRound()
	}
}

// AttemptText returns the state of an attempt in one line.
func AttemptText(a history.Attempt, c render.Colours) string {
	head := fmt.Sprintf("attempt %d: ", a.Number)
	run := render.Line(journal.ShortRun(a.Run))
	found := ""
	if a.Findings != nil {
		found = render.Count(*a.Findings, "finding")
	}
	switch {
	case a.Result != "":
		text := strings.TrimSpace(resultMark(a.Result).Mark(c) + " " + string(a.Result))
		if found != "" && a.Result != history.KindDone {
			text += ", " + found
		}
		why, _, _ := strings.Cut(a.Why, "\n")
		if a.Applied {
			why = "applied"
		}
		if why != "" && why != string(a.Result) {
			text += ": " + render.Line(why)
		}
		if a.Run == "" {
			return head + text
		}
		return head + text + fmt.Sprintf(" (run %s, %s, %s tokens)", run, render.Count(a.Rounds, "round"), render.Tokens(a.Tokens))
	case a.Rounds > 0:
		return head + fmt.Sprintf("round %d %s %s", a.Rounds, rounds.Failed.Mark(c), found)
	case a.Run == "": // it was stopped before
		return head + "not started"
	}
	return head + fmt.Sprintf("run %s with %s", run, render.Line(ModelName(a.Model)))
}

// resultMark returns the mark of the way that an attempt ended.
func resultMark(kind history.Kind) rounds.Outcome {
	switch kind {
	case history.KindDone:
		return rounds.Passed
	case history.KindBlocked, history.KindInterrupted:
		return rounds.Held
	}
	return rounds.Failed
}

// turn returns the turn of a conversation that an event belongs to, or 0.
func turn(e history.Event) int {
	if e.Step == nil {
		return 0
	}
	return e.Step.Turn
}

// indent returns the indentation of an event: deeper for one of a tool call.
func indent(e history.Event) string {
	if e.Step != nil && e.Step.Call > 0 {
		return "    "
	}
	return "  "
}

// showWalls shows the walls of commands. Whole and Verbose also show what the
// walls leave open.
func (s *Screen) showWalls(w history.Walls) {
	if w.Wall == "none" {
		s.line("hone: commands run without walls, with your rights")
	} else {
		s.line("hone: commands run behind %s", w.Text)
	}
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

func (s *Screen) showOutside(o history.Outside) {
	for i, p := range o.Paths {
		if i == maxListed && len(o.Paths) > maxListed+1 && !s.o.whole() {
			s.line("hone: … and %s: hone show -v", render.Count(len(o.Paths)-i, "more file"))
			return
		}
		s.line("hone: %s was changed outside the run", p)
	}
}

// showUndone shows that the user, or the run itself, restored files.
func (s *Screen) showUndone(u history.Undone) {
	when := "before the first round"
	if u.Round > 0 {
		when = fmt.Sprintf("at the end of round %d", u.Round)
	}
	s.line("hone: %s restored as %s %s", countIs(len(u.Paths), "file"), itWas(len(u.Paths)), when)
	if !s.o.Quiet {
		s.showPaths(u.Paths)
	}
}

func countIs(n int, thing string) string {
	if n == 1 {
		return render.Count(n, thing) + " is"
	}
	return render.Count(n, thing) + " are"
}

func itWas(n int) string {
	if n == 1 {
		return "it was"
	}
	return "they were"
}

// showPaths shows the paths. It omits some of many, unless the screen shows
// everything.
func (s *Screen) showPaths(paths []string) {
	for i, p := range paths {
		if i == maxListed && len(paths) > maxListed+1 && !s.o.whole() {
			s.line("    [%s: hone show -v]", render.Count(len(paths)-i, "more file"))
			return
		}
		s.line("    %s", p)
	}
}

// showRetry shows why a call is repeated, unless the live lines show it. If attempts have
// no limit it shows only the first one, because there may be many.
func (s *Screen) showRetry(r history.Retried) {
	wait := render.Duration(time.Duration(r.Wait) * time.Millisecond)
	switch {
	case s.o.folds():
	case r.Limit > 0:
		s.line("  ! %s; trying again in %s", r.Error, wait)
	case s.outage.Tries == 1:
		s.line("  ! %s; trying again in %s, then until the model replies", r.Error, wait)
	}
	s.waitToRetry(r)
}

// showOutage shows a long outage that a reply has ended.
func (s *Screen) showOutage(o history.Outage) {
	if o.Long(o.Until) {
		s.line("  ! the model replies again after an %s", rounds.OutageText(o, o.Until))
	}
}

// showChange shows the outcome of an edit, indented by in.
func (s *Screen) showChange(c history.Changed, in string) {
	switch c.Ruling {
	case workspace.Allow:
		s.session.files[c.Path] = true
		if !s.o.Quiet {
			s.detail("%s%s %s%s%s", in, verb(c), c.Path, changeSize(c), editedBy(c))
		}
	case workspace.Drop:
		if !s.o.Quiet {
			s.detail("%s= %s: %s", in, c.Path, c.Reason)
		}
	case workspace.Declined, workspace.Pending, workspace.Unread:
		s.line("%s! %s is not changed: %s", in, c.Path, c.Reason)
	default:
		s.line("%s! %s is refused: %s", in, editName(c), c.Reason)
		s.showAttempt(c, in)
	}
}

// editName returns what a refused edit would have done.
func editName(c history.Changed) string {
	path := c.Path
	if path == "" {
		path = `""`
	}
	if c.Delete {
		return "deleting " + path
	}
	return path
}

// showDecision shows why a reply was not used, so that the check did not run. On a
// terminal it folds the round.
func (s *Screen) showDecision(st hone.State) {
	defer clear(s.logs)
	switch {
	case s.o.Quiet:
		return
	case s.o.folds():
		s.showBuild(st)
		s.showRound()
		return
	}
	found, more := s.firstFindings(slices.DeleteFunc(slices.Clone(st.RoundFindings()), func(f check.Finding) bool { return f.Advisory || s.logs[f.Text] }))
	for _, f := range found {
		s.lines("  ! ", "    ", f.Text)
	}
	s.printMore(s.line, more)
}

// buildLines is the number of lines of a failed build that are shown above its folded
// round.
const buildLines = 20

// showBuild shows what a failed build printed: everything if it is short, else its end,
// which says why.
func (s *Screen) showBuild(st hone.State) {
	for _, f := range st.Checked {
		if f.Source != check.SourceBuild {
			continue
		}
		s.endLine()
		lines := streamLines(f.Text)
		if before := len(lines) - buildLines; before > 1 {
			s.text.WriteString(s.o.Colour.Dim(fmt.Sprintf("  … %s before: hone show --round %d", render.Count(before, "line"), st.Round)) + "\n")
			lines = lines[before:]
		}
		for _, line := range lines {
			s.text.WriteString("  | " + short(line, outputWidth) + "\n")
		}
	}
}

// streamLines returns the lines of a build's output, without blank lines and the headings
// of its two streams.
func streamLines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return line == "STDOUT:" || line == "STDERR:" || strings.TrimSpace(line) == ""
	})
}

func editedBy(c history.Changed) string {
	if c.Edited {
		return ", edited by you"
	}
	return ""
}

func verb(c history.Changed) string {
	switch {
	case c.Delete:
		return "deleted"
	case c.Before.Exists():
		return "changed"
	}
	return "created"
}

// deltaText describes a difference between two manifests.
func deltaText(d workspace.Delta) string {
	switch {
	case d.Op == workspace.Removed:
		return "deleted " + d.Path
	case d.Op == workspace.Added:
		return "created " + d.Path + entrySize(d.After)
	case d.Before.Digest == d.After.Digest && d.Before.Mode != d.After.Mode:
		return "changed the mode of " + d.Path
	}
	return "changed " + d.Path + entrySize(d.After)
}

// entrySize returns the size of a regular file, with a leading comma; empty for
// any other entry.
func entrySize(e workspace.Entry) string {
	if e.Digest == "" {
		return ""
	}
	return ", " + render.Bytes(e.Size)
}

// changeSize returns the size of a file after a change, with a leading comma;
// empty if the file was deleted.
func changeSize(c history.Changed) string {
	if c.Delete {
		return ""
	}
	return ", " + render.Bytes(c.After.Size)
}

// showAttempt shows what a refused edit would have written.
func (s *Screen) showAttempt(c history.Changed, in string) {
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

// showCheck shows what the check found in the tree, or in a clean copy.
func (s *Screen) showCheck(c history.Checked, copied bool) {
	s.waitFor("")
	where := ""
	if copied {
		where = " in a clean copy"
	}
	result := "passed"
	switch n := check.Count(c.Findings); {
	case check.Blocking(c.Findings):
		result = "reports " + check.Tally(blocking(c.Findings))
	case n > 0:
		result += ", with " + render.Count(n, "advisory finding")
	}
	s.detail("  the check %s%s (%s)", result, where, render.Duration(c.Took))
	findings, more := s.firstFindings(c.Findings)
	for _, f := range findings {
		if s.outputShown && !f.Broken && (f.Source == check.SourceBuild || f.Source == check.SourceCommand) {
			if f.ID != "" || f.Blocks() {
				s.detail("    - %s", gistBelowOutput(f))
			}
			continue
		}
		s.printFinding(s.detail, f)
	}
	s.printMore(s.detail, more)
	flaky, more := s.firstFindings(c.Flaky)
	for _, f := range flaky {
		f.Text = "(flaky: not reproduced, does not count) " + f.Text
		s.printFinding(s.detail, f)
	}
	s.printMore(s.detail, more)
}

// gistBelowOutput returns one line about a finding in an output that is shown above.
func gistBelowOutput(f check.Finding) string {
	switch first, _, _ := strings.Cut(f.Text, "\n"); {
	case f.File != "":
		return f.Place() + ": " + first
	case f.ID != "":
		return first
	}
	return f.Source + " failed; see its output above"
}

func blocking(findings []check.Finding) []check.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return !f.Blocks() })
}

// maxFindingLines is the number of lines of one list of findings, unless the screen
// shows everything.
const maxFindingLines = 50

// firstFindings returns the first findings of a list, at least one, that fit
// maxFindingLines together with a line about the others. more counts the others.
func (s *Screen) firstFindings(all []check.Finding) (first []check.Finding, more int) {
	room := maxFindingLines
	for i, f := range all {
		room -= min(strings.Count(strings.TrimRight(f.Text, "\n"), "\n"), headLines+tailLines) + 1
		if i > 0 && room < 1 && !s.o.whole() {
			return all[:i], check.Count(all[i:])
		}
	}
	return all, 0
}

// printMore prints how many findings are not shown.
func (s *Screen) printMore(print func(string, ...any), n int) {
	if n > 0 {
		print("    … and %s: hone show -v", render.Count(n, "more finding"))
	}
}

func (s *Screen) showFinding(f check.Finding) { s.printFinding(s.line, f) }

func (s *Screen) printFinding(print func(string, ...any), f check.Finding) {
	where := f.Source
	if f.File != "" {
		where += ", " + f.Place()
	}
	s.printLines(print, "    - "+render.Line(where)+": ", "      ", f.Text)
}

// Finding shows one finding.
func (s *Screen) Finding(f check.Finding) {
	defer s.lock()()
	s.showFinding(f)
}
