package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/story"
)

// Transcript shows a recorded run event by event.
type Transcript struct {
	Out     io.Writer
	Screen  *screen.Screen // on Out; it shows what it would show of a run that works
	Colour  render.Colours
	Columns int // of the terminal; 0 if Out is none

	Round int  // the only one that is shown; 0 means all
	Text  bool // also the model's text
	Full  bool // also complete requests, replies, calls and results
	Brief bool // without the hash of the journal

	shown int // events
}

// Show shows the events of a run that the last call did not show.
func (t *Transcript) Show(r *Run) (err error) {
	round := 0
	for i, e := range r.Past.Events() {
		if e.Step != nil {
			round = e.Step.Round
		}
		if i < t.shown || t.Round != 0 && roundOf(e, round) != t.Round {
			continue
		}
		if _, ok := e.Payload.(history.Replied); ok && t.Text {
			parts, err := story.EventParts(r.Past, e, r.Home.Get)
			if err != nil {
				return err
			}
			for _, p := range parts {
				t.Screen.Text(p.Text)
			}
		}
		t.Screen.Show(e)
		t.Screen.Around(func() { err = t.showDetails(r, e) })
		if err != nil {
			return err
		}
	}
	t.shown = len(r.Past.Events())
	return nil
}

// An event about an attempt at a call, or about a server, names no round. It belongs to the open round.
func roundOf(e history.Event, open int) int {
	switch e.Payload.(type) {
	case history.Commit, history.Retried, history.Served:
		return open
	}
	return e.Round()
}

// The screen of a running loop omits these.
func (t *Transcript) showDetails(r *Run, e history.Event) error {
	switch p := e.Payload.(type) {
	case history.Resumed:
		fmt.Fprintf(t.Out, "resumed at %s\n", e.Time.Local().Format("2006-01-02 15:04:05"))
	case history.End:
		a := Account{Run: r, End: p, Ended: true, earlier: e.Seq < r.Past.Last().Seq, foreign: r.Foreign(), Standing: story.Standing{Mark: story.MarkOf(p.Kind)}, Numbers: story.Numbers{Rounds: p.Rounds, Tokens: p.Tokens - p.Assumed,
			Unconfirmed: p.Assumed, Cost: p.Cost, Active: (time.Duration(e.Active) * time.Millisecond).Round(100 * time.Millisecond)}}
		a.Print(t.Out, t.Colour, t.Columns)
		if !t.Brief {
			fmt.Fprintf(t.Out, "hash of the journal: %s\n", e.Hash())
		}
	default:
		if t.Full {
			return t.showFull(r, e)
		}
	}
	return nil
}

func (t *Transcript) showFull(r *Run, e history.Event) (err error) {
	var parts []story.Part
	switch p := e.Payload.(type) {
	case history.Asked:
		parts, err = story.RequestParts(p.Request, true, r.Home.Get)
	case history.Replied:
		parts, err = story.WholeReply(p, r.Home.Get)
	default:
		parts, err = story.EventParts(r.Past, e, r.Home.Get)
	}
	for _, p := range parts {
		fmt.Fprintf(t.Out, "---- %s ----\n", render.Line(p.Name))
		if p.Text != "" {
			fmt.Fprintln(t.Out, strings.TrimRight(render.Escape(p.Text), "\n"))
		}
	}
	return err
}
