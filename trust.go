package hone

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/check/judge"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
)

// Trust says how far the run believes its check, and what guards the check. The
// zero Trust runs the check after each round and believes it.
type Trust struct {
	// CheckFirst says whether the check also runs before the first round.
	CheckFirst CheckFirst
	// Copied runs the check on a copy of the tree in a directory. It follows the contract
	// of [check.Func], and must read only that directory. It confirms a pass; see Judges
	// and Proof. Nil believes every pass.
	Copied func(ctx context.Context, dir string) ([]check.Finding, error)
	// Proof requires the check to fail before the first round, and every pass to be
	// confirmed; nil requires neither.
	Proof *Proof
	// Judges are the files that judge the work beside the check's command. If one differs
	// from what the run found, or if git sees no difference at all, a pass is confirmed
	// (ruling G21). The zero Set has none.
	Judges judge.Set
	// Protect are globs of files that judge the work and that the user keeps from
	// changes: an edit of one needs approval, and what a command does to one is taken
	// back. Nil protects none.
	Protect []string
	// Keep treats all of Judges like Protect.
	Keep bool
	// Tools asks before a change to a file that the user's own tools run or believe, and
	// puts back what a model's command changes there; see protect.go.
	Tools bool
	// Only are globs of the only files that may change; see protect.go. Nil means all.
	Only []string
	// OnlyNew means that what the check finds before the first round does not count. Then it
	// always runs there.
	OnlyNew bool
	// Reported is what another run of the check found. Then the first round starts with that,
	// and the check does not run before it, except for Proof and OnlyNew. With OnlyNew the
	// reported findings do count. Nil if there is none.
	Reported *Reported
	// Flaky is how often a failing check runs again, to separate findings that
	// always appear from those that come and go; 0 means never.
	Flaky int
	// Passed is for a loop that verifies its work itself: why its run is done when
	// no blocking finding is left, such as "phase 2 passed". Empty means that only
	// a check verifies.
	Passed string
	// KeepBest restores the tree of the best round when the rounds or the
	// budget are used up.
	KeepBest bool
}

// CheckFirst says whether a run's check runs before its first round.
type CheckFirst int

const (
	// Blind does not run the check first: the first round starts without
	// findings.
	Blind CheckFirst = iota
	// Informed runs the check first, and the first round starts with its
	// findings, even if there are none.
	Informed
	// UnlessClean is Informed, except that the run is done if the check passes.
	UnlessClean
)

// Proof says how to find out whether a check can be trusted: it must fail
// before the first round, and pass again on a clean copy after the last.
type Proof struct {
	// Strict ends the run if the check passes before the first round.
	Strict bool
}

// SourceProof is the source of the findings of a check that ran on a clean
// copy.
const SourceProof = "proof"

// If it fails, it runs again as often as Trust.Flaky says, to separate findings that always appear from those that come and go.
func (r *Run) checkRepeatedly(ctx context.Context) (history.Checked, error) {
	var c history.Checked
	var runs [][]check.Finding
	for {
		findings, restored, err := r.checkOnce(ctx)
		if err == nil {
			findings, c.Old, err = r.New(findings)
		}
		if err != nil {
			return history.Checked{}, err
		}
		runs, c.Restored = append(runs, findings), append(c.Restored, restored...)
		if !check.Blocking(findings) || len(runs) > r.Trust.Flaky {
			break
		}
	}
	slices.Sort(c.Restored)
	c.Restored, c.Findings = slices.Compact(c.Restored), runs[0]
	if len(runs) > 1 {
		c.Findings, c.Flaky = check.SplitFlaky(runs...)
	}
	return c, nil
}

// A protected file that the check changed is restored and becomes a finding: the code under test tried to judge itself.
func (r *Run) checkOnce(ctx context.Context) ([]check.Finding, []string, error) {
	findings, err := r.Check(ctx)
	if err != nil || !r.Trust.keepsAny() {
		return findings, nil, err
	}
	if err := r.snapshot(ctx); err != nil {
		return nil, nil, err
	}
	list, err := r.protectedChanges(nil, nil)
	if err != nil {
		return nil, nil, err
	}
	restored, err := r.restoreProtected(ctx, list)
	for _, path := range restored {
		added := func(d workspace.Delta) bool { return d.Path == path && d.After.Kind == "" }
		if slices.ContainsFunc(list, added) {
			continue // an output of the user's own program
		}
		findings = append(findings, check.Finding{Source: "protect", File: path,
			Text: "This file is protected, because it is part of the check; it was changed while the check ran, and was restored."})
	}
	return findings, restored, err
}

// If the run cannot start without a check and the check could not run, it returns an error, so that a resumed run tries again.
func (r *Run) checkBeforeFirst(ctx context.Context) (history.Checked, error) {
	c, err := r.checkRepeatedly(ctx)
	switch {
	case err != nil:
		return c, err
	case !onlyBroken(c.Findings) && r.Trust.OnlyNew:
		return r.takeBaseline(c)
	case !onlyBroken(c.Findings):
		return c, nil
	}
	details := ""
	for _, f := range c.Findings {
		if f.Broken {
			details += "\n" + strings.TrimSpace(f.Text)
		}
	}
	switch {
	case r.Trust.CheckFirst == UnlessClean, r.Metric != nil, r.Trust.OnlyNew:
		return c, &Stop{Kind: KindFailed, Why: "the check could not run" + details, Next: fixCheck(nil)}
	case r.strict():
		return c, &Stop{Kind: KindUsage, Why: neverFailed + details, Next: Next{First: fixProgram, Verb: Resume, Or: notStrict()}}
	}
	return c, nil
}

const (
	neverFailed = "the check could not run before the first round, so it was not seen to fail"
	alreadyOK   = "the check already passes, so passing later proves nothing"
)

func notStrict() *Next {
	return &Next{Flags: []Flag{{Name: "prove", Value: "on"}}, Remark: "which only warns"}
}

func (r *Run) strict() bool { return r.Trust.Proof != nil && r.Trust.Proof.Strict }

// Only a strict proof stops the run.
func (r *Run) judgeFirstCheck(c history.Checked) error {
	passes, proves := !check.Blocking(c.Findings), r.Trust.Proof != nil && r.Trust.CheckFirst != UnlessClean
	switch {
	case onlyBroken(c.Findings) && proves:
		return r.Notice(neverFailed)
	case onlyBroken(c.Findings):
		return r.Notice("the check could not run before the first round")
	case passes && proves && r.strict():
		return &Stop{Kind: KindUsage, Why: alreadyOK, Next: Next{First: "make the check test what is wanted, so that it fails", Verb: NewRun, Or: notStrict()}}
	case passes && proves:
		if err := r.Notice(alreadyOK); err != nil {
			return err
		}
	}
	if c.Old == 0 {
		return nil
	}
	return r.Notice(plural(c.Old, "finding was", "findings were") + " there before the run, and will not count")
}

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
