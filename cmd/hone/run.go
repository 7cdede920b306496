package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"hone"
	"hone/cmd/hone/screen"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// runSettings are what every loop's start event holds beside the loop's own.
type runSettings struct {
	Model   modelSettings `json:"model"`
	Approve string        `json:"approve"`        // "ask", "none" or "all"
	Send    []string      `json:"send,omitempty"` // what is sent though it looks secret
	Walls   wallSettings  `json:"walls,omitzero"`
	Trust   trustSettings `json:"trust,omitzero"`
}

// drive runs a loop on a workspace to its end, fresh or gone on with, and
// shows it.
func (a *app) drive(ctx context.Context, o session, r *hone.Run, d driven) error {
	if o.replayed != nil {
		return a.driveAgain(ctx, o, r, d)
	}
	defer unheard()()
	if err := o.lock.Say(r.Journal.Run()); err != nil {
		return err
	}
	s := screen.New(a.err, screen.Options{Live: a.terminal && !o.output.quiet, Colour: a.colour,
		Verbose: o.output.verbose, Quiet: o.output.quiet, Get: o.home.Get, Own: r.Own, Rounds: r.Limits.Rounds, Turns: d.turns})
	defer s.Close()
	a.watch(r, s, o.output, d)
	if o.start != nil {
		if err := r.Start(*o.start); err != nil {
			return err
		}
	}
	if !o.output.quiet {
		s.Say("hone: run %s, %s with %s", r.Journal.Run(), d.loop, cmp.Or(d.with, d.settings.Model.Name))
	}
	end, err := r.Do(ctx, d.walls.round(present(o.models, d.round(s))))
	s.Close()
	err = errors.Join(err, d.walls.close())
	if d.finish != nil {
		err = errors.Join(err, d.finish(end))
	}
	a.exit = exitStatus(end.Kind)
	a.conclude(o.home, r.Journal.Run(), end, o.output)
	if d.summary != nil && err == nil {
		fmt.Fprint(a.results(o.output), d.summary(end))
	}
	return err
}

// driveAgain goes through a run once more; only a verbose one is shown.
func (a *app) driveAgain(ctx context.Context, o session, r *hone.Run, d driven) (err error) {
	r.Redact = redactor(knownKeys(a.env, append(d.secrets, d.settings.Model.whole())...))
	s := screen.New(a.err, screen.Options{Whole: true, Colour: a.colour, Get: o.home.Get, Own: r.Own, Rounds: r.Limits.Rounds, Turns: d.turns})
	defer s.Close()
	if o.output.verbose {
		r.Journal.Observe(journal.Observer{After: s.Event})
	}
	*o.replayed, err = r.Replay(ctx, d.round(io.Discard))
	return err
}

// results is where a run's results go: stdout, unless that is for its events
// alone.
func (a *app) results(o outputFlags) io.Writer {
	if o.json {
		return a.err
	}
	return a.out
}

// unheard keeps a run going whose reader went away, as in "hone task … | head":
// what it shows is lost, and the run is not. Children keep the usual way, as
// they would not if the signal was ignored.
func unheard() (undo func()) {
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	return func() { signal.Stop(gone) }
}

// driven is what drive needs to know of a loop.
type driven struct {
	loop     string
	settings runSettings
	with     string   // whom it asks, in words; empty: the settings' model
	secrets  []string // addresses that may hold a login, beside the model's
	walls    standing
	round    func(live io.Writer) hone.Round
	turns    map[string]int        // most in a session, by role; nil where there are no conversations
	finish   func(hone.End) error  // writes what the loop leaves for people; may be nil
	summary  func(hone.End) string // the loop's own last lines; may be nil
}

// standing are the walls of a loop's commands. A nil [*runWalls] is none:
// commands run with the person's rights.
type standing interface {
	// round is a round that begins with the walls standing.
	round(next hone.Round) hone.Round
	// close takes them down.
	close() error
}

// watch connects a run with the screen, the JSON feed and whoever can be
// asked.
func (a *app) watch(r *hone.Run, s *screen.Screen, output outputFlags, d driven) {
	keys := knownKeys(a.env, append(d.secrets, d.settings.Model.whole())...)
	r.Redact = redactor(keys)
	r.Journal.Observe(a.observer)
	r.Journal.Observe(journal.Observer{After: s.Event})
	if output.json {
		r.Journal.Observe(journal.Observer{After: func(e journal.Event) { fmt.Fprintf(a.out, "%s\n", feedLine(e)) }})
	}
	if output.verbose {
		g := newGate(keys, s.Text)
		r.Stream = g.pass
		r.Journal.Observe(journal.Observer{Before: func(e journal.Entry) {
			if e.Type == "commit" {
				g.flush()
			}
		}})
	}
	switch {
	case d.settings.Approve == "all":
		r.Human = hone.Always{}
		s.Say("hone: every change that would be asked about is approved, by --approve=all")
	case d.settings.Approve == "ask" && a.terminal:
		r.Human = screen.NewPerson(s, a.in)
	}
}

// conclude prints the line that says why the run stopped, and the one that
// says what to type next.
func (a *app) conclude(home *journal.Home, run string, end hone.End, o outputFlags) {
	out := a.results(o)
	for _, note := range append(end.Notes, otherTree(run, end)...) {
		fmt.Fprintf(out, "note: %s\n", render.Line(note))
	}
	cost := ""
	if end.Cost != nil && end.Tokens > 0 {
		cost = fmt.Sprintf(", $%.4f", *end.Cost)
	}
	assumed := ""
	if end.Assumed > 0 {
		assumed = fmt.Sprintf(", %s of them reserved for calls whose use no provider confirmed", render.Tokens(end.Assumed))
	}
	why, more, _ := strings.Cut(end.Why, "\n")
	fmt.Fprintf(out, "%s: %s (%s, %s tokens%s%s)\n", end.Kind, render.Line(why), screen.Count(end.Rounds, "round"), render.Tokens(end.Tokens), assumed, cost)
	if more != "" {
		fmt.Fprintf(out, "  | %s\n", strings.ReplaceAll(strings.TrimRight(render.Escape(more), "\n"), "\n", "\n  | "))
	}
	fmt.Fprintf(out, "next: %s\n", render.Escape(nextAfter(home, run, end.Next)))
}

// otherTree says how to get the tree of the best round, or of the last one
// where the best is there.
func otherTree(run string, end hone.End) []string {
	round := end.Best
	if end.Restored {
		round = end.Rounds
	}
	if end.Best == 0 {
		return nil
	}
	return []string{fmt.Sprintf("to restore the tree of round %d, run: hone undo %s --to-round %d", round, run, round)}
}

// feedLine is an event as --json prints it: its line in the journal, and in the
// end the exit status.
func feedLine(e journal.Event) []byte {
	var end hone.End
	if e.Type != "end" || e.Decode(&end) != nil {
		return e.Line()
	}
	return fmt.Appendf(nil, `%s,"exit":%d}`, bytes.TrimSuffix(e.Line(), []byte("}")), exitStatus(end.Kind))
}

// guard finds secrets for a run.
func (a *app) guard(s runSettings) *workspace.Guard {
	g := workspace.NewGuard(s.Send)
	g.Known = knownKeys(a.env, s.Model.whole())
	return g
}

// started reads a run's first event.
func started(events []journal.Event) (hone.Start, error) {
	var s hone.Start
	if len(events) == 0 || events[0].Type != "start" {
		return s, fmt.Errorf("nothing of it is on record: it ended as it began, and can only be started anew")
	}
	return s, events[0].Decode(&s)
}

// startOf makes a run's first event.
func startOf(loop, root string, m modelSettings, l hone.Limits, settings any) (*hone.Start, error) {
	b, err := json.Marshal(settings)
	return &hone.Start{Version: version(), Loop: loop, Dir: root, Model: m.Name, Limits: l, Settings: b}, err
}

// defaults of a run's budget.
const (
	defaultTokens = 5_000_000
	defaultTime   = 4 * time.Hour
)
