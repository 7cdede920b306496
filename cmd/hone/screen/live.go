package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hone/internal/render"
	"hone/story"
)

// arriving is what has come from a model or a command since the run began to wait for it.
type arriving struct {
	n        int    // of the activity
	output   string // the last line of a command's output
	received int64  // bytes of a model's reply
	text     int64  // bytes of visible text in it
	heard    time.Time
}

func (s *Screen) arrives() *arriving {
	if n := s.fold.Now.N; s.arriving.n != n {
		s.arriving = arriving{n: n}
	}
	return &s.arriving
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// silence is how long a model sends nothing before the screen says so.
const silence = 5 * time.Second

func (s *Screen) liveLines(now time.Time, columns, rows int) []string {
	round, open := s.fold.Open()
	doing := s.fold.Now
	if s.closed || s.streaming || s.asking || doing.Asking || doing.What == "" && !open {
		return nil
	}
	var lines []string
	if s.o.folds() {
		if round.Number > 0 {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  round %d/%d  %s", round.Number, max(s.o.Rounds, round.Number), round.FilesText(columns/2)), " "))
		}
		for _, d := range s.details[max(0, len(s.details)-rows/5):] {
			lines = append(lines, s.o.Colour.Dim("  "+d))
		}
	}
	if s.fold.Best != "" {
		lines = append(lines, "  "+render.Cut("best "+render.Line(s.fold.Best), columns-len("  ")-1))
	}
	if doing.What != "" {
		lines = append(lines, s.doing(doing, now, columns))
	}
	if output := s.arrives().output; output != "" {
		lines = append(lines, s.o.Colour.Dim("  | "+story.Short(output, max(1, columns-len("  | ")-1))))
	}
	return append(lines, s.o.Colour.Dim("  "+s.totals(now)))
}

// leastName is the number of columns that what the run does has on any terminal.
const leastName = 10

// On a narrow terminal it leaves out whose turn it is, or the end of a command, rather than what arrives and the time.
func (s *Screen) doing(a story.Activity, now time.Time, columns int) string {
	c := s.o.Colour
	if wait := a.Until.Sub(now); wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		return fmt.Sprintf("%s %s%s in %d:%02d · %s", c.Yellow("⏸"), outageText(a, now), a.Try, seconds/60, seconds%60, render.Line(a.Outage.Error))
	}
	took := now.Sub(a.Since)
	frame := spinner[int(max(0, took)/(100*time.Millisecond))%len(spinner)]
	rest := "  " + c.Dim(clock(took))
	if a.Model != "" {
		var parts []string
		if a.Try != "" {
			parts = append(parts, outageText(a, now)+a.Try)
		}
		got := s.arrives()
		switch {
		case got.text > 0:
			parts = append(parts, "↓ ~"+render.Short(got.text/4)+" tokens")
		case got.received > 0:
			parts = append(parts, "↓ "+render.Bytes(got.received))
		}
		heard := a.Since
		if got.heard.After(heard) {
			heard = got.heard
		}
		if quiet := now.Sub(heard); quiet >= silence && !s.o.Followed {
			parts = append(parts, c.Yellow("silent "+clock(quiet)))
		}
		for _, part := range parts {
			rest += c.Dim(" · ") + part
		}
	}
	what := a.What
	if a.Model != "" && render.Width(what+rest)+len("x ") >= columns {
		what, _, _ = strings.Cut(what, ", ")
	}
	what = render.Cut(what, max(leastName, columns-len("x ")-1-render.Width(rest)))
	return fmt.Sprintf("%c %s%s", frame, what, rest)
}

// It is empty if that is less than a minute.
func outageText(a story.Activity, now time.Time) string {
	if !a.Outage.Long(now) {
		return ""
	}
	return fmt.Sprintf("no reply since %s (%s) · ", a.Outage.Since.Local().Format("15:04"), render.Duration(a.Outage.Lasted(now)))
}

func clock(d time.Duration) string {
	if d = d.Truncate(time.Second); d < 10*time.Second {
		return fmt.Sprintf("%ds", max(0, d)/time.Second)
	}
	return render.Duration(d)
}

func (s *Screen) totals(now time.Time) string {
	spent := s.fold.Spent
	var took time.Duration
	if !spent.At.IsZero() {
		took = spent.Active + now.Sub(spent.At)
	}
	text := clock(took)
	if !spent.Known {
		return text
	}
	confirmed, left := spent.Tokens()
	text += " · " + render.Short(confirmed)
	if left > 0 {
		text += " (+" + render.Short(left) + " unconfirmed)"
	}
	if s.o.Tokens > 0 {
		text += " of " + render.Short(s.o.Tokens)
	}
	return text + " tokens · " + render.Cost(spent.Use.Cost, left > 0)
}

// region keeps a few lines at the end of a terminal's contents. Everything else is
// printed above them.
type region struct {
	out io.Writer
	// size returns the columns and rows of the terminal. It is called at each update,
	// so that no signal is needed when the terminal is resized.
	size  func() (columns, rows int)
	lines []string // that are drawn
	at    int      // columns of the terminal when they were drawn
}

// A terminal ignores sequences that it does not know. Synchronised output shows an
// update at once. The terminal must not wrap a line of the region, because it may
// give a character another width than [render.Width] does.
const (
	startUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"
	noWrap      = "\x1b[?7l"
	wrap        = "\x1b[?7h"
)

// The text must end with a newline unless there are no lines. One Write prints everything.
func (r *region) update(text string, lines []string) {
	columns, rows := r.size()
	lines = slices.Clone(lines[max(0, len(lines)-max(1, rows-1)):]) // the last are the most important ones
	for i, line := range lines {
		lines[i] = render.Cut(strings.ReplaceAll(line, "\t", " "), columns-1)
	}
	switch {
	case text == "" && slices.Equal(lines, r.lines) && (columns == r.at || len(lines) == 0):
		return
	case len(lines) == 0 && len(r.lines) == 0:
		_, _ = io.WriteString(r.out, text)
		return
	}
	b := strings.Builder{}
	b.WriteString(startUpdate)
	drawn := 0 // rows: a terminal that became narrower has wrapped the lines
	for _, line := range r.lines {
		drawn += max(1, (render.Width(line)+columns-1)/columns)
	}
	if drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", drawn)
	}
	b.WriteString(text)
	if len(lines) > 0 {
		b.WriteString(noWrap + strings.Join(lines, "\n") + "\n" + wrap)
	}
	b.WriteString(endUpdate)
	_, _ = io.WriteString(r.out, b.String())
	r.lines, r.at = lines, columns
}
