package screen

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// command is a step of a loop's that runs commands and has no record yet.
type command struct {
	id    journal.Identity
	since int64 // the run's active time when it began, in milliseconds
}

// longCommand is how long a step takes of which a line is worth it though it
// says nothing.
const longCommand = 5 * time.Second

// commanded shows a step that runs commands: one line, when it is over.
func (s *Screen) commanded(e journal.Event) {
	if e.Step == nil {
		return
	}
	if e.Phase == journal.Begin {
		s.command = &command{*e.Step, e.Active}
		s.waitFor(e.Step.Name)
		return
	}
	took, name := time.Duration(0), e.Step.Name
	if c := s.command; c != nil && c.id == *e.Step {
		took = (time.Duration(e.Active-c.since) * time.Millisecond).Round(100 * time.Millisecond)
	}
	s.command = nil
	s.waitFor("")
	if took > 0 {
		name += fmt.Sprintf(" (%s)", took)
	}
	switch told := s.heardOf(e); {
	case told.Said != "":
		s.told(name+": ", told)
	case took >= longCommand:
		s.line("  %s", name)
	}
}

// stepped shows what a step of a loop's says of itself, and what a command
// changed that ended before it.
func (s *Screen) stepped(e journal.Event) {
	if e.Phase != journal.Record || e.Step == nil {
		return
	}
	if e.Step.Name == "afterwards" {
		show(s, e, s.worked)
		show(s, e, s.restored)
		return
	}
	if told := s.heardOf(e); told.Said != "" {
		s.told("", told)
	}
}

// heardOf is what a record says for people.
func (s *Screen) heardOf(e journal.Event) history.Report {
	var line history.Report
	if e.Decode(&line) != nil || line.Said == "" {
		return history.Report{}
	}
	if whole, ok := record[history.Report](s, e); ok {
		return whole
	}
	return line
}

// told shows what a step says, and the end of what was printed.
func (s *Screen) told(head string, t history.Report) {
	mark := "  "
	if t.Log != "" {
		mark = "  ! "
	}
	s.lines(mark+head, "    ", t.Said)
	if t.Log == "" {
		return
	}
	s.logs[t.Log] = true
	lines := strings.Split(strings.TrimRight(t.Log, "\n"), "\n")
	if before := len(lines) - outputLines; before > 1 && !s.o.whole() {
		s.faint(fmt.Sprintf("    [%s before: hone show last]", render.Count(before, "line")))
		lines = lines[before:]
	}
	for _, line := range lines {
		s.faint("    | " + short(strings.TrimSuffix(line, "\r"), outputWidth))
	}
}

// served shows what happened to a server that nothing else tells of: one that
// a step starts is that step's to tell.
func (s *Screen) served(v history.Served) {
	switch {
	case v.What == history.Up && s.command == nil:
		s.line("  the server is up at %s", v.URL)
	case v.What == history.Reached:
		s.line("    the server is reached")
	case v.What == history.Down:
		s.line("  the server is stopped")
	}
}

// restored shows that protected files were put back after a command.
func (s *Screen) restored(o history.Snapshot) {
	if o.Said != "" {
		s.lines("  ! ", "    ", o.Said)
	}
}

// mostChanged is how many files are named at once, unless all are.
const mostChanged = 12

// worked shows the files that a command of a role's changed, or an agent: what
// differs from the manifest before it.
func (s *Screen) worked(o history.Snapshot) {
	was, ok := s.manifest(s.before)
	s.before = ""
	if !ok {
		return
	}
	now, ok := s.manifest(o.Manifest)
	if !ok {
		return
	}
	deltas := slices.DeleteFunc(was.Diff(now), func(d workspace.Delta) bool { return s.o.Own != nil && s.o.Own(d.Path) })
	for i, d := range deltas {
		s.session.files[d.Path] = true
		switch {
		case i == mostChanged && len(deltas) > mostChanged+1 && !s.o.whole():
			s.line("    [%s changed: hone show last]", render.Count(len(deltas)-i, "more file"))
		case i < mostChanged || len(deltas) == mostChanged+1 || s.o.whole():
			s.line("    %s", differs(d))
		}
	}
}

// manifest reads one of the run's.
func (s *Screen) manifest(object string) (workspace.Manifest, bool) {
	if object == "" || s.o.Get == nil {
		return nil, false
	}
	kept, err := workspace.ReadManifest(object, s.o.Get)
	return kept.Manifest, err == nil
}

// record reads a record, also where it lies in an object.
func record[T any](s *Screen, e journal.Event) (v T, ok bool) {
	var packed struct {
		Object string `json:"result_object"`
	}
	if e.Decode(&packed) != nil {
		return v, false
	}
	if packed.Object == "" {
		return v, e.Decode(&v) == nil
	}
	if s.o.Get == nil {
		return v, false
	}
	b, err := s.o.Get(packed.Object)
	if err != nil {
		return v, false
	}
	return v, json.Unmarshal(b, &v) == nil
}
