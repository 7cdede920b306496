// Package story says what a run looks like. [Fold] follows the events of a run: its rounds,
// every event in words, and what the run waits for. [Numbers] are its figures, and [Standing]
// is how it ended. A terminal, a page and JSON print these, and compute no figure of their own
// (ruling G25).
//
// Lines are safe to print. Every other text is as it was recorded.
package story

import (
	"fmt"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
)

// Options select what a fold knows and says.
type Options struct {
	// Get reads an object of the run. If it is nil, texts that are objects are not shown,
	// changes by commands are not known, and no lines of files are counted.
	Get history.Get
	// Own reports whether the loop itself writes a file for the user; such a file is not
	// shown. Nil means that there are none.
	Own func(path string) bool
	// Notice words a notice; nil takes its text, without what the user can do.
	Notice func(history.Notice) string
	// Silent words no event: only the rounds are followed.
	Silent bool
	// Whole shows complete findings and lists. Verbose also shows the start of results.
	Whole, Verbose bool
	// More and Full say what to type to see what Whole shows, and everything.
	More, Full string
	// Rounds is the maximum number of rounds; Turns that of turns in a session, by role. A
	// maximum of 0 is not shown.
	Rounds int
	Turns  map[string]int
	Check  string // the command of the check; empty if it has none
	// Asking means that a check may ask the user at the terminal, where nothing may be drawn
	// meanwhile.
	Asking bool
}

func (o Options) whole() bool { return o.Whole || o.Verbose }

// Line is what an event says in one line that is safe to print.
type Line struct {
	Text  string
	Level Level
	Dim   bool // it quotes an output
}

// Level says where a line is shown.
type Level int

// The levels.
const (
	Plain  Level = iota // unless only what matters is shown
	Detail              // as Plain; it folds with its round
	Unfold              // as Plain; not where rounds fold
	Always              // even if only what matters is shown
	Live                // as Always; not where rounds fold, because live lines say the same
)

// Fold follows a run as its events arrive. Use [New].
type Fold struct {
	o Options
	rounds
	Now   Activity
	Spent Spending
	Best  string     // what a run with a number as its judge has gained; empty for other runs
	Uses  []Spending // after each call of a model
	// Shown means that the output of the running check or call was printed as it came, so
	// that it is not to be quoted. Whoever prints it sets this; the next begin resets it.
	Shown bool

	edited  bool // the running call has changed a file
	lines   []Line
	outage  history.Outage
	session session
	open    []call          // tool calls without a result, in the order of their start
	command *command        // the loop's own command that is running; nil if there is none
	logs    map[string]bool // shown in this round
	asked   time.Time       // the time of the last request
	event   history.Event   // the one that is folded
}

// New returns a fold of a run before its first event.
func New(o Options) *Fold {
	f := &Fold{o: o, logs: map[string]bool{}}
	f.rounds.o, f.reserved = o, map[int64]history.Reserve{}
	return f
}

// Activity is what a run waits for; the zero value is nothing.
type Activity struct {
	N           int    // how many activities there were before
	What        string // safe to print; empty means nothing
	Since       time.Time
	Model, Role string         // of the reply that it waits for; empty if it waits for none
	Try         string         // which attempt it is, if it is not the first
	Until       time.Time      // when that attempt is made
	Outage      history.Outage // the attempts before it
	Asking      bool           // the terminal belongs to a question
}

// An empty text means nothing.
func (f *Fold) waitFor(what string) {
	f.Now = Activity{N: f.Now.N + 1, What: render.Line(what), Since: f.event.Time}
}

// Spending is what a run has used so far.
type Spending struct {
	Known  bool // some event said so
	Use    history.Usage
	Active time.Duration // until the last event
	At     time.Time     // of that event
}

// Tokens returns the tokens that providers reported, and those that are reserved.
func (s Spending) Tokens() (confirmed, reserved int64) {
	confirmed = min(s.Use.Tokens, s.Use.Known.Total())
	return confirmed, s.Use.Tokens - confirmed
}

// Add adds the next event of the run, and returns it in words. An event that cannot be read,
// because another version of hone wrote it, has none.
func (f *Fold) Add(e history.Event) []Line {
	f.lines, f.event = nil, e
	if u, ok := e.Payload.(history.Usage); ok {
		f.Spent.Known, f.Spent.Use = true, u
	}
	f.Spent.Active, f.Spent.At = time.Duration(e.Active)*time.Millisecond, e.Time
	if _, ok := e.Payload.(history.Usage); ok {
		f.Uses = append(f.Uses, f.Spent)
	}
	if f.o.Silent {
		f.rounds.add(e)
		return nil
	}
	if _, decided := e.Payload.(history.State); decided {
		f.session = session{}
	} else if s := e.Step; s != nil && s.Session >= 0 && (s.Round != f.session.round || s.Session != f.session.number) { // a resume asks again in a negative one
		f.session = session{round: s.Round, number: s.Session}
	}
	before := f.round.Number
	if f.rounds.add(e); f.round.Number > before {
		f.say(Unfold, "round %d of %d", f.round.Number, max(f.o.Rounds, f.round.Number))
	}
	f.tell(e)
	return f.lines
}

// Close ends the story: it says which calls have no result.
func (f *Fold) Close() []Line {
	f.lines = nil
	f.waitFor("")
	f.reportOpenCalls()
	return f.lines
}

// Control characters of the arguments are escaped.
func (f *Fold) say(l Level, format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = render.Line(text)
		}
	}
	f.lines = append(f.lines, Line{fmt.Sprintf(format, args...), l, false})
}

func (f *Fold) quote(indent, line string) {
	f.lines = append(f.lines, Line{indent + "| " + Short(strings.TrimSuffix(line, "\r"), quoteWidth), Detail, true})
}

// The number of lines of an output that are quoted, and their length in characters.
const (
	quoteLines = 8
	quoteWidth = 160
)

// The number of lines of a text that are shown by default: its first lines, which say
// what failed, and its end, which says why.
const (
	headLines = 3
	tailLines = 8
)

func (f *Fold) text(l Level, head, indent, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	omitted := len(lines) - headLines - tailLines
	if omitted <= 1 || f.o.whole() {
		omitted = 0
	}
	for i, line := range lines {
		switch {
		case i == 0:
			f.say(l, "%s%s", head, line)
		case omitted > 0 && i == headLines:
			f.say(l, "%s[%d lines omitted: %s]", indent, omitted, f.o.More)
		case i < headLines || i >= headLines+omitted:
			f.say(l, "%s%s", indent, line)
		}
	}
}

// maxListed is the number of files or findings in one list, unless everything is shown.
const maxListed = 12

// each says one of the texts, and rest how many more there are, and how to see them.
func (f *Fold) sayFiles(l Level, all []string, each, rest string) {
	first := all
	if len(all) > maxListed+1 && !f.o.whole() {
		first = all[:maxListed]
	}
	for _, text := range first {
		f.say(l, each, text)
	}
	if more := len(all) - len(first); more > 0 {
		f.say(l, rest, render.Count(more, "more file"), f.o.More)
	}
}
