package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone/check"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/git"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/story"
	"hone/workspace"
)

type receiptFlags struct {
	dir     string
	commit  string
	trailer bool
}

func (a *app) receiptCommand() *cobra.Command {
	var f receiptFlags
	c := helped("receipt", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error { return a.receipt(c.Context(), f, runArg(args)) },
	})
	registerDir(c, &f.dir)
	c.Flags().StringVar(&f.commit, "commit", "", "make `COMMIT` the subject, such as HEAD")
	c.Flags().BoolVar(&f.trailer, "trailer", false, "print trailers for the message of a commit instead, without blanks in their values")
	return c
}

// statement is an in-toto statement, version 1.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     receipt   `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// receiptType names this form of a predicate. Its fields are in docs/receipts.md.
const receiptType = "urn:hone:receipt:v1"

type receipt struct {
	Version     string         `json:"hone"`
	Run         string         `json:"run"`
	Loop        string         `json:"loop"`
	Began       time.Time      `json:"began"`
	Ended       time.Time      `json:"ended"`
	Result      history.Kind   `json:"result"`
	Undone      *int           `json:"undone_to_round,omitempty"` // 0: before the first; null: it was not undone, or was redone
	Check       checkReceipt   `json:"check"`
	Models      []string       `json:"models"`
	Rounds      int            `json:"rounds"`
	Tokens      int64          `json:"tokens"`
	Unconfirmed int64          `json:"unconfirmed_tokens"`
	Cost        *float64       `json:"cost_usd"` // null: not known
	Walls       *history.Walls `json:"walls"`    // null: no command ran
	Judges      []string       `json:"judges_changed"`
	Journal     journalReceipt `json:"journal"`
}

type checkReceipt struct {
	Command  string `json:"command,omitempty"` // empty if the loop has a judge of its own
	SHA256   string `json:"sha256,omitempty"`  // of the command
	Tree     string `json:"tree,omitempty"`    // hone's digest of the files that it saw
	Before   int    `json:"findings_before"`
	After    int    `json:"findings_after"`
	Old      int    `json:"findings_not_counted,omitempty"` // of before the run, with --only-new
	Verified bool   `json:"verified"`                       // it ran, and passed
	// Run is the run that it belongs to, if that is an attempt of this one.
	Run string `json:"run,omitempty"`
	// Directory is the part of the commit that was compared; empty if that is all of it.
	Directory string `json:"directory,omitempty"`
	// Apart are files that it may have seen, and that were not compared with the commit.
	Apart []string `json:"not_compared,omitempty"`
}

type journalReceipt struct {
	Head   string `json:"head_sha256"`
	Events int    `json:"events"`
}

func (a *app) receipt(ctx context.Context, f receiptFlags, ref string) error {
	r, err := report.Open(f.dir, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	named := r.ID + failure.Elsewhere(r.Home.Workspace())
	end, ok := r.Past.Facts().End, r.Past.Facts().Ended
	switch {
	case r.Working || !ok:
		return failure.Usage("run "+r.ID+" has not ended, so there is nothing to attest", "hone resume "+named)
	case r.Start.Redacted:
		return failure.Usage("the texts of run "+r.ID+" were replaced, so that nothing says what checked it", "ask for an export without --redacted")
	}
	judged, err := judgedRun(r)
	if err != nil {
		return err
	}
	if judged != r {
		defer judged.Close()
	}
	saw, err := seenBy(judged)
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: receiptType, Predicate: receiptOf(r, end, saw)}
	p := &s.Predicate
	redo := fmt.Sprintf("hone undo %s --to-round %d", named, r.Past.Facts().State.Round)
	switch {
	case f.commit != "":
		if p.Undone == nil {
			redo = ""
		}
		c, err := saw.compare(ctx, r.Home.Workspace(), f.commit, named, redo)
		if err != nil {
			return err
		}
		if p.Check.Apart = c.apart; c.below != "." {
			p.Check.Directory = c.below
		}
		s.Subject = []subject{{filepath.Base(r.Home.Workspace()), map[string]string{"gitCommit": c.id}}}
	case f.trailer && p.Undone != nil:
		return failure.Usage("run "+r.ID+" was undone, so a commit of the files would not have its work", redo+" redoes it")
	case p.Check.Tree == "" && !f.trailer:
		return failure.Usage("run "+r.ID+" saw no tree with a check", "name the commit that has its work: hone receipt "+named+" --commit HEAD")
	default:
		s.Subject = []subject{{"files of " + filepath.Base(r.Home.Workspace()), map[string]string{"sha256": p.Check.Tree}}}
	}
	if f.trailer {
		_, err = fmt.Fprintf(a.out, "Hone-Run: %s\nHone-Result: %s\nHone-Model: %s\nHone-Check-Sha256: %s\nHone-Journal-Sha256: %s\n",
			p.Run, p.Result, strings.Join(p.Models, ","), p.Check.SHA256, p.Journal.Head)
		return err
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		_, err = fmt.Fprintln(a.out, string(out))
	}
	return err
}

func receiptOf(r *report.Run, end history.End, saw seen) receipt {
	past := r.Past
	n := story.NumbersOf(past, past.Facts().Ledger, 0)
	p := receipt{Version: r.Start.Version, Run: r.ID, Loop: r.Start.Loop, Began: past.First().Time, Ended: past.Last().Time, Result: end.Kind, Undone: past.UndoneTo(),
		Rounds: n.Rounds, Tokens: n.Tokens, Unconfirmed: n.Unconfirmed, Cost: n.Cost, Models: []string{}, Judges: []string{},
		Journal: journalReceipt{past.Last().Hash(), len(past.Events())}}
	for _, asked := range history.Of[history.Reserve](past.Events()) {
		if asked.Model != "" && !slices.Contains(p.Models, asked.Model) {
			p.Models = append(p.Models, asked.Model)
		}
	}
	judged := saw.run.Past
	var set loop.Settings
	_ = json.Unmarshal(saw.run.Start.Settings, &set) // a loop with a judge of its own has no check there
	if p.Check.Command = set.Check; set.Check != "" {
		p.Check.SHA256 = workspace.Digest([]byte(set.Check))
	}
	if before := judged.Facts().Before; before != nil {
		p.Check.Before = check.Count(check.BlockingOf(before.Findings))
	}
	left := judged.Facts().End
	p.Check.After = check.Count(check.BlockingOf(left.Findings))
	p.Check.Tree, p.Check.Old, p.Check.Verified = saw.check.Tree, saw.check.Old, saw.passed && left.Kind == history.KindDone
	if saw.run != r {
		p.Check.Run = saw.run.ID
	}
	for _, w := range history.Of[history.Walls](judged.Events()) {
		p.Walls = &w
	}
	judges := kinds.Judges(saw.run.Start, saw.run.Past, saw.run.Home.Get)
	changes := saw.changes
	if !saw.passed { // what was taken back since the last check is no change
		if all, err := saw.run.Past.AllChanges(saw.run.Home.Get); err == nil {
			changes = all
		}
	}
	for _, d := range changes {
		if judges(d.Path) {
			p.Judges = append(p.Judges, d.Path)
		}
	}
	return p
}

// judgedRun returns the run whose check a receipt is about: the attempt whose changes the run applied, which the
// caller must close, or else the run itself.
func judgedRun(r *report.Run) (*report.Run, error) {
	var attempt history.Attempt
	for _, one := range r.Past.Attempts() {
		if one.Applied {
			attempt = one
		}
	}
	if take, ok := kinds.Recorded(r.Start).(*attempts.Taking); ok {
		attempt = history.Attempt{Number: take.Number, Dir: take.Dir, Run: take.Run}
	}
	if attempt.Run == "" {
		return r, nil
	}
	home := report.Copy(attempt)
	if home == nil {
		return nil, failure.Usage(fmt.Sprintf("the copy of attempt %d was removed, and with it the run that has its check", attempt.Number), "start the attempts again")
	}
	judged, err := report.Read(home, attempt.Run)
	if err != nil {
		home.Close()
	}
	return judged, err
}

// seen is what the check of a run saw last.
type seen struct {
	run     *report.Run
	check   history.Checked    // that passed, or else the last one; zero if none ran
	passed  bool               // with the tree that the run was done with
	tree    workspace.Manifest // without a check, that of the last decision
	changes []workspace.Delta  // of the run, up to that tree
}

func seenBy(r *report.Run) (s seen, err error) {
	s.run = r
	events, at, object := r.Past.Events(), 0, ""
	for i, e := range events {
		switch v := e.Payload.(type) {
		case history.Checked:
			if v.From == "" {
				s.check, at = v, i
			}
		case history.State:
			if s.check.Manifest == "" {
				object, at = v.Manifest, i
			}
		}
	}
	if record, ok := r.Past.Passed(); ok {
		s.check, s.passed = record.Payload.(history.Checked), true
		at = slices.IndexFunc(events, func(e history.Event) bool { return e.Seq == record.Seq })
	}
	if s.check.Manifest != "" {
		object = s.check.Manifest
	}
	if object == "" {
		return s, nil
	}
	series := workspace.Series{Get: r.Home.Get}
	if _, err = series.MoveTo(object); err != nil {
		return s, err
	}
	s.tree = series.Manifest()
	var until []journal.Event
	for _, e := range events[:at+1] {
		until = append(until, e.Event)
	}
	s.changes, err = history.Read(until).AllChanges(r.Home.Get)
	return s, err
}

// comparison is that of a commit with what a check saw.
type comparison struct {
	below string   // the run's directory in the repository: "." for the whole
	id    string   // of the commit
	apart []string // files that are not compared, from the run's directory
}

// compare finds out whether a commit has exactly the files that the check saw. Not
// compared are files that no commit can have, because git ignores them or they are in another repository; those that hone did not
// read or did not store, because they have a key; and the loop's own. It refuses files of a submodule, which are another repository's, but belong to the commit.
// run is for a command line; redo is the command that redoes an undone run, or empty.
func (s seen) compare(ctx context.Context, dir, revision, run, redo string) (c comparison, err error) {
	instead := "hone receipt " + s.run.ID + failure.Elsewhere(s.run.Home.Workspace()) + ", whose subject is the tree"
	top, err := git.Root(dir)
	if err != nil {
		return c, failure.Usage(fmt.Sprintf("--commit %s: %v", revision, err), instead)
	}
	repo, err := git.OpenAt(dir)
	if err != nil {
		return c, err
	}
	if c.id, err = repo.CommitID(ctx, revision); err != nil {
		return c, failure.Usage(err.Error(), "git log lists the commits")
	}
	if c.below, err = filepath.Rel(top, dir); err != nil {
		return c, err
	}
	c.below = filepath.ToSlash(c.below)
	own := s.run.Own()
	var files workspace.Manifest
	for _, e := range s.tree {
		unstored := e.Kind == workspace.Regular && !s.run.Home.Has(e.Digest) // it has a key
		if e.Kind == workspace.Other || e.Note != "" || unstored || e.IsUnread() || own != nil && own(e.Path) || inRepository(dir, e.Path) {
			c.apart = append(c.apart, e.Path)
			continue
		}
		e.Path = path.Join(c.below, e.Path)
		files = append(files, e)
	}
	scratch, err := os.MkdirTemp("", "hone-receipt-")
	if err != nil {
		return c, fmt.Errorf("write the files that the check saw: %w", err)
	}
	defer os.RemoveAll(scratch)
	tree, err := workspace.Open(scratch, workspace.Options{Scratch: true})
	if err != nil {
		return c, err
	}
	defer tree.Close()
	if err := history.WriteTree(ctx, tree, files, s.run.Home); err != nil {
		return c, err
	}
	is, err := repo.Compare(ctx, c.id, tree.Dir(), c.below)
	if err != nil {
		return c, err
	}
	for _, module := range is.Submodules {
		if slices.ContainsFunc(s.tree, func(e workspace.Entry) bool { return strings.HasPrefix(path.Join(c.below, e.Path), module+"/") }) {
			return c, failure.Usage(fmt.Sprintf("commit %.12s has the submodule %s, whose files hone does not compare", c.id, render.Line(module)), instead)
		}
	}
	again := "then: hone receipt " + run + " --commit HEAD; or check them as they are now with a new run"
	for i, paths := range [][]string{is.Changed, is.Missing, is.Extra} {
		for _, p := range paths {
			name := c.inRun(p)
			if slices.Contains(c.apart, name) || own != nil && own(name) {
				continue
			}
			how, next := "does not have %s as the run left it", "commit the files as they were when the check ran, "+again
			if i == 2 {
				how = "has %s, which was not there when the check ran"
			}
			if redo != "" && slices.ContainsFunc(s.changes, func(d workspace.Delta) bool { return d.Path == name }) {
				next = redo + ", commit the files, " + again
			}
			return c, failure.Usage(fmt.Sprintf("commit %.12s "+how, c.id, render.Line(name)), next)
		}
	}
	for _, p := range is.Ignored {
		c.apart = append(c.apart, c.inRun(p))
	}
	slices.Sort(c.apart)
	return c, nil
}

func (c comparison) inRun(p string) string {
	return strings.TrimPrefix(p, strings.TrimPrefix(c.below+"/", "./"))
}

// inRepository reports whether a file is in a repository below the directory.
func inRepository(dir, file string) bool {
	for at := path.Dir(file); at != "."; at = path.Dir(at) {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(at), ".git")); err == nil {
			return true
		}
	}
	return false
}
