package page

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/story"
)

// Page is what the page of a run says.
type Page struct {
	report.Account
	Version   string // of the program
	Why       string // below the result; may be empty
	Up        Link   // the page that this one belongs to; zero if there is none
	Attempts  []Attempt
	Contracts *Grid            // by round; nil if the run is no phase
	All       []Round          // of the run, with what came before the first
	Uses      []story.Spending // after each call of a model
}

// Round is one round, or what came before the first, as its page shows it.
type Round struct {
	story.Round
	Last   bool // no later round has findings
	Open   bool // its details are shown
	Files  string
	Diff   string // unified
	NoDiff []string
	Calls  []Call // of models
	Log    string // what the checks and builds printed, as far as the run keeps it
	Events []Entry
}

// Blocking returns the findings that the round left, each with where it comes from.
func (r Round) Blocking() (all []story.Part) {
	for _, f := range check.BlockingOf(r.Findings) {
		all = append(all, story.Part{Name: story.SourceText(f), Text: f.Text})
	}
	return all
}

// Entry is something that happened. Its first line is shown, the rest can be opened.
type Entry struct {
	Line, Rest string
	Parts      []story.Part // such as the arguments of a call, and its result
}

// maxRounds is of how many rounds a page has the details. Browsers are slow with thousands of
// diffs.
const maxRounds = 30

// Detailed returns the rounds of which the page has the details: the last ones. It lists the
// others.
func (p Page) Detailed() []Round { return p.All[max(0, len(p.All)-maxRounds):] }

// Here reports whether the page has the details of a round.
func (p Page) Here(r Round) bool { return r.Number >= p.Detailed()[0].Number }

// Rest says where the details of the other rounds are; empty if there are none.
func (p Page) Rest() string {
	if len(p.All) <= maxRounds {
		return ""
	}
	return fmt.Sprintf("Here are the details of the last %d rounds. To see an earlier round, type hone show %s --round N where the run was recorded; add --diff for its changes.", maxRounds, journal.ShortRun(p.ID))
}

// Title returns the title of the browser's window.
func (p Page) Title() string {
	return fmt.Sprintf("%s %s %s: %s", p.Standing.Mark, p.Standing.Text, p.Start.Loop, journal.ShortRun(p.ID))
}

// Subject returns what the run is about.
func (p Page) Subject() string { return kinds.Subject(p.Loop) }

// Meter is how much a run has used of something.
type Meter struct {
	Name, Text string
	Limit      string  // the limit in words; empty if there is none
	Share      float64 // of the limit, from 0 to 1; 0 if there is none
}

// Meters returns what the run has used of its limits. What is reserved counts as used.
func (p Page) Meters() []Meter {
	n, limits := p.Numbers, p.Past.Facts().Limits
	meter := func(name, text string, used, limit float64, words string) Meter {
		if limit <= 0 {
			return Meter{Name: name, Text: text}
		}
		return Meter{name, text, words, min(1, used/limit)}
	}
	rounds := limits.MaxRounds() * max(1, len(p.Past.Attempts()))
	cost := 0.0
	if n.Cost != nil {
		cost = *n.Cost
	}
	return []Meter{
		meter("rounds", fmt.Sprint(n.Rounds), float64(n.Rounds), float64(rounds), fmt.Sprint(rounds)),
		meter("tokens", n.TokensText(), float64(n.Tokens+n.Unconfirmed), float64(limits.Tokens), render.Short(limits.Tokens)),
		meter("cost", strings.TrimPrefix(render.Cost(n.Cost, n.Unconfirmed > 0), "cost "), cost, limits.Cost, render.Cost(&limits.Cost, false)),
		meter("time", render.Duration(n.Active), float64(n.Active), float64(limits.Time), render.Duration(limits.Time)),
	}
}

// Facts returns what is known about the run: its models, and when it began.
func (p Page) Facts() []story.Part {
	facts := []story.Part{
		{Name: "run", Text: p.ID},
		{Name: "model", Text: strings.Join(kinds.ModelNames(p.Loop, p.Start), " · ")},
		{Name: "directory", Text: p.Start.Dir},
		{Name: "started", Text: p.Past.First().Time.Local().Format("2006-01-02 15:04:05 MST")},
		{Name: "time", Text: render.Duration(p.Numbers.Active)},
		{Name: "used", Text: strings.Join(p.Numbers.Parts(render.Tokens), ", ")},
		{Name: "journal", Text: "intact, " + p.Hash()},
	}
	return slices.DeleteFunc(facts, func(f story.Part) bool { return f.Text == "" })
}

// Maker makes the page of a run, repeatedly while the run works. It reads each event once, and
// finds out once what a finished round changed.
type Maker struct {
	Own   func(path string) bool // reports which files the run's loop writes
	Clean func(string) string    // removes secrets from a text; nil removes nothing

	fold    *story.Fold
	get     history.Get              // of the home that is open now
	calls   map[int][]Call           // by round
	at      map[journal.Identity]int // of the calls in their rounds
	entries map[int][]Entry          // by round
	logs    map[int]string           // what its checks and builds said, by round
	read    int                      // events
	round   int                      // of the last one
	diffs   map[int]roundDiff
}

type roundDiff struct {
	made    string // of which state of the round
	diff    string
	omitted []string
	files   string // that it changed, as far as the diff tells
}

// Page returns the page of the run.
func (m *Maker) Page(ctx context.Context, a report.Account) (Page, error) {
	p := Page{Account: a}
	switch {
	case a.Working:
	case !a.Ended:
		p.Why = "the process of the run ended without a result"
	case a.End.Why != string(a.End.Kind):
		p.Why = a.End.Why
	}
	if err := m.follow(a); err != nil {
		return p, err
	}
	var err error
	if p.Contracts, err = contractsOf(a); err != nil {
		return p, err
	}
	rounds := m.fold.Rounds(a.Working)
	if events, ok := m.entries[0]; ok && (len(rounds) == 0 || rounds[0].Number > 0) {
		p.All = append(p.All, Round{Open: true, Calls: m.calls[0], Log: m.logs[0], Events: events}) // its own parts are folded
	}
	last := -1
	for _, r := range rounds {
		if r.Left() > 0 {
			last = len(p.All)
		}
		p.All = append(p.All, Round{Round: r, Files: r.FilesText(80), Calls: m.calls[r.Number], Log: m.logs[r.Number], Events: m.entries[r.Number]})
	}
	if last >= 0 {
		p.All[last].Last = true
	}
	p.Uses = m.fold.Uses
	for i := len(p.All) - 1; i >= 0; i-- { // the last round that is decided, and what follows
		if p.All[i].Open = true; p.All[i].Decided() {
			break
		}
	}
	return p, m.addDiffs(ctx, p)
}

// It reads the events since the last call. An event that names no round belongs to the one that is open.
func (m *Maker) follow(a report.Account) error {
	m.get = a.Home.Get
	if m.fold == nil {
		m.calls, m.at, m.entries, m.logs, m.diffs = map[int][]Call{}, map[journal.Identity]int{}, map[int][]Entry{}, map[int]string{}, map[int]roundDiff{}
		m.fold = story.New(story.Options{Whole: true, Get: func(object string) ([]byte, error) { return m.get(object) }, Own: m.Own, Rounds: a.Past.Facts().Limits.Rounds, Notice: failure.NoticeText})
	}
	for _, e := range a.Past.Events()[m.read:] {
		if e.Step != nil {
			m.round = e.Step.Round
		}
		if err := m.addCall(e); err != nil {
			return err
		}
		lines := m.fold.Add(e)
		parts, err := story.EventParts(a.Past, e, m.get)
		if err != nil {
			return err
		}
		if log := logOf(e, lines, parts, m.get); log != "" {
			m.logs[m.round] += log
			lines, parts = lines[:1], nil
		}
		m.addEntry(lines, parts)
		m.read++
	}
	if !a.Working {
		for _, line := range m.fold.Close() { // the calls without a result
			m.addEntry([]story.Line{line}, nil)
		}
	}
	return nil
}

// logOf returns what a check or a build printed, or, of a check without an output, its findings; empty for another event.
func logOf(e history.Event, lines []story.Line, parts []story.Part, get history.Get) string {
	var b strings.Builder
	switch e.Payload.(type) {
	case history.Checked:
		if len(parts) > 0 {
			b.WriteString(strings.TrimSpace(lines[0].Text) + "\n" + strings.TrimRight(parts[0].Text, "\n") + "\n")
			break
		}
		if len(lines) == 1 { // that it passed, which is an event
			break
		}
		for _, l := range lines {
			b.WriteString(strings.TrimPrefix(l.Text, "  ") + "\n")
		}
	case history.CommandResult, history.StepResult:
		if r := e.Report(get); r.Log != "" && len(lines) > 0 {
			b.WriteString(strings.TrimSpace(lines[0].Text) + "\n" + strings.TrimRight(r.Log, "\n") + "\n")
		}
	}
	return b.String()
}

func (m *Maker) addEntry(lines []story.Line, parts []story.Part) {
	if len(lines) == 0 {
		return
	}
	var rest []string
	for _, l := range lines[1:] {
		rest = append(rest, l.Text)
	}
	m.entries[m.round] = append(m.entries[m.round], Entry{strings.TrimSpace(lines[0].Text), strings.Join(rest, "\n"), parts})
}

// Waits returns which model the run waits for; zero if it waits for none.
func (m *Maker) Waits() Wait {
	if m.fold == nil || m.fold.Now.Model == "" {
		return Wait{}
	}
	return Wait{Model: m.fold.Now.Model, Role: m.fold.Now.Role, Since: m.fold.Now.Since.Local().Format(time.TimeOnly)}
}

func (m *Maker) addDiffs(ctx context.Context, p Page) error {
	for i := range p.Detailed() {
		one := &p.Detailed()[i]
		if one.Number == 0 {
			continue
		}
		made := fmt.Sprint(one.Outcome, one.Took, one.Tokens, one.Unconfirmed, one.Changes())
		d, ok := m.diffs[one.Number]
		if !ok || d.made != made {
			deltas, err := p.Past.Changes(one.Number, p.Home.Get)
			if err != nil {
				return err
			}
			diff, omitted, err := report.Patch(ctx, p.Home, deltas, m.Own, false)
			if err != nil {
				return err
			}
			d = roundDiff{made: made, diff: string(diff), omitted: omitted}
			switch len(deltas) {
			case 0:
			case 1: // for a file that hone restored, the fold has no line counts
				d.files = render.Line(deltas[0].Path)
			default:
				d.files = render.Count(len(deltas), "file")
			}
			m.diffs[one.Number] = d
		}
		if one.Diff, one.NoDiff = d.diff, d.omitted; one.Files == "" {
			one.Files = d.files
		}
	}
	return nil
}

// Call is a call of a model, or the session of an agent.
type Call struct {
	Seq         int64 // of the event that begins it
	Name, Model string
	Replied     bool
	Used        *model.Usage // nil if the provider did not report it
	Texts       []story.Part // what was sent
}

// totalUse returns what these calls used together; nil if no provider reported it.
func totalUse(calls []Call) (sum *model.Usage) {
	for _, c := range calls {
		if u := c.Used; u != nil {
			if sum == nil {
				sum = &model.Usage{}
			}
			sum.Input, sum.CacheRead, sum.CacheWrite, sum.Output = sum.Input+u.Input, sum.CacheRead+u.CacheRead, sum.CacheWrite+u.CacheWrite, sum.Output+u.Output
		}
	}
	return sum
}

// mostAsked is how many bytes of a request a page shows. The middle of a longer one is left out.
const mostAsked = 32 << 10

func (m *Maker) addCall(e history.Event) error {
	switch p := e.Payload.(type) {
	case history.Asked:
		one := Call{Seq: e.Seq, Name: cmp.Or(p.Role, "model"), Model: story.ModelName(p.Model)}
		if e.Step.Turn > 0 {
			one.Name += fmt.Sprintf(", turn %d", e.Step.Turn)
		}
		var err error
		if one.Texts, err = story.RequestParts(p.Request, false, m.get); err != nil {
			return err
		}
		room := mostAsked
		for i := range one.Texts {
			if m.Clean != nil { // before a cut can split a secret
				one.Texts[i].Text = m.Clean(one.Texts[i].Text)
			}
			one.Texts[i].Text = excerpt.Middle(one.Texts[i].Text, max(room, mostAsked/8))
			room -= len(one.Texts[i].Text)
		}
		m.at[*e.Step] = len(m.calls[e.Step.Round])
		m.calls[e.Step.Round] = append(m.calls[e.Step.Round], one)
	case history.Replied:
		if i, ok := m.at[*e.Step]; ok {
			call := &m.calls[e.Step.Round][i]
			call.Replied, call.Used = true, p.Usage
		}
	}
	return nil
}

// Wall is the wall around the commands of a process that worked on a run.
type Wall struct {
	history.Walls
	Since time.Time
}

// WallsOf returns the walls of the processes that worked on a run, the last first. Successive
// processes with equal walls have one entry.
func (p Page) WallsOf() (all []Wall) {
	for e, w := range history.Of[history.Walls](p.Past.Events()) {
		if len(all) == 0 || !reflect.DeepEqual(w, all[len(all)-1].Walls) {
			all = append(all, Wall{w, e.Time})
		}
	}
	slices.Reverse(all)
	return all
}

// meanings are those of grades and of states of the network.
var meanings = map[string]string{
	"hidden":  ": a command does not see what it may not use",
	"guarded": ": a command cannot open what it may not use, but may see that it exists",
	"open":    ": a command can do what you can do",
	"off":     ": commands have no network",
	"doors":   ": commands reach only the addresses that their role needs",
	"on":      ": commands reach every address",
}
