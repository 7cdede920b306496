package hone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/check/judge"
	"hone/history"
	"hone/journal"
	"hone/workspace"
	"hone/workspace/clone"
	"hone/workspace/treepath"
)

// Code that is judged must not change what judges it (ruling G21). Files that judge are
// those that Trust.Protect names and those of Trust.Judges. Of the first, and with
// Trust.Keep of all, a change is asked about before it is made, and taken back where a
// command made it. Of the others it may be made: then a pass of the check is believed
// only if the check passes with these files as they were, too.

func (r *Run) isJudge(path string) bool { return r.protects(path) || r.judges.Has(path) }

// Judges reports whether all of a file is part of the check. Before the first round no file is.
func (r *Run) Judges(path string) bool {
	return r.protected.Has(path) || r.judges.Has(path) && judge.Whole(path)
}

// A file counts under each name that a link of the found tree gives it.
func (r *Run) protects(path string) bool {
	return r.protected.Has(path) || r.found == nil && treepath.Match(r.Trust.Protect, path)
}

// keeps reports whether a change to a file needs the user's approval.
func (r *Run) keeps(path string) bool {
	return r.protects(path) || r.Trust.Keep && r.judges.Has(path)
}

func (t Trust) keepsAny() bool { return len(t.Protect) > 0 || t.Keep }

// judgeChange is a file that judges the work and is not as it must be, with what makes it so.
type judgeChange struct {
	workspace.Delta
	merged []byte // what it must hold if only a part of it judges; nil if it must be After
}

// changedJudges returns the files that judge the work, among those that which accepts, and
// are not in a manifest as the run found them, or as the user left or approved them; sorted.
func (r *Run) changedJudges(m workspace.Manifest, which func(path string) bool) ([]judgeChange, error) {
	if r.found == nil {
		return nil, nil
	}
	must := map[string]workspace.Entry{}
	for _, d := range r.found.Diff(m) {
		if which(d.Path) {
			must[d.Path] = d.Before
		}
	}
	for _, e := range r.Past().Events() {
		switch p := e.Payload.(type) {
		case history.Applied:
			for _, v := range p.Verdicts {
				if which(v.Path) && (v.Reason != "" || r.keeps(v.Path)) { // the reason of an edit that needed no approval is empty
					was, _ := r.found.Entry(v.Path)
					must[v.Path] = history.EntryAfter(was, v)
				}
			}
		case history.Outside: // it must stay as the user left it
			if !slices.ContainsFunc(p.Paths, which) {
				continue
			}
			theirs, err := r.readManifest(p.Manifest)
			if err != nil {
				return nil, err
			}
			for _, path := range p.Paths {
				if which(path) {
					must[path], _ = theirs.Entry(path)
				}
			}
		}
	}
	var changes []judgeChange
	for path, want := range must {
		now, _ := m.Entry(path)
		c := judgeChange{Delta: workspace.Delta{Path: path, Before: now, After: want}}
		if want.SameState(now) {
			continue
		}
		same, err := r.merge(&c)
		if err != nil {
			return nil, err
		}
		if !same {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b judgeChange) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

// ChangedJudges returns the files that are part of the check, and that were not as the run found
// them, or as the user left or approved them, before the last command; sorted. Then a pass of the
// check is not believed (ruling G21). Nil means that there are none.
func (r *Run) ChangedJudges() (paths []string, err error) {
	if r.Trust.Judges.IsZero() {
		return nil, nil
	}
	changes, err := r.changedJudges(r.last, r.isJudge)
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths, err
}

// merge sets what a file must hold if only a part of it judges. same reports whether that
// part is as it must be. A file whose contents were not stored judges as a whole. Permission
// bits judge too: a runner may leave out what is not executable.
func (r *Run) merge(c *judgeChange) (same bool, err error) {
	if r.protects(c.Path) {
		return false, nil
	}
	now, ok, err := r.contentsOf(c.Before)
	if err != nil || !ok {
		return false, err
	}
	found, ok, err := r.contentsOf(c.After)
	if err != nil || !ok {
		return false, err
	}
	merged := judge.Merge(c.Path, now, found)
	if merged != nil && !bytes.Equal(merged, found) {
		c.merged = merged
	}
	return bytes.Equal(merged, now) && (merged == nil) == (now == nil) && !changesMode(c.After, c.Before), nil
}

func changesMode(was, is workspace.Entry) bool {
	return was.Kind == workspace.Regular && is.Kind == workspace.Regular && was.Mode != is.Mode
}

// contentsOf returns the stored contents of a regular file; nil if there is no file. ok is
// false if it is something else, or its contents were not stored.
func (r *Run) contentsOf(e workspace.Entry) (b []byte, ok bool, err error) {
	if e.Kind == "" {
		return nil, true, nil
	}
	if e.Kind != workspace.Regular || e.Note != "" || !r.Journal.Home().Has(e.Digest) {
		return nil, false, nil
	}
	if b, err = r.Journal.Home().Get(e.Digest); b == nil {
		b = []byte{}
	}
	return b, err == nil, err
}

func (r *Run) targets(changes []judgeChange) ([]workspace.Delta, error) {
	var list []workspace.Delta
	for _, c := range changes {
		d := c.Delta
		if c.merged != nil {
			name, err := r.Journal.Put(c.merged)
			if err != nil {
				return nil, err
			}
			d.After = c.Before
			d.After.Digest, d.After.Size = name, int64(len(c.merged))
			if changesMode(c.After, c.Before) {
				d.After.Mode = c.After.Mode
			}
		}
		list = append(list, d)
	}
	return list, nil
}

const (
	askName     = "ask about judges" // the step that decides to ask about files that judge
	failsInCopy = "The check passes in the tree, but fails in a clean copy of it in which nothing but the check was run. It must pass there too, so it must not depend on the tree's path, or on a process or a file outside the tree"
)

// judgesAsked is the record of the step askName: the files that are taken back, and asked
// about.
type judgesAsked struct {
	Back     []workspace.Delta `json:"back"`
	Reason   string            `json:"reason"`
	Words    string            `json:"words,omitempty"` // the model's last
	Findings []check.Finding   `json:"findings"`        // of the check without them
}

// Only a file can be asked about, not a link.
func (a judgesAsked) questions() (vs []workspace.Verdict) {
	image := func(e workspace.Entry) workspace.Image {
		return workspace.Image{Digest: e.Digest, Size: e.Size, Mode: uint32(e.Mode)}
	}
	for _, t := range a.Back {
		was, is := t.After, t.Before
		if (was.Digest == "") == (was.Kind == "") && (is.Digest == "") == (is.Kind == "") {
			v := workspace.Verdict{Path: t.Path, Ruling: workspace.Ask, Reason: a.Reason, Before: image(was), After: image(is)}
			if v.ChangesMode() {
				v.Reason += fmt.Sprintf("; its mode becomes %04o instead of %04o", v.After.Mode, v.Before.Mode)
			}
			vs = append(vs, v)
		}
	}
	return vs
}

// c is the record of the check, and the tree is as it left it. The returned record is the one that counts.
func (r *Run) confirm(ctx context.Context, round int, c history.Checked) (history.Checked, error) {
	if r.Trust.Copied == nil || r.Trust.Proof == nil && r.Trust.Judges.IsZero() {
		return c, nil
	}
	now, err := r.readManifest(c.Manifest)
	if err != nil {
		return c, err
	}
	changes, err := r.changedJudges(now, r.isJudge)
	if err != nil {
		return c, err
	}
	if r.Trust.Proof == nil && len(changes) == 0 && len(c.Lacks) == 0 && (len(r.changes(r.found, now)) > 0 || !r.failedBefore()) {
		return c, nil
	}
	first := !r.wasUnconfirmed()
	p, err := r.inspect(ctx, history.StepConfirm, func(ctx context.Context) (history.Checked, error) {
		if known, ok := r.copiesOf(c.Tree); ok {
			return known, nil
		}
		return r.checkCopies(ctx, changes)
	})
	if err != nil || !check.Blocking(p.Findings) || onlyBroken(p.Findings) || len(p.Judges) == 0 || first && round < r.Limits.MaxRounds() {
		return p, err
	}
	asked, err := Step(ctx, r, askName, nil, func(context.Context) (a judgesAsked, err error) {
		a = judgesAsked{Reason: history.AboutJudges, Findings: p.Findings}
		if len(p.Lacks) > 0 {
			a.Reason += "; in a clean copy the check fails in any case, because that lacks " + listed(p.Lacks)
		}
		if a.Words, err = r.lastWords(); err == nil {
			a.Back, err = r.targets(changes)
		}
		return a, err
	})
	if err != nil {
		return c, err
	}
	return r.completeAsking(ctx, c, asked)
}

// copiesOf returns what the check last found in clean copies, if that was of this very tree, in this
// process, and nothing was applied or answered since: a round that changes nothing costs no second proof.
func (r *Run) copiesOf(tree string) (c history.Checked, ok bool) {
	for _, e := range slices.Backward(r.Past().Events()) {
		switch p := e.Payload.(type) {
		case history.Applied, history.Answer, history.Resumed:
			return c, false
		case history.Checked:
			if e.Step != nil && e.Step.Name == history.StepConfirm {
				known := history.Checked{Findings: p.Findings, Lacks: p.Lacks, Judges: p.Judges}
				return known, p.Tree == tree && !onlyBroken(p.Findings)
			}
		}
	}
	return c, false
}

func (r *Run) failedBefore() bool {
	return slices.ContainsFunc(r.Past().Records("check"), func(e history.Event) bool {
		c, ok := e.Payload.(history.Checked)
		return ok && check.Blocking(c.Findings)
	})
}

func (r *Run) wasUnconfirmed() bool {
	return slices.ContainsFunc(r.Past().Records(history.StepConfirm), func(e history.Event) bool {
		c, ok := e.Payload.(history.Checked)
		return ok && (e.Step.Round < r.at.Round || e.Step.Part < r.at.Part) && check.Blocking(c.Findings)
	})
}

// checkCopies runs the check in clean copies of the tree: as the tree is, if the check is
// to be proved or nothing that judges has changed, and with what judges as it must be.
func (r *Run) checkCopies(ctx context.Context, changes []judgeChange) (c history.Checked, err error) {
	alone := r.Trust.Proof != nil || len(changes) == 0
	if alone {
		found, lacks, err := r.checkCopy(ctx, nil)
		if err != nil || check.Blocking(found) {
			why := failsInCopy
			if len(lacks) > 0 {
				why += ", nor on what commands left in files that git ignores: " + listed(lacks)
			}
			return history.Checked{Findings: copyFindings(found, why+". In the copy it reports:\n\n"), Lacks: lacks}, err
		}
	}
	if len(changes) == 0 {
		return c, nil
	}
	found, _, err := r.checkCopy(ctx, changes)
	if err != nil || !check.Blocking(found) {
		return c, err
	}
	for _, one := range changes {
		c.Judges = append(c.Judges, one.Path)
	}
	if !alone {
		own, lacks, err := r.checkCopy(ctx, nil)
		if err != nil {
			return c, err
		}
		if check.Blocking(own) {
			c.Lacks = lacks
		}
	}
	c.Findings = copyFindings(found, "")
	return c, nil
}

// judgesNote tells the model what the findings of the round before are about, if its check
// passed only with changes to what judges. It is derived from the records, so that the user,
// who is not its reader, does not see it with each run of the check.
func (r *Run) judgesNote() (notes []check.Finding, err error) {
	note := func(e journal.Event, text string, judges []string) {
		if len(judges) > 0 && e.Step.Round == r.at.Round-1 {
			notes = []check.Finding{{Source: SourceProof, Advisory: true, Text: fmt.Sprintf(text, listed(judges))}}
		}
	}
	for _, e := range r.Past().Records(history.StepConfirm) {
		c, _ := e.Payload.(history.Checked)
		note(e.Event, "The check passes only with the changes to %s. That is part of the check: with it as the run found it, in a clean copy, the check reports what follows. "+
			"If there is a right way without these changes, take them back and use it. If there is none, change nothing, and say in one sentence why the changes are right: "+
			"the user is asked, and reads the diff and your answer.", c.Judges)
	}
	for _, e := range r.Past().Records(askName) {
		asked, err := result[judgesAsked](r, e.Event)
		if err != nil {
			return nil, err
		}
		note(e.Event, "hone took back the changes to %s, with which the check passed, and asked the user for them. The user has not allowed them: make the check pass without them.", asked.paths())
	}
	return notes, nil
}

func (a judgesAsked) paths() (paths []string) {
	for _, t := range a.Back {
		paths = append(paths, t.Path)
	}
	return paths
}

// lacks are the ignored files that the copy lacks.
func (r *Run) checkCopy(ctx context.Context, changes []judgeChange) (found []check.Finding, lacks []string, err error) {
	list, err := r.targets(changes)
	if err != nil {
		return nil, nil, err
	}
	err = r.withCopies(func(make copier) error {
		var dir string
		if dir, lacks, err = make(ctx, "0", list); err != nil {
			return err
		}
		if found, err = r.Trust.Copied(ctx, dir); err == nil {
			found, _, err = r.New(found)
		}
		for i := range found {
			found[i].Text = strings.ReplaceAll(found[i].Text, dir, r.Tree.Dir())
		}
		if err != nil || check.Blocking(found) || len(list) == 0 {
			return err
		}
		tree, err := r.Tree.OpenCopy(dir)
		if err != nil {
			return err
		}
		defer tree.Close()
		for _, d := range list { // a file that the run did not find may be one that the user's own check writes
			if d.After.Kind == workspace.Regular && !tree.Holds(d.Path, workspace.Image{Digest: d.After.Digest}) {
				found = append(found, check.Finding{Source: sourceWritten, File: d.Path, Text: "While the check ran in a clean copy, " + d.Path +
					" changed, which is part of the check, so the pass proves nothing. What the check runs must not write what judges it."})
			}
		}
		return tree.Fault()
	})
	return found, lacks, err
}

// sourceWritten is the source of a finding about a file that judges and that the check wrote.
const sourceWritten = "written"

// copier makes a clean copy of the tree and restores some files in it. A copy replaces an
// earlier one of the same name. lacks are the ignored files that are not in the copy.
type copier func(ctx context.Context, name string, back []workspace.Delta) (dir string, lacks []string, err error)

// withCopies removes the copies after do.
func (r *Run) withCopies(do func(copier) error) (err error) {
	history.RemoveScratch(r.Journal.Run())
	top, err := os.MkdirTemp("", history.ScratchPrefix(r.Journal.Run()))
	if err != nil {
		return fmt.Errorf("copy the tree: %w", err)
	}
	defer func() { err = errors.Join(err, clone.Remove(top)) }()
	edited, began := map[string]bool{}, r.Past().First().Time
	for _, v := range r.Past().Facts().Edits {
		edited[v.Path] = true
	}
	// What belongs in a clean copy: what git sees, what has not changed since the run began, and what an edit of the run wrote.
	belongs := func(path string, changed time.Time) bool {
		_, listed := r.last.Entry(path)
		return listed || edited[path] || changed.Before(began)
	}
	return do(func(ctx context.Context, name string, back []workspace.Delta) (dir string, lacks []string, err error) {
		// The copy has the name of the original directory, because some checks depend on it.
		place := filepath.Join(top, name)
		dir = filepath.Join(place, filepath.Base(r.Tree.Dir()))
		if err = clone.Remove(place); err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			lacks, err = clone.Clean(ctx, r.Tree, dir, belongs)
		}
		if err == nil && len(back) > 0 {
			var tree *workspace.Tree
			if tree, err = r.Tree.OpenCopy(dir); err == nil {
				_, err = tree.Apply(ctx, back, r.Journal.Home().OpenObject)
				tree.Close()
			}
		}
		if err != nil {
			err = fmt.Errorf("copy the tree: %w", err)
		}
		return dir, lacks, err
	})
}

func copyFindings(found []check.Finding, why string) []check.Finding {
	var findings []check.Finding
	for _, f := range found {
		if !f.Blocks() {
			continue
		}
		if len(findings) == 0 && f.Source != sourceWritten {
			f.Text = why + f.Text
		}
		f.Source = SourceProof
		findings = append(findings, f)
	}
	return findings
}

// completeAsking asks what is recorded in asked, which no flag answers. passed is the check's record with the changes.
func (r *Run) completeAsking(ctx context.Context, passed history.Checked, asked judgesAsked) (c history.Checked, err error) {
	_, err = Step(ctx, r, history.StepRestore, nil, func(ctx context.Context) (history.Snapshot, error) { return r.putBack(ctx, asked.Back) })
	if err != nil {
		return passed, err
	}
	vs := asked.questions()
	ch, err := history.RecordedChange(r.Journal.Home(), vs)
	if err != nil {
		return passed, err
	}
	made, err := r.carryOut(ctx, ch, vs, map[string]string{})
	if err != nil {
		return passed, err
	}
	c = passed
	if !made || len(vs) < len(asked.Back) || slices.ContainsFunc(vs, func(v workspace.Verdict) bool { return v.Ruling != workspace.Allow }) {
		c.Findings = asked.Findings
	}
	c.Manifest, c.Tree, err = r.manifest(ctx)
	return c, err
}
