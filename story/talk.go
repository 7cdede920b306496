package story

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/history"
	"hone/internal/lazyregexp"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/tool"
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

// call is a tool call without a result so far.
type call struct {
	id       journal.Identity
	start    history.ToolCall
	args     string // the arguments to show, as the model wrote them
	at       time.Time
	reported bool // the missing result was reported
}

// Arguments are shortened to limit characters.
func (c call) name(limit int) string {
	name := Short(c.start.Tool, 40)
	if name == "" {
		name = `""`
	}
	if c.args == "" {
		return name
	}
	return name + " " + Short(c.args, limit)
}

// The number of characters of arguments that are shown.
const (
	lineArgs    = 60
	refusedArgs = 200 // the user must know what was attempted (ruling G1)
)

// [Fold.tellResult] says what became of the call in one line.
func (f *Fold) tellCall(b history.ToolCall, e history.Event) {
	f.takeCall(*e.Step, e) // an earlier process started it and was killed
	args := b.Args
	if b.Object != "" {
		args = "(long arguments)"
		if f.o.Get != nil {
			if long, err := b.Arguments(f.o.Get); err == nil {
				args = long
			}
		}
	}
	f.open = append(f.open, call{id: *e.Step, start: b, args: mainArgs(args), at: e.Time})
	if f.session.turn < e.Step.Turn {
		f.session.turn = e.Step.Turn
		f.say(Detail, "  %s, resumed", f.turnName(b.Role, e.Step.Turn))
	}
	f.Shown, f.edited = false, false
	f.waitFor(f.openCalls())
}

// If the call's start was not seen, its name is its number: it is a command that an earlier process started. Every other call
// is started again.
func (f *Fold) takeCall(id journal.Identity, e history.Event) call {
	for i, c := range f.open {
		if c.id == id {
			f.open = append(f.open[:i:i], f.open[i+1:]...)
			return c
		}
	}
	return call{id: id, start: history.ToolCall{Tool: fmt.Sprintf("call %d", id.Call), Command: true}, at: e.Time}
}

func (f *Fold) openCalls() string {
	var names []string
	for _, c := range f.open {
		if !c.reported && c.start.Refused == "" {
			names = append(names, c.name(lineArgs))
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return fmt.Sprintf("%s: %s", render.Count(len(names), "call"), strings.Join(names, " · "))
}

// RunningCall returns the name of the call whose output arrives; empty if there is none.
func (f *Fold) RunningCall() string {
	if len(f.open) == 0 || f.open[len(f.open)-1].reported {
		return ""
	}
	return f.open[len(f.open)-1].name(lineArgs)
}

func (f *Fold) tellResult(c call, e history.Event) {
	r, err := history.ReadResult[tool.Result](e.Event, f.o.Get)
	refused := c.start.Refused != "" || c.start.Command && r.Refused
	f.waitFor(f.openCalls())
	switch {
	case refused:
		f.say(Always, "    ! %s is refused: %s", c.name(refusedArgs), reason(r, refusedArgs))
	case c.start.Command && r.Failed && r.Exit == nil:
		f.say(Always, "    ! %s failed: %s", c.name(refusedArgs), reason(r, refusedArgs))
	case err != nil:
		f.say(Detail, "    %s: cannot read its result", c.name(lineArgs))
	default:
		took := ""
		if d := e.Time.Sub(c.at); d >= Shortest {
			took = ", " + render.Duration(d)
		}
		what := outcome(r)
		if f.edited && !r.Failed {
			what = "ok" // the line above says what it did
		}
		f.say(Detail, "    %s: %s%s", c.name(lineArgs), what, took)
	}
	if f.o.Verbose && !f.Shown && r.Text != "" && !refused && !(r.Failed && r.Exit == nil && lineCount(r.Text) == 1) {
		lines := strings.Split(strings.TrimRight(r.Text, "\n"), "\n")
		for _, line := range lines[:min(len(lines), quoteLines)] {
			f.quote("      ", line)
		}
		if more := len(lines) - quoteLines; more > 0 {
			f.lines = append(f.lines, Line{fmt.Sprintf("      [%s: %s]", render.Count(more, "more line"), f.o.Full), Detail, true})
		}
	}
}

func outcome(r tool.Result) string {
	switch {
	case r.Exit != nil && r.Failed: // for example a timeout
		return fmt.Sprintf("failed, exit %d, %s", *r.Exit, size(r.Text))
	case r.Exit != nil:
		return fmt.Sprintf("exit %d, %s", *r.Exit, size(r.Text))
	case r.Refused:
		return "refused: " + reason(r, 2*lineArgs)
	case r.Failed:
		return "failed: " + reason(r, 2*lineArgs)
	}
	return "ok, " + size(r.Text)
}

// It is the first line of the result that was sent to the model, shortened to limit characters.
func reason(r tool.Result, limit int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(r.Text, "Error: ")), "\n")
	if first == "" {
		return "no reason given"
	}
	return Short(first, limit)
}

// readLines are the lines of a file in a result of read, as its head names them.
var readLines = lazyregexp.New(`^# path: .*\n(?:# .*\n)*?# lines: (\d{1,9})-(\d{1,9}) of \d+\n`)

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

// The run or its journal ended first. The result may still come when the run is resumed.
func (f *Fold) reportOpenCalls() {
	for i, c := range f.open {
		if !c.reported {
			f.say(Plain, "    %s: no result recorded", c.name(lineArgs))
		}
		f.open[i].reported = true
	}
	if f.command != nil {
		f.say(Plain, "  %s: no result recorded", f.command.id.Name)
	}
	f.command = nil
}

// Short returns a text on one line, safe to print, and shortened in the middle
// to limit characters. Its cost does not depend on the length of the text.
func Short(text string, limit int) string {
	if len(text) > 8*limit {
		// Each half contains at least limit characters. A character that is
		// split at the seam is omitted below.
		text = text[:4*limit] + text[len(text)-4*limit:]
	}
	runes := []rune(strings.ReplaceAll(render.Line(text), "\t", "    "))
	if len(runes) <= limit {
		return string(runes)
	}
	tail := limit / 3
	return string(runes[:limit-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

// They are the command, the pattern with its path, or the path; all arguments if a tool has none of these. Numbers follow,
// because they distinguish the calls that read a file piece by piece.
func mainArgs(args string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &fields) != nil {
		return args
	}
	var words, numbers []string
	for _, key := range []string{"command", "pattern", "path", "query", "url"} {
		var s string
		if json.Unmarshal(fields[key], &s) == nil && s != "" {
			words = append(words, s)
		}
	}
	if len(words) == 0 && len(fields) > 0 {
		return args
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		var n json.Number
		if b := fields[key]; b[0] != '"' && json.Unmarshal(b, &n) == nil && n != "" {
			numbers = append(numbers, fmt.Sprintf(", %s %s", key, n))
		}
	}
	return strings.Join(words, " in ") + strings.Join(numbers, "")
}
