package hone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hone/check"
	"hone/history"
)

// Proof says whether a check is to be trusted: whether it is seen red before the
// first round, and once more green, on a clean copy, after the last.
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

// seeRed runs the check before the first round, once a run.
func (r *Run) seeRed(ctx context.Context) error {
	if r.Proof == nil || r.Check == nil {
		return nil
	}
	c, seen := r.Past().FirstCheck() // the tree may be another by now
	if !seen {
		r.enter(0)
		if _, err := step(ctx, r, work[history.Opened]{event: history.TypeStep, name: history.StepOpen, inline: true, do: r.open}); err != nil {
			return err
		}
		var err error
		if c, err = r.check(ctx); err != nil {
			return err
		}
	}
	switch {
	case broken(c.Findings) && r.Proof.Strict:
		return &Stop{Exit: ExitUsage, Result: "usage", Why: "the check could not run before the first round, so that it was not seen to fail",
			Hint: "mend the check; --prove=on goes on all the same"}
	case broken(c.Findings):
		return r.Notice("the check could not run before the first round: it was not seen to fail")
	case check.Blocking(c.Findings):
		return nil
	case r.Proof.Strict:
		return &Stop{Exit: ExitUsage, Result: "usage", Why: "the check is green before the first round, so that it can prove nothing",
			Hint: "make the check ask for what is wanted, and see it fail; --prove=on goes on all the same"}
	}
	return r.Notice("the check is green before the first round: that it will be green afterwards proves nothing of what is done")
}

// greenBefore reports whether the check was seen green before the first round.
func (r *Run) greenBefore() bool {
	c, seen := r.Past().FirstCheck()
	return seen && !check.Blocking(c.Findings)
}

// prove runs the check on a copy of the tree that no command of a model's could
// write, and says what is wrong there that is not wrong in the tree.
func (r *Run) prove(ctx context.Context) (history.Checked, error) {
	return r.looking(ctx, "prove", func(ctx context.Context) (c history.Checked, err error) {
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
		if _, err := r.Tree.Copy(ctx, dir); err != nil {
			return c, fmt.Errorf("prove the check: copy the tree: %w", err)
		}
		found, err := r.Proof.Check(ctx, dir)
		return history.Checked{Findings: disproved(found, dir, r.Tree.Dir())}, err
	})
}

// disproved words what a check found in the copy.
func disproved(found []check.Finding, copied, dir string) []check.Finding {
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
