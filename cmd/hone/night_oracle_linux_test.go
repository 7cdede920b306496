package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/model"
)

// nightReport is how a loop got through the night.
type nightReport struct {
	loop       string
	took       time.Duration
	signals    int
	resumes    int
	stops      map[string]int // by kind
	asked      int            // requests
	repeated   int            // replies that were lost and bought again
	served     int64          // tokens, by the provider's own account
	charged    int64          // tokens, by the ledger
	edits      int            // of the user
	violations []string
}

// violate reports a broken promise.
func (s *sleeper) violate(t *testing.T, promise, format string, args ...any) {
	t.Helper()
	s.violations = append(s.violations, promise)
	s.say("BROKEN: %s: %s", promise, fmt.Sprintf(format, args...))
	t.Fail()
}

// same reports a violation if two sets of files differ.
func (s *sleeper) same(t *testing.T, promise, what string, want, got map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if text, ok := got[name]; !ok {
			s.violate(t, promise, "%s: %s is missing", what, name)
		} else if text != want[name] {
			s.violate(t, promise, "%s: %s is not %s, but %s", what, name, fromDifference(want[name], text), fromDifference(text, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			s.violate(t, promise, "%s: there is also %s", what, name)
		}
	}
}

// fromDifference returns what surrounds the first difference of a text from another.
func fromDifference(text, other string) string {
	at := 0
	for at < len(text) && at < len(other) && text[at] == other[at] {
		at++
	}
	return strconv.Quote(text[max(0, at-400):min(len(text), at+300)])
}

// compare compares what came out with the quiet run.
func (s *sleeper) compare(t *testing.T, quiet nightWork, p *nightProvider, first map[string]string) {
	s.edits = s.user.edits
	s.same(t, "tree", "the files", quiet.files(t), s.work.files(t))
	s.same(t, "user", "the user's files", s.user.files, s.user.found(t))
	s.same(t, "history", "hone's commits", quiet.history(t), s.work.history(t))
	if got, want := s.work.git(t, "log", "--format=%s"), strings.Join(s.user.commits, "\n")+"\n"; got != want {
		s.violate(t, "history", "the commits are\n%s, and the user's are\n%s", got, want)
	}
	s.checkProcesses(t)
	s.checkLedger(t)
	defer s.checkLeftFiles(t)
	s.hone(t, "replay", "replay", "last")
	s.hone(t, "journal", "show", "last")
	if !s.hone(t, "undo", "undo", "last") {
		return
	}
	if out, err := quiet.command(p.address, "undo", "last").CombinedOutput(); err != nil {
		t.Errorf("undo of the quiet run: %v\n%s", err, out)
	}
	s.same(t, "undo", "the files after undo", quiet.files(t), s.work.files(t))
	if s.work.project == nil {
		s.same(t, "undo", "the files after undo, and before the run", first, s.work.files(t))
	}
	s.same(t, "undo", "the user's files after undo", s.user.files, s.user.found(t))
}

// hone runs the program, which must succeed, and reports whether it did.
func (s *sleeper) hone(t *testing.T, promise string, args ...string) bool {
	t.Helper()
	out, err := s.work.command(s.provider.address, args...).CombinedOutput()
	if err != nil {
		s.violate(t, promise, "hone %s: %v\n%s", strings.Join(args, " "), err, last(out, 3000))
	}
	return err == nil
}

// checkProcesses waits for the end of what a process left, and ends the rest.
func (s *sleeper) checkProcesses(t *testing.T) {
	t.Helper()
	var left []*os.Process
	if waittest.Until(func() bool {
		left = (phaseProject{}).processes(t, s.work.cache)
		return len(left) == 0
	}) {
		return
	}
	for _, p := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		s.violate(t, "process", "it is left: %q", strings.ReplaceAll(string(line), "\x00", " "))
		_ = p.Kill()
	}
}

// checkLedger compares the journal with the provider's own account.
func (s *sleeper) checkLedger(t *testing.T) {
	events, calls := lastEvents(t, s.work.dir), s.provider.received()
	recorded, steps := map[model.Usage]time.Time{}, map[journal.Identity]bool{}
	for _, e := range events {
		if e.Type != history.TypeReply || e.Phase != journal.Record {
			continue
		}
		var r history.Replied
		if err := e.Decode(&r); err != nil || r.Usage == nil || e.Step == nil {
			s.violate(t, "journal", "a reply without usage: %v", err)
			continue
		}
		if steps[*e.Step] {
			s.violate(t, "paid", "a reply is recorded twice: %v", *e.Step)
		}
		recorded[*r.Usage], steps[*e.Step] = e.Time, true
	}
	served := map[model.Usage]bool{}
	for _, c := range calls {
		if c.used {
			s.served += c.usage.Total()
			if served[c.usage] {
				s.repeated++
			}
			served[c.usage] = true
		}
		if at, ok := recorded[c.usage]; ok && c.arrived.After(at) {
			s.violate(t, "paid", "a request was sent at %s, and its reply was recorded at %s", c.arrived.Format(time.TimeOnly), at.Format(time.TimeOnly))
		}
	}
	s.asked, s.charged = len(calls), history.Read(events).Facts().Ledger.Tokens
	if s.charged < s.served || s.charged > nightBudget {
		s.violate(t, "ledger", "%d tokens are charged, where %d were served and the budget is %d", s.charged, s.served, nightBudget)
	}
}

// checkLeftFiles looks for what a later run must have removed.
func (s *sleeper) checkLeftFiles(t *testing.T) {
	s.hone(t, "stop", "fix", "--check", "true", "-m", "openai/m")
	for _, dir := range []string{s.work.dir, s.work.cache} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case strings.HasPrefix(d.Name(), ".hone~"):
				s.violate(t, "hone~", "%s is left", path)
			case d.IsDir() && dir == s.work.cache && strings.HasPrefix(d.Name(), "run-"):
				s.violate(t, "cache", "%s is left", path)
				return fs.SkipDir
			}
			return nil
		})
	}
}

// table returns the report of the night.
func (n *night) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-10s %7s %7s %7s %5s %8s %7s %9s %9s  %s\n", "loop", "minutes", "signals", "resumes", "edits", "requests", "lost", "served", "charged", "stops")
	slices.SortFunc(n.reports, func(a, b nightReport) int { return strings.Compare(a.loop, b.loop) })
	for _, r := range n.reports {
		fmt.Fprintf(&b, "%-10s %7.1f %7d %7d %5d %8d %7d %9d %9d  %s\n", r.loop, r.took.Minutes(), r.signals, r.resumes, r.edits, r.asked, r.repeated,
			r.served, r.charged, countsText(r.stops))
		if len(r.violations) > 0 {
			counts := map[string]int{}
			for _, v := range r.violations {
				counts[v]++
			}
			fmt.Fprintf(&b, "%-10s broken: %s\n", "", countsText(counts))
		}
	}
	return b.String()
}

// countsText returns the keys and their counts, the most frequent first.
func countsText(counts map[string]int) string {
	var parts []string
	for what := range counts {
		parts = append(parts, what)
	}
	slices.SortFunc(parts, func(a, b string) int { return counts[b] - counts[a] + strings.Compare(a, b)/2 })
	for i, what := range parts {
		parts[i] = fmt.Sprintf("%d %s", counts[what], what)
	}
	return strings.Join(parts, ", ")
}
