package screen

import (
	"fmt"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/journal"
)

// command is a step of a loop that runs commands and has no result so far.
type command struct {
	id    journal.Identity
	since int64 // the run's active time at the start, in milliseconds
}

// longCommand is the duration from which a step gets a line even if it reports
// nothing.
const longCommand = 5 * time.Second

// startCommand waits for a step that runs commands.
func (s *Screen) startCommand(e history.Event) {
	s.command = &command{*e.Step, e.Active}
	s.waitFor(e.Step.Name)
}

// endCommand shows a step that ran commands, in one line.
func (s *Screen) endCommand(e history.Event) {
	took, name := time.Duration(0), e.Step.Name
	if c := s.command; c != nil && c.id == *e.Step {
		took = (time.Duration(e.Active-c.since) * time.Millisecond).Round(100 * time.Millisecond)
	}
	s.command = nil
	s.waitFor("")
	if took >= Shortest {
		name += fmt.Sprintf(" (%s)", took)
	}
	switch r := e.Report(s.o.Get); {
	case r.Said != "":
		s.showReport(name+": ", r)
	case took >= longCommand:
		s.detail("  %s", name)
	}
}

// showReport shows the report of a step, and the end of the output in it. It
// shows nothing if the report is empty.
func (s *Screen) showReport(head string, t history.Report) {
	if t.Said == "" {
		return
	}
	mark := "  "
	if t.Log != "" {
		mark = "  ! "
	}
	s.printLines(s.detail, mark+head, "    ", t.Said)
	if t.Log == "" {
		return
	}
	s.logs[t.Log] = true
	lines := strings.Split(strings.TrimRight(t.Log, "\n"), "\n")
	if before := len(lines) - outputLines; before > 1 && !s.o.whole() {
		s.faint(fmt.Sprintf("    [%s before: hone show -v]", render.Count(before, "line")))
		lines = lines[before:]
	}
	for _, line := range lines {
		s.faint("    | " + short(strings.TrimSuffix(line, "\r"), outputWidth))
	}
}

// showServer shows what happened to a server. It omits the start of a server
// during a step, because that step reports it.
func (s *Screen) showServer(v history.Served) {
	switch {
	case v.What == history.Up && s.command == nil:
		s.detail("  the server is up at %s", v.URL)
	case v.What == history.Reached && v.Requests <= 1:
		s.detail("    the server was reached")
	case v.What == history.Down:
		s.detail("  the server was stopped")
	}
}

// showSnapshot shows what the command before it changed, and which protected
// files were restored.
func (s *Screen) showSnapshot(o history.Snapshot) {
	s.showChanged()
	if o.Said != "" {
		s.lines("  ! ", "    ", o.Said)
	}
}

// maxListed is the number of files in one list, unless the screen shows
// everything.
const maxListed = 12

// showChanged shows the files that a role's command or an agent changed.
func (s *Screen) showChanged() {
	deltas := s.rounds.Deltas()
	for i, d := range deltas {
		s.session.files[d.Path] = true
		switch {
		case i == maxListed && len(deltas) > maxListed+1 && !s.o.whole():
			s.detail("    [%s changed: hone show -v]", render.Count(len(deltas)-i, "more file"))
		case i < maxListed || len(deltas) == maxListed+1 || s.o.whole():
			s.detail("    %s", deltaText(d))
		}
	}
}
