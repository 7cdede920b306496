package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hone/history"
	"hone/internal/lazyregexp"
	"hone/internal/render"
	"hone/journal"
	"hone/tool"
)

// call is a tool call without a result so far.
type call struct {
	id       journal.Identity
	start    history.ToolCall
	args     string // the arguments to show, as the model wrote them
	at       time.Time
	reported bool // the missing result was reported
}

// name returns the tool and its arguments, which it shortens to limit
// characters.
func (c call) name(limit int) string {
	name := short(c.start.Tool, 40)
	if name == "" {
		name = `""`
	}
	if c.args == "" {
		return name
	}
	return name + " " + short(c.args, limit)
}

// The number of characters of arguments that are shown.
const (
	lineArgs    = 60
	refusedArgs = 200 // the user must know what was attempted (ruling G1)
)

// showCall records the start of a tool call. [Screen.showResult] shows the call
// in one line when it has ended.
func (s *Screen) showCall(b history.ToolCall, e history.Event) {
	s.takeCall(*e.Step, e) // an earlier process started it and was killed
	s.open = append(s.open, call{id: *e.Step, start: b, args: mainArgs(s.args(b)), at: e.Time})
	if s.o.Quiet {
		return
	}
	if s.session.turn < e.Step.Turn {
		s.session.turn = e.Step.Turn
		s.detail("  %s, resumed", s.turnName(b.Role, e.Step.Turn))
	}
	s.outputShown = false
	s.waitFor(s.openCalls())
}

// args returns the arguments of a call, also if they are in an object.
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

// takeCall removes a call from the open ones and returns it. If the screen did
// not see the start of the call, its name is its number: it is a command that an
// earlier process started. Every other call is started again.
func (s *Screen) takeCall(id journal.Identity, e history.Event) call {
	for i, c := range s.open {
		if c.id == id {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			return c
		}
	}
	return call{id: id, start: history.ToolCall{Tool: fmt.Sprintf("call %d", id.Call), Command: true}, at: e.Time}
}

// openCalls returns the names of the calls that are running; empty if there are
// none.
func (s *Screen) openCalls() string {
	var names []string
	for _, c := range s.open {
		if !c.reported && c.start.Refused == "" {
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

// showResult shows the result of a call. Quiet shows only calls that did not
// run.
func (s *Screen) showResult(c call, e history.Event) {
	r, err := history.ReadResult[tool.Result](e.Event, s.o.Get)
	refused := c.start.Refused != ""
	notRun := refused || c.start.Command && r.Failed && r.Exit == nil
	s.session.count(refused, r)
	if !s.o.Quiet {
		s.waitFor(s.openCalls())
	}
	switch {
	case refused:
		s.line("    ! %s is refused: %s", c.name(refusedArgs), reason(r, refusedArgs))
	case notRun:
		s.line("    ! %s failed: %s", c.name(refusedArgs), reason(r, refusedArgs))
	case s.o.Quiet:
	case err != nil:
		s.detail("    %s: cannot read its result", c.name(lineArgs))
	default:
		s.detail("    %s: %s%s", c.name(lineArgs), outcome(r), durationText(e.Time.Sub(c.at)))
	}
	shown := refused || r.Failed && r.Exit == nil && lineCount(r.Text) == 1
	if s.o.Verbose && !s.o.Quiet && !shown && !s.outputShown {
		s.showStart(r.Text)
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

// outcome returns a result in a few words.
func outcome(r tool.Result) string {
	switch {
	case r.Exit != nil && r.Failed: // for example a timeout
		return fmt.Sprintf("failed, exit %d, %s", *r.Exit, size(r.Text))
	case r.Exit != nil:
		return fmt.Sprintf("exit %d, %s", *r.Exit, size(r.Text))
	case r.Failed:
		return "failed: " + reason(r, 2*lineArgs)
	}
	return "ok, " + size(r.Text)
}

// reason returns why a call failed: the first line of the result that was sent
// to the model, shortened to limit characters.
func reason(r tool.Result, limit int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(r.Text, "Error: ")), "\n")
	if first == "" {
		return "no reason given"
	}
	return short(first, limit)
}

// readLines are the lines of a file in a result of read, as its head names them.
var readLines = lazyregexp.New(`^# path: .*\n(?:# .*\n)*?# lines: (\d{1,9})-(\d{1,9}) of \d+\n`)

// size returns how much a call printed, in lines or bytes.
func size(text string) string {
	if m := readLines.FindStringSubmatch(text); m != nil {
		first, _ := strconv.Atoi(m[1])
		last, _ := strconv.Atoi(m[2])
		return render.Count(last-first+1, "line")
	}
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

// Shortest is the shortest time of a call or a step that is shown. The scripts of cmd/hone show
// every time: one that would fail on a slow machine then fails on each.
var Shortest = 50 * time.Millisecond

// durationText returns a duration with a leading comma; empty if it is short.
func durationText(d time.Duration) string {
	if d >= Shortest {
		return ", " + render.Duration(d)
	}
	return ""
}

// outputLines and outputWidth limit the output that Verbose shows.
const (
	outputLines = 8
	outputWidth = 160
)

// showStart shows the first lines of an output.
func (s *Screen) showStart(text string) {
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

// faint prints a detail dimmed, if there is color. The line must already be safe
// to print.
func (s *Screen) faint(line string) {
	if s.o.folds() {
		s.detail("%s", line)
		return
	}
	s.endLine()
	s.text.WriteString(s.o.Colour.Dim(line) + "\n")
}

// showCallName prints the name of a call above its output, because the line of
// the call comes only after its output.
func (s *Screen) showCallName() {
	if s.outputShown || len(s.open) == 0 {
		return
	}
	if c := s.open[len(s.open)-1]; !c.reported {
		s.line("    %s:", c.name(lineArgs))
	}
}

// reportOpenCalls prints which calls have no result, because the run or its
// journal ended first. The result may still come when the run is resumed.
func (s *Screen) reportOpenCalls() {
	for i, c := range s.open {
		if !c.reported && !s.o.Quiet {
			s.line("    %s: no result recorded", c.name(lineArgs))
		}
		s.open[i].reported = true
	}
	if s.command != nil && !s.o.Quiet {
		s.line("  %s: no result recorded", s.command.id.Name)
	}
	s.command = nil
}
