package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/lazyregexp"
	"hone/internal/render"
)

// round is what the screen saw of a round; the zero value is none.
type round struct {
	number  int
	begun   bool // an event belongs to it, and it was not decided
	since   int64
	last    int64 // the run's active time at its first and last event, in milliseconds
	tokens  int64
	changes map[string]change
	details []string // its last lines
}

// change is how a round changed a file: the digests of its contents, which are empty
// if it does not exist.
type change struct {
	before, after  string
	added, removed int // lines
}

// trackRound follows a run from one round to the next.
func (s *Screen) trackRound(e history.Event) {
	if e.Step != nil && e.Step.Round >= s.undecided && (!s.round.begun || e.Step.Round > s.round.number) {
		s.round = round{number: e.Step.Round, begun: true, since: e.Active}
	}
	s.round.last = e.Active
	if c, ok := e.Payload.(history.Commit); ok {
		s.round.tokens += c.Tokens
	}
}

func (s *Screen) maxRounds() int { return max(s.o.Rounds, s.round.number) }

// addChange adds the change of a file to those of the round.
func (s *Screen) addChange(path, before, after string) {
	s.session.files[path] = true
	if s.round.changes == nil {
		s.round.changes = map[string]change{}
	}
	c, known := s.round.changes[path]
	if !known {
		c.before = before
	}
	c.after = after
	if s.o.folds() {
		c.added, c.removed = render.Stat(s.content(c.before), s.content(c.after))
	}
	s.round.changes[path] = c
}

// foldRound prints a decided round as one line.
func (s *Screen) foldRound(st hone.State) {
	s.undecided = st.Round + 1
	mark, verdict := s.o.Colour.Green("✓"), "check passed"
	blocking := slices.DeleteFunc(slices.Clone(st.Findings), func(f check.Finding) bool { return !f.Blocks() })
	switch {
	case len(blocking) > 0 && check.Blocking(st.Checked):
		mark, verdict = s.o.Colour.Red("✗"), gist(blocking)
	case len(blocking) > 0:
		mark, verdict = s.o.Colour.Yellow("!"), gist(blocking)
	case st.Decision == hone.Done:
		verdict = st.Why
	case st.Decision == hone.StopNow:
		mark, verdict = s.o.Colour.Yellow("!"), st.Why
	}
	if st.Same > 0 {
		verdict = fmt.Sprintf("↻ as after round %d: %s", st.Same, verdict)
	}
	s.endRound(mark, verdict)
	if st.Decision == hone.StopNow {
		s.showRemaining(st)
	}
}

// cutRound prints a round that the end of the run cut off.
func (s *Screen) cutRound() {
	if s.o.folds() && s.round.begun && s.round.number > 0 {
		s.endRound("-", "not finished")
	}
}

// endRound prints the line of a round, and starts the next one. On a narrow terminal
// the verdict has a line of its own.
func (s *Screen) endRound(mark, verdict string) {
	r := s.round
	s.round = round{number: r.number}
	columns, _ := s.o.Size()
	name := "start"
	if r.number > 0 {
		name = fmt.Sprintf("round %d", r.number)
	}
	took := time.Duration(r.last-r.since) * time.Millisecond
	figures := s.o.Colour.Dim(fmt.Sprintf("%5s %5s", render.Duration(took), render.Short(r.tokens)))
	verdict = strings.ReplaceAll(render.Line(verdict), "\t", " ")
	s.endLine()
	if columns < wideColumns {
		files := s.filesText(r.changes, columns-26)
		fmt.Fprintf(&s.text, "%s %-7s  %s %s\n", mark, name, pad(files, columns-26), figures)
		fmt.Fprintf(&s.text, "    %s\n", width.TruncateString(verdict, columns-5, "…"))
		return
	}
	files := s.filesText(r.changes, columns/4)
	rest := columns - 1 - len("x round 1    ") - columns/4 - len("  12.3s 12.3k")
	fmt.Fprintf(&s.text, "%s %-7s  %s  %s  %s\n", mark, name, pad(files, columns/4), pad(width.TruncateString(verdict, rest, "…"), min(rest, 40)), figures)
}

// wideColumns is the width from which a round fits one line.
const wideColumns = 64

// pad fills a text with spaces.
func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-width.String(text)))
}

// gist returns the line of the first finding that says most.
func gist(findings []check.Finding) string {
	f := findings[0]
	text := tellingLine(f.Text)
	if f.File != "" && !strings.Contains(text, f.File) {
		text = f.File + ": " + text
	}
	if more := len(findings) - 1; more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
}

// tellingLine returns the first line of a text, or of the output in it, that says what is
// wrong: one that names an error, or else one that begins with a position, as a failed
// test of Go prints it, or else a heading. If there is none it returns the last line of
// an output, or else the first line.
func tellingLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	output := slices.IndexFunc(lines, headsOutput)
	if output < 0 || output == len(lines)-1 {
		return strings.TrimSpace(lines[0])
	}
	lines = lines[output+1:]
	for _, tells := range []func(string) bool{namesError, position.MatchString, headsFailure.MatchString} {
		if i := slices.IndexFunc(lines, tells); i >= 0 {
			return strings.TrimSpace(lines[i])
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

var (
	position = lazyregexp.New(`^\s*[^\s:]+\.[A-Za-z]+:[0-9]+: `)
	// headsFailure matches the lines of go test, pytest and cargo test that say only that
	// something failed.
	headsFailure = lazyregexp.New(`^\s*(--- FAIL|FAIL\b|={3,} |_{3,} |failures:|test .* FAILED$)`)
)

// headsOutput reports whether the output of a program follows a line, as checks and
// builds write it.
func headsOutput(line string) bool {
	return line == "STDOUT:" || line == "STDERR:" || strings.HasPrefix(line, "Its ") && strings.HasSuffix(line, ":")
}

func namesError(line string) bool {
	if headsFailure.MatchString(line) {
		return false
	}
	line = strings.ToLower(line)
	for _, word := range []string{"error", "undefined", "panic:", "assert", "fail", "expected", "exception", "cannot "} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// filesText names the files that changed, with the lines that were added and removed,
// in so many columns.
func (s *Screen) filesText(changes map[string]change, columns int) string {
	var names []string
	added, removed := 0, 0
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		c := changes[path]
		if c.before == c.after || s.o.Own != nil && s.o.Own(path) {
			continue
		}
		names, added, removed = append(names, path), added+c.added, removed+c.removed
	}
	lines := StatText(added, removed, "−")
	switch {
	case len(names) == 0:
		return ""
	case len(names) > 1:
		return render.Count(len(names), "file") + " " + lines
	}
	room := columns - width.String(lines) - 1
	return shortPath(names[0], room) + " " + lines
}

// StatText formats the number of lines that were added and removed, with a sign for
// the latter.
func StatText(added, removed int, minus string) string {
	var parts []string
	if added > 0 || removed == 0 {
		parts = append(parts, fmt.Sprintf("+%d", added))
	}
	if removed > 0 {
		parts = append(parts, fmt.Sprintf("%s%d", minus, removed))
	}
	return strings.Join(parts, " ")
}

// shortPath cuts the start of a path.
func shortPath(path string, columns int) string {
	path = render.Line(path)
	runes := []rune(path)
	for len(runes) > 1 && width.String(string(runes)) > max(4, columns) {
		runes = runes[1:]
		runes[0] = '…'
	}
	return string(runes)
}

// content returns the contents of a file; nil if it does not exist or is not known.
func (s *Screen) content(digest string) []byte {
	if digest == "" || s.o.Get == nil {
		return nil
	}
	b, err := s.o.Get(digest)
	if err != nil || len(b) > largestStat {
		return nil
	}
	return b
}

// largestStat is the size in bytes of the largest file whose lines are counted.
const largestStat = 1 << 20
