package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone/check"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/history"
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
