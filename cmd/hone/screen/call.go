package screen

import (
	"fmt"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/tool"
)

// call is a tool call whose result is not seen yet.
type call struct {
	id      journal.Identity
	begun   history.ToolCall
	args    string // what is to be told of its arguments, as the model wrote it
	at      time.Time
	settled bool // it was said that it has no result
}

// name is the call in so many characters or a few more.
func (c call) name(most int) string {
	name := short(c.begun.Tool, 40)
	if name == "" {
		name = `""`
	}
	if c.args == "" {
		return name
	}
	return name + " " + short(c.args, most)
}

// How many characters of arguments are shown.
const (
	lineArgs    = 60
	refusedArgs = 200 // a person must know what was attempted (ruling G1)
)

// call begins a tool call. It is shown in one line, when it is over.
func (s *Screen) call(b history.ToolCall, e history.Event) {
	s.take(*e.Step, e) // begun before, by a process that was killed
	s.before = b.Manifest
	s.open = append(s.open, call{id: *e.Step, begun: b, args: telling(s.args(b)), at: e.Time})
	if s.o.Quiet {
		return
	}
	if s.session.turn < e.Step.Turn {
		s.session.turn = e.Step.Turn
		s.line("  %s, resumed", s.turnOf(b.Role, e.Step.Turn))
	}
	s.heard = false
	s.waitFor(s.running())
}

// args are a call's arguments, also those in an object.
func (s *Screen) args(c history.ToolCall) string {
	if c.Object == "" {
		return c.Args
	}
	if s.o.Get != nil {
		if args, err := c.Arguments(s.o.Get); err == nil {
			return args
		}
	}
	return "(long arguments)"
}

// take takes a call from those that are open. One whose beginning was not seen
// has no name but its number; it is a command that an earlier process began, as
// every other call is begun anew.
func (s *Screen) take(id journal.Identity, e history.Event) call {
	for i, c := range s.open {
		if c.id == id {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			return c
		}
	}
	return call{id: id, begun: history.ToolCall{Tool: fmt.Sprintf("call %d", id.Call), Command: true}, at: e.Time}
}

// running says what is under way.
func (s *Screen) running() string {
	var names []string
	for _, c := range s.open {
		if !c.settled && c.begun.Refused == "" {
			names = append(names, c.name(lineArgs))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return fmt.Sprintf("%s: %s", render.Count(len(names), "call"), strings.Join(names, " · "))
}

// called shows what came of a call. Quiet shows what was not run.
func (s *Screen) called(c call, e history.Event) {
	r, known := record[tool.Result](s, e)
	refused := c.begun.Refused != ""
	idle := refused || c.begun.Command && r.Failed && r.Exit == nil
	s.session.count(refused, r)
	if !s.o.Quiet {
		s.waitFor(s.running())
	}
	switch {
	case refused:
		s.line("    ! %s is refused: %s", c.name(refusedArgs), reason(r, refusedArgs))
	case idle:
		s.line("    ! %s failed: %s", c.name(refusedArgs), reason(r, refusedArgs))
	case s.o.Quiet:
	case !known:
		s.line("    %s: cannot read its result", c.name(lineArgs))
	default:
		s.line("    %s: %s%s", c.name(lineArgs), outcome(r), took(e.Time.Sub(c.at)))
	}
	told := refused || r.Failed && r.Exit == nil && lineCount(r.Text) == 1
	if s.o.Verbose && !s.o.Quiet && !told && !s.heard {
		s.beginning(r.Text)
	}
}

func (t *session) count(refused bool, r tool.Result) {
	t.calls++
	switch {
	case refused:
		t.refused++
	case r.Failed:
		t.failed++
	}
}

// outcome words a result in a few words.
func outcome(r tool.Result) string {
	switch {
	case r.Exit != nil && r.Failed: // such as one that took too long
		return fmt.Sprintf("failed, exit %d, %s", *r.Exit, size(r.Text))
	case r.Exit != nil:
		return fmt.Sprintf("exit %d, %s", *r.Exit, size(r.Text))
	case r.Failed:
		return "failed: " + reason(r, 2*lineArgs)
	}
	return "ok, " + size(r.Text)
}

// reason is why a call came to nothing: what the model was told of it, its
// first line.
func reason(r tool.Result, most int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(r.Text, "Error: ")), "\n")
	if first == "" {
		return "no reason given"
	}
	return short(first, most)
}

// size words how much a call printed.
func size(text string) string {
	if n := lineCount(text); n > 1 {
		return render.Count(n, "line")
	}
	return render.Bytes(int64(len(text)))
}

func lineCount(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
}

// took words a time, where it is worth it.
func took(d time.Duration) string {
	if d = d.Round(100 * time.Millisecond); d > 0 {
		return ", " + d.String()
	}
	return ""
}

// outputLines and outputWidth are how much of an output Verbose shows.
const (
	outputLines = 8
	outputWidth = 160
)

// beginning shows how an output begins.
func (s *Screen) beginning(text string) {
	text = strings.TrimRight(text, "\n")
	lines := strings.SplitN(text, "\n", outputLines+1)
	if text == "" {
		lines = nil
	}
	for _, line := range lines[:min(len(lines), outputLines)] {
		s.faint("      | " + short(strings.TrimSuffix(line, "\r"), outputWidth))
	}
	if more := lineCount(text) - outputLines; more > 0 {
		s.faint(fmt.Sprintf("      [%s: hone show last --full]", render.Count(more, "more line")))
	}
}

// faint prints a line, which is safe to print, so that it stands back.
func (s *Screen) faint(line string) {
	s.clear()
	if s.o.Colour {
		line = render.Dim(line)
	}
	fmt.Fprintln(s.out, line)
}

// above prints the name of the call whose output comes next, because its line
// comes only after that.
func (s *Screen) above() {
	if s.heard || len(s.open) == 0 {
		return
	}
	if c := s.open[len(s.open)-1]; !c.settled {
		s.line("    %s:", c.name(lineArgs))
	}
}

// closeCalls says which calls have no result: what was under way when the run, or
// its record, ended. It may come yet, when the run is gone on with.
func (s *Screen) closeCalls() {
	for i, c := range s.open {
		if !c.settled && !s.o.Quiet {
			s.line("    %s: no result recorded", c.name(lineArgs))
		}
		s.open[i].settled = true
	}
	if s.command != nil && !s.o.Quiet {
		s.line("  %s: no result recorded", s.command.id.Name)
	}
	s.command = nil
}
