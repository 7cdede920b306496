package hone

import (
	"encoding/json"
	"fmt"
	"strings"

	"hone/check"
	"hone/history"
	"hone/internal/render"
)

// A run may be asked only for what is new (Trust.OnlyNew). Then the check runs before the first
// round, and what it finds is the baseline, which its record names. From then on findings of
// the baseline are counted and otherwise left out, wherever they are by then.

// Reported is what the check found elsewhere, such as in the log of a CI system.
type Reported struct {
	Name     string          `json:"name"` // of the file
	Findings []check.Finding `json:"findings"`
	// Text is the file without secrets. It is not part of the settings, because the first
	// round has it as an object.
	Text string `json:"-"`
}

func (p *Reported) has(f check.Finding) bool {
	for _, other := range p.Findings {
		if f.ID != "" && f.ID == other.ID || f.Line > 0 && f.Place() == other.Place() {
			return true
		}
	}
	return false
}

// New returns the findings of a check that count, and how many blocking ones do not, because
// they were there before the first round. Without Trust.OnlyNew all count.
func (r *Run) New(found []check.Finding) (added []check.Finding, old int, err error) {
	b, err := r.readBaseline()
	if err != nil || b == nil {
		return found, 0, err
	}
	added, was := b.Split(found, r.isTouched())
	return added, check.Count(check.BlockingOf(was)), nil
}

// It is nil before the first round: the check may run there again, and then it makes another one.
func (r *Run) readBaseline() (check.Baseline, error) {
	object := r.Past().Facts().Baseline
	if r.at.Round == 0 || object == "" || r.baseline != nil {
		return r.baseline, nil
	}
	b, err := r.Journal.Home().Get(object)
	if err == nil {
		err = json.Unmarshal(b, &r.baseline)
	}
	if err != nil {
		err = fmt.Errorf("read what was there before the run: %w", err)
	}
	return r.baseline, err
}

// isTouched reports whether the line of a finding is one that the run has changed. A file that
// cannot be read has none: that only decides which of several equal findings is shown.
func (r *Run) isTouched() func(check.Finding) bool {
	files := map[string]map[int]bool{}
	return func(f check.Finding) bool {
		lines, ok := files[f.File]
		if !ok && f.File != "" {
			entry, _ := r.found.Entry(f.File)
			was, _, _ := r.contentsOf(entry)
			now, _, _ := r.Tree.Read(f.File)
			lines = render.AddedLines(was, now)
			files[f.File] = lines
		}
		return lines[f.Line]
	}
}

// takeBaseline is for the record of the check before the first round. What is reported is wanted, and so not in the baseline.
func (r *Run) takeBaseline(c history.Checked) (history.Checked, error) {
	var wanted, old []check.Finding
	for _, f := range c.Findings {
		switch {
		case f.Blocks() && f.Partial:
			return c, noBaseline("the check did not get to its end, so it does not say all that is wrong before the run", f, "fix that first")
		case f.Blocks() && f.ID == "":
			return c, noBaseline("what the check finds cannot be recognized again, so nothing tells what is new", f,
				"let the check print its findings in a format that hone reads, such as FILE:LINE:COLUMN: message")
		case r.Trust.Reported != nil && r.Trust.Reported.has(f):
			wanted = append(wanted, f)
		default:
			old = append(old, f)
		}
	}
	text, err := json.Marshal(check.BaselineOf(append(old, c.Flaky...)))
	if err == nil {
		c.Baseline, err = r.putHeld(text)
	}
	c.Findings, c.Flaky, c.Old = wanted, nil, check.Count(check.BlockingOf(old))
	return c, err
}

func noBaseline(why string, f check.Finding, first string) *Stop {
	text, _, _ := strings.Cut(strings.TrimSpace(f.Text), "\n")
	if at := f.Place(); at != "" {
		text = at + ": " + text
	}
	return &Stop{Kind: KindUsage, Why: why + ": " + text, Next: Next{First: first, Verb: NewRun}}
}

const maxOldText = 2 << 10 // bytes

// The model sees them whenever it runs the check itself.
func (r *Run) oldFindings() ([]check.Finding, error) {
	b, err := r.readBaseline()
	if err != nil || len(b) == 0 {
		return nil, err
	}
	text := "These findings of the check were there before this run and do not count, also if they move to other lines. Leave them as they are. More of the same in a file do count:\n"
	for i, line := range b.Lines() {
		if len(text) > maxOldText {
			text += fmt.Sprintf("… and %d more\n", len(b)-i)
			break
		}
		text += "- " + render.Line(line) + "\n"
	}
	return []check.Finding{{Source: "baseline", Advisory: true, Text: strings.TrimSuffix(text, "\n")}}, nil
}

func (r *Run) passes() string {
	records := r.Past().Records("check")
	if len(records) == 0 {
		return history.CheckPasses
	}
	if c, _ := records[len(records)-1].Payload.(history.Checked); c.Old > 0 {
		return "the check finds nothing new; " + plural(c.Old, "finding from before the run remains", "findings from before the run remain")
	}
	return history.CheckPasses
}
