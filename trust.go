package hone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/workspace/clone"
)

// Trust says how far a run's check counts, and what guards it. The zero Trust
// runs the check after each round, and takes its word.
type Trust struct {
	// CheckFirst says whether the check also runs before the first round.
	CheckFirst CheckFirst
	// Proof has the check fail before the first round and pass on a clean copy
	// after the last; nil does not.
	Proof *Proof
	// Protect are globs of the files that belong to what judges the work; see
	// protect.go. Nil protects none.
	Protect []string
	// Flaky is how often a failing check runs again, to tell what always fails
	// from what comes and goes; 0 means never.
	Flaky int
	// Passed is what is true when a loop that verifies by itself has no blocking
	// finding left, such as "phase 2 passed". Empty means that only a check
	// verifies.
	Passed string
	// KeepBest restores the tree of the best round when rounds or budget are
	// used up.
	KeepBest bool
}

// CheckFirst says whether a run's check runs before its first round.
type CheckFirst int

const (
	// Blind does not run it: the first round begins without findings.
	Blind CheckFirst = iota
	// Informed runs it, and the first round begins with its findings. That it
	// passes does not end the run.
	Informed
	// UnlessClean is Informed, but a check that passes ends the run as done.
	UnlessClean
)

// Proof says whether a check is to be trusted: whether it fails before the
// first round, and passes once more, on a clean copy, after the last.
type Proof struct {
	// Check is the run's check of a copy of the tree in a folder. Contract: as
	// of a [check.Func]; it looks at the folder alone.
	Check func(ctx context.Context, dir string) ([]check.Finding, error)
	// Strict ends a run whose check is green before the first round.
	Strict bool
}

// SourceProof is where the findings of a check come from that was run on a
// clean copy.
const SourceProof = "proof"

// checkOften runs the check, and where it fails as often again as it takes to
// tell what comes and goes.
func (r *Run) checkRepeatedly(ctx context.Context) (history.Checked, error) {
	var c history.Checked
	var runs [][]check.Finding
	for {
		findings, back, err := r.checkOnce(ctx)
		if err != nil {
			return history.Checked{}, err
		}
		runs, c.Restored = append(runs, findings), append(c.Restored, back...)
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

// checkOnce runs the check. What it changed of what it belongs to is put back,
// and is a finding: the code that it ran has tried to judge itself.
func (r *Run) checkOnce(ctx context.Context) ([]check.Finding, []string, error) {
	r.stale = true
	findings, err := r.Check(ctx)
	if err != nil || len(r.Trust.Protect) == 0 {
		return findings, nil, err
	}
	if err := r.snapshot(ctx); err != nil {
		return nil, nil, err
	}
	back, err := r.restoreProtected(ctx)
	for _, path := range back {
		findings = append(findings, check.Finding{Source: "protect", File: path,
			Text: "This file is protected, because it is part of what judges the work; it was changed while the check ran, and was put back as it was."})
	}
	return findings, back, err
}

// checkUsable is checkOften before the first round. Where the run cannot begin
// without the check, one that could not run is an error: a resumed run tries it
// again.
func (r *Run) checkBeforeFirst(ctx context.Context) (history.Checked, error) {
	c, err := r.checkRepeatedly(ctx)
	if err != nil || !onlyBroken(c.Findings) {
		return c, err
	}
	said := ""
	for _, f := range c.Findings {
		if f.Broken {
			said += "\n" + strings.TrimSpace(f.Text)
		}
	}
	switch {
	case r.Trust.CheckFirst == UnlessClean:
		return c, &Stop{Kind: KindFailed, Why: "the check could not run" + said, Next: resumeAfter("fix the check")}
	case r.strict():
		return c, &Stop{Kind: KindUsage, Why: neverFailed + said, Next: Next{First: "fix the check", Verb: Resume, Or: notStrict}}
	}
	return c, nil
}

const (
	neverFailed = "the check could not run before the first round, so it was not seen to fail"
	alreadyOK   = "the check already passes, so passing later proves nothing"
	notStrict   = "use --prove=on, which does not insist"
)

func (r *Run) strict() bool { return r.Trust.Proof != nil && r.Trust.Proof.Strict }

// sayBefore says what the check's findings before the first round are worth.
func (r *Run) judgeFirstCheck(found []check.Finding) error {
	passes, proves := !check.Blocking(found), r.Trust.Proof != nil && r.Trust.CheckFirst != UnlessClean
	switch {
	case onlyBroken(found) && proves:
		return r.Notice(neverFailed)
	case onlyBroken(found):
		return r.Notice("the check could not run before the first round")
	case passes && proves && r.strict():
		return &Stop{Kind: KindUsage, Why: alreadyOK, Next: Next{First: "make the check test what is wanted, so that it fails", Verb: NewRun, Or: notStrict}}
	case passes && proves:
		return r.Notice(alreadyOK)
	}
	return nil
}

// passedBefore reports whether the check, which was to be seen failing, passed
// before the first round.
func (r *Run) passedBefore() bool {
	c, seen := r.Past().FirstCheck()
	return r.Trust.Proof != nil && seen && !check.Blocking(c.Findings)
}

// prove runs the check on a copy of the tree that no command of a model's could
// write, and says what is wrong there that is not wrong in the tree.
func (r *Run) prove(ctx context.Context) (c history.Checked, err error) {
	history.RemoveScratch(r.Journal.Run())
	top, err := os.MkdirTemp("", history.ScratchPrefix(r.Journal.Run()))
	if err != nil {
		return c, fmt.Errorf("prove the check: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	// The copy has the folder's name: some checks look at it.
	dir := filepath.Join(top, filepath.Base(r.Tree.Dir()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return c, fmt.Errorf("prove the check: %w", err)
	}
	if _, err := clone.Tree(ctx, r.Tree, dir); err != nil {
		return c, fmt.Errorf("prove the check: copy the tree: %w", err)
	}
	found, err := r.Trust.Proof.Check(ctx, dir)
	return history.Checked{Findings: proofFindings(found, dir, r.Tree.Dir())}, err
}

// disproved words what a check found in the copy.
func proofFindings(found []check.Finding, copied, dir string) []check.Finding {
	var findings []check.Finding
	for _, f := range found {
		if !f.Blocks() {
			continue
		}
		f.Source = SourceProof
		f.Text = "The check passes in the tree, and fails in a clean copy of it that nothing but the check was run in. It must pass there too, so it may not depend on the tree's place, or on a process or a file that is not part of it. In the copy it says:\n\n" +
			strings.ReplaceAll(f.Text, copied, dir)
		findings = append(findings, f)
	}
	return findings
}
