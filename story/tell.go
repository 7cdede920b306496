package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

func (f *Fold) tell(e history.Event) {
	over := f.outage.Add(e)
	switch p := e.Payload.(type) {
	case history.Notice:
		text := p.Text
		if f.o.Notice != nil {
			text = f.o.Notice(p)
		}
		f.say(Always, "hone: %s", text)
	case history.Walls:
		f.tellWalls(p)
	case history.Outside:
		f.sayFiles(Always, p.Paths, "hone: %s was changed outside the run", "hone: … and %s: %s")
	case history.Undone:
		are, were := "are", "they were"
		if len(p.Paths) == 1 {
			are, were = "is", "it was"
		}
		f.say(Always, "hone: %s %s restored as %s %s", render.Count(len(p.Paths), "file"), are, were, EndOfRound(p.Round))
		f.sayFiles(Plain, p.Paths, "    %s", "    [%s: %s]")
	case history.Asked:
		f.asked = e.Time
		f.tellRequest(p, e.Step.Turn)
	case history.Replied:
		if over.Long(over.Until) {
			f.say(Always, "  ! the model replies again after an %s", OutageText(over, over.Until))
		}
		f.tellReply(p, e.Step.Turn, e.Time.Sub(f.asked))
	case history.Commit:
		f.addAttempt(p)
	case history.Retried:
		f.tellRetry(p)
	case history.FailedOver:
		f.say(Always, "  ! %s has failed and is not asked again: %s; %s takes its place", ModelName(p.From), p.Error, ModelName(p.To))
		f.waitForModel(p.To, p.Role, p.Role)
	case history.Escalated:
		f.say(Always, "  ! %s", p.String())
	case history.ToolCall:
		f.tellCall(p, e)
	case history.ToolResult:
		f.tellResult(f.takeCall(*e.Step, e), e)
	case history.Changed:
		f.tellChange(p)
	case history.CommandBegun:
		f.command = &command{*e.Step, e.Active}
		f.waitFor(e.Step.Name)
	case history.CommandResult:
		f.tellCommand(e)
	case history.StepBegun:
		if e.Step.Name == history.StepMeasure {
			f.waitFor("measuring")
		}
	case history.StepResult:
		if e.Step.Name == history.StepMeasure {
			f.waitFor("")
		}
		f.tellReport("", e.Report(f.o.Get))
	case history.Snapshot:
		f.tellSnapshot(p)
	case history.Served:
		switch {
		case p.What == history.Up && f.command == nil: // else the step reports it
			f.say(Detail, "  the server is up at %s", p.URL)
		case p.What == history.Reached && p.Requests <= 1:
			f.say(Detail, "    the server was reached")
		case p.What == history.Down:
			f.say(Detail, "  the server was stopped")
		}
	case history.Attempt:
		f.say(Plain, "  %s", AttemptText(p, false))
	case history.Question:
		f.waitFor("")
		f.Now.Asking = true
	case history.Answer:
		f.waitFor(f.openCalls())
	case history.CheckBegun:
		f.Shown = false
		f.waitFor(strings.TrimSpace("checking  " + f.o.Check))
		f.Now.Asking = f.o.Asking
	case history.Checked:
		f.tellCheck(p, e.Step.Name == history.StepConfirm)
	case history.State:
		f.tellDecision(p)
	case history.End, history.Resumed:
		f.waitFor("")
		f.reportOpenCalls()
	}
}

func (f *Fold) tellWalls(w history.Walls) {
	f.say(Plain, "hone: commands run %s", WallsText(w.Wall, w.Text))
	if !f.o.whole() {
		return
	}
	if w.Why != "" {
		f.say(Plain, "  no stronger wall: %s", w.Why)
	}
	for _, o := range w.Open {
		f.say(Plain, "  open: %s", o)
	}
}

// WallsText says what is around commands: a wall, with its details in text.
func WallsText(wall, text string) string {
	if wall == "none" {
		return "without walls, with your rights"
	}
	return "behind walls: " + text
}

// EndOfRound names the time to which files were restored.
func EndOfRound(round int) string {
	if round == 0 {
		return "before the first round"
	}
	return fmt.Sprintf("at the end of round %d", round)
}

// If attempts have no limit it says so only once, because there may be many.
func (f *Fold) tellRetry(r history.Retried) {
	wait := time.Duration(r.Wait) * time.Millisecond
	next := f.event.Time.Add(wait)
	try := fmt.Sprintf("try %d", r.Attempt+2)
	switch {
	case r.Limit > 0:
		try += fmt.Sprintf("/%d", r.Limit)
		f.say(Live, "  ! %s; trying again in %s", r.Error, render.Duration(wait))
	case f.outage.Tries == 1:
		f.say(Live, "  ! %s; trying again in %s, then until the model replies", r.Error, render.Duration(wait))
	}
	was := f.Now
	f.Now = Activity{N: was.N + 1, What: was.What, Model: was.Model, Role: was.Role, Since: next, Try: try, Until: next, Outage: f.outage}
}

// Of a refused edit it also says what it would have written.
func (f *Fold) tellChange(c history.Changed) {
	in := "  "
	if s := f.event.Step; s != nil && s.Call > 0 {
		in = "    "
	}
	name := cmp.Or(c.Path, `""`)
	switch c.Ruling {
	case workspace.Allow:
		f.edited = true
		verb, size, by := "created", ", "+render.Bytes(c.After.Size), ""
		switch {
		case c.Delete:
			verb, size = "deleted", ""
		case c.Before.Exists():
			verb = "changed"
		}
		if added, removed := render.Stat(f.content(c.Before.Digest), f.content(c.After.Digest)); added+removed > 0 {
			size = " " + render.StatText(added, removed, "−")
		}
		if c.Edited {
			by = ", edited by you"
		}
		if c.Linked {
			by += "; its other names (hard links) keep the old contents"
		}
		f.say(Detail, "%s%s %s%s%s", in, verb, c.Path, size, by)
	case workspace.Drop:
		f.say(Detail, "%s= %s: %s", in, c.Path, c.Reason)
	case workspace.Declined, workspace.Pending, workspace.Unread:
		f.say(Always, "%s! %s is not changed: %s", in, c.Path, c.Reason)
	default:
		if c.Delete {
			name = "deleting " + name
		}
		f.say(Always, "%s! %s is refused: %s", in, name, c.Reason)
		if c.Attempted == "" || f.o.Get == nil {
			return
		}
		if b, err := f.o.Get(c.Attempted); err == nil {
			f.say(Always, "%s  its contents would have been:", in)
			for line := range strings.Lines(string(b)) {
				f.say(Always, "%s  | %s", in, strings.TrimSuffix(line, "\n"))
			}
		}
	}
}

// The reply was not used, so that the check did not run.
func (f *Fold) tellDecision(st history.State) {
	found, more := f.firstFindings(slices.DeleteFunc(slices.Clone(st.RoundFindings()), func(one check.Finding) bool { return one.Advisory || f.logs[one.Text] }))
	for _, one := range found {
		f.text(Unfold, "  ! ", "    ", one.Text)
	}
	f.tellMore(Unfold, more)
	clear(f.logs)
	if st.Score != nil {
		f.Best = st.Score.Tally()
	}
}

func (f *Fold) tellCheck(c history.Checked, copied bool) {
	f.waitFor("")
	where, result := "", "passed"
	if copied {
		where = " in a clean copy"
	}
	if len(c.Judges) > 0 {
		where += ", with " + render.Names(c.Judges) + " as the run found it"
	}
	switch n := check.Count(c.Findings); {
	case c.From != "":
		result = fmt.Sprintf("has not run; %s has %s", c.From, check.Tally(check.BlockingOf(c.Findings)))
	case check.Blocking(c.Findings):
		result = "reports " + check.Tally(check.BlockingOf(c.Findings))
	case c.Old > 0:
		result = "found nothing new"
	case n > 0:
		result += ", with " + render.Count(n, "advisory finding")
	}
	if c.Old > 0 {
		result += fmt.Sprintf(", and %d that were there before", c.Old)
	}
	f.say(Detail, "  the check %s%s (%s)", result, where, render.Duration(c.Took))
	findings, more := f.firstFindings(c.Findings)
	for _, one := range findings {
		first, _, _ := strings.Cut(one.Text, "\n")
		switch {
		case !f.Shown || one.Broken || one.Source != check.SourceBuild && one.Source != check.SourceCommand:
			f.tellFinding(one)
		case one.File != "" && (one.ID != "" || one.Blocks()): // its output is shown above
			f.say(Detail, "    - %s", one.Place()+": "+first)
		case one.ID != "":
			f.say(Detail, "    - %s", first)
		case one.Blocks():
			f.say(Detail, "    - %s", one.Source+" failed; see its output above")
		}
	}
	f.tellMore(Detail, more)
	flaky, more := f.firstFindings(c.Flaky)
	for _, one := range flaky {
		one.Text = "(flaky: not reproduced, does not count) " + one.Text
		f.tellFinding(one)
	}
	f.tellMore(Detail, more)
}

// SourceText says where a finding comes from.
func SourceText(f check.Finding) string {
	if f.File == "" {
		return f.Source
	}
	return f.Source + ", " + f.Place()
}

func (f *Fold) tellFinding(one check.Finding) {
	f.text(Detail, "    - "+render.Line(SourceText(one))+": ", "      ", one.Text)
}

func (f *Fold) firstFindings(all []check.Finding) (first []check.Finding, more int) {
	if len(all) <= maxListed || f.o.whole() {
		return all, 0
	}
	return all[:maxListed], check.Count(all[maxListed:])
}

func (f *Fold) tellMore(l Level, n int) {
	if n > 0 {
		f.say(l, "    … and %s: %s", render.Count(n, "more finding"), f.o.More)
	}
}

// command is a step of a loop that runs commands and has no result so far.
type command struct {
	id    journal.Identity
	since int64 // the run's active time at the start, in milliseconds
}

// longCommand is the duration from which a step gets a line even if it reports
// nothing.
const longCommand = 5 * time.Second

func (f *Fold) tellCommand(e history.Event) {
	took, name := time.Duration(0), e.Step.Name
	if c := f.command; c != nil && c.id == *e.Step {
		took = (time.Duration(e.Active-c.since) * time.Millisecond).Round(100 * time.Millisecond)
	}
	f.command = nil
	f.waitFor("")
	if took >= Shortest {
		name += fmt.Sprintf(" (%s)", took)
	}
	switch r := e.Report(f.o.Get); {
	case r.Said != "":
		f.tellReport(name+": ", r)
	case took >= longCommand:
		f.say(Detail, "  %s", name)
	}
}

func (f *Fold) tellReport(head string, t history.Report) {
	if t.Said == "" {
		return
	}
	mark := "  "
	if t.Log != "" {
		mark = "  ! "
	}
	f.text(Detail, mark+render.Line(head), "    ", t.Said)
	if t.Log == "" {
		return
	}
	f.logs[t.Log] = true
	lines := strings.Split(strings.TrimRight(t.Log, "\n"), "\n")
	if before := len(lines) - quoteLines; before > 1 && !f.o.whole() {
		f.lines = append(f.lines, Line{fmt.Sprintf("    [%s before: %s]", render.Count(before, "line"), f.o.More), Detail, true})
		lines = lines[before:]
	}
	for _, line := range lines {
		f.quote("    ", line)
	}
}

func (f *Fold) tellSnapshot(o history.Snapshot) {
	var changes []string
	for _, d := range f.deltas {
		size := ""
		if d.After.Digest != "" {
			size = ", " + render.Bytes(d.After.Size)
		}
		switch {
		case d.Op() == workspace.Removed:
			changes = append(changes, "deleted "+d.Path)
		case d.Op() == workspace.Added:
			changes = append(changes, "created "+d.Path+size)
		case d.Before.Digest == d.After.Digest && d.Before.Mode != d.After.Mode:
			changes = append(changes, "changed the mode of "+d.Path)
		default:
			changes = append(changes, "changed "+d.Path+size)
		}
	}
	f.sayFiles(Detail, changes, "    %s", "    [%s changed: %s]")
	if o.Said != "" {
		f.text(Plain, "  ! ", "    ", o.Said)
	}
}

// Verb says in one word what a question is about, if that is a change of a file.
func Verb(q history.Question) string {
	switch {
	case q.Delete:
		return "Delete"
	case !q.Before.Exists():
		return "Create"
	}
	return "Change"
}

// OutageText returns when and why a model did not reply. The text is not safe to print.
func OutageText(o history.Outage, now time.Time) string {
	when := "since " + o.Since.Local().Format("15:04")
	if !o.Until.IsZero() {
		when = fmt.Sprintf("from %s to %s", o.Since.Local().Format("15:04"), o.Until.Local().Format("15:04"))
	}
	return fmt.Sprintf("outage %s (%s, %s): %s", when, render.Duration(o.Lasted(now)), render.Count(o.Tries, "attempt"), o.Error)
}

// OutagesText returns when and why models did not reply, in one line; empty if no outage
// lasted a minute. The text is not safe to print.
func OutagesText(events []history.Event, now time.Time) string {
	all := history.Outages(events, now)
	if len(all) == 0 {
		return ""
	}
	longest := slices.MaxFunc(all, func(a, b history.Outage) int { return cmp.Compare(a.Lasted(now), b.Lasted(now)) })
	if len(all) == 1 {
		return OutageText(longest, now)
	}
	return fmt.Sprintf("%d outages; longest %s", len(all), OutageText(longest, now))
}

// AttemptText returns the state of an attempt in one line that is safe to print.
func AttemptText(a history.Attempt, c render.Colours) string {
	head := fmt.Sprintf("attempt %d: ", a.Number)
	run := render.Line(journal.ShortRun(a.Run))
	found := ""
	if a.Findings != nil {
		found = render.Count(*a.Findings, "finding")
	}
	switch {
	case a.Result != "":
		text := strings.TrimSpace(AttemptStanding(a, false).Line(c))
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
	case a.Rounds > 0 && found == "":
		return head + fmt.Sprintf("round %d", a.Rounds)
	case a.Rounds > 0:
		return head + fmt.Sprintf("round %d %s %s", a.Rounds, Failed.Mark(c), found)
	case a.Run == "": // it was stopped before
		return head + "not started"
	}
	return head + fmt.Sprintf("run %s with %s", run, render.Line(ModelName(a.Model)))
}
