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
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/git"
	"hone/internal/render"
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
	end, ok := r.Past.End()
	switch {
	case r.Working || !ok:
		return failure.Usage("run "+r.ID+" has not ended, so there is nothing to attest", "hone resume "+named)
	case r.Start.Redacted:
		return failure.Usage("the texts of run "+r.ID+" were replaced, so that nothing says what checked it", "ask for an export without --redacted")
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: receiptType, Predicate: receiptOf(r, end)}
	tree := s.Predicate.Check.Tree
	switch {
	case f.commit != "":
		id, err := committed(ctx, r, f.commit)
		if err != nil {
			return err
		}
		s.Subject = []subject{{filepath.Base(r.Home.Workspace()), map[string]string{"gitCommit": id}}}
	case tree == "" && !f.trailer:
		return failure.Usage("run "+r.ID+" saw no tree with a check", "name the commit that has its work: hone receipt "+named+" --commit HEAD")
	default:
		s.Subject = []subject{{"files of " + filepath.Base(r.Home.Workspace()), map[string]string{"sha256": tree}}}
	}
	if f.trailer {
		p := s.Predicate
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

func receiptOf(r *report.Run, end history.End) receipt {
	past := r.Past
	n := story.NumbersOf(past, past.Ledger(), 0)
	p := receipt{Version: r.Start.Version, Run: r.ID, Loop: r.Start.Loop, Began: past.First().Time, Ended: past.Last().Time, Result: end.Kind,
		Rounds: n.Rounds, Tokens: n.Tokens, Unconfirmed: n.Unconfirmed, Cost: n.Cost, Models: []string{}, Judges: []string{},
		Journal: journalReceipt{past.Last().Hash(), len(past.Events())}}
	var set loop.Settings
	_ = json.Unmarshal(r.Start.Settings, &set) // a loop with a judge of its own has no check there
	if p.Check.Command = set.Check; set.Check != "" {
		p.Check.SHA256 = workspace.Digest([]byte(set.Check))
	}
	if before, ok := past.Before(); ok {
		p.Check.Before = check.Count(check.BlockingOf(before.Findings))
	}
	p.Check.After = check.Count(check.BlockingOf(end.Findings))
	if last, ok := past.LastCheck(); ok {
		p.Check.Tree, p.Check.Old = last.Tree, last.Old
		p.Check.Verified = end.Kind == history.KindDone && p.Check.After == 0
	}
	for _, asked := range history.Of[history.Reserve](past.Events()) {
		if asked.Model != "" && !slices.Contains(p.Models, asked.Model) {
			p.Models = append(p.Models, asked.Model)
		}
	}
	for _, w := range history.Of[history.Walls](past.Events()) {
		p.Walls = &w
	}
	for _, q := range past.Asked() {
		if answer, ok := past.AnswerTo(q); ok && q.AboutJudges() && answer.Approved && !slices.Contains(p.Judges, q.Path) {
			p.Judges = append(p.Judges, q.Path)
		}
	}
	return p
}

// committed returns the id of a commit that has all files as the run left them.
func committed(ctx context.Context, r *report.Run, revision string) (string, error) {
	named := r.ID + failure.Elsewhere(r.Home.Workspace())
	repo, err := git.OpenAt(r.Home.Workspace())
	if err != nil {
		return "", failure.Usage(fmt.Sprintf("--commit %s: %v", revision, err), "hone receipt "+named+", whose subject is the tree")
	}
	id, err := repo.CommitID(ctx, revision)
	if err != nil {
		return "", failure.Usage(err.Error(), "git log lists the commits")
	}
	blobs, err := repo.Blobs(ctx, id)
	if err != nil {
		return "", err
	}
	changes, err := r.Past.AllChanges(r.Home.Get)
	if err != nil {
		return "", err
	}
	for _, d := range changes {
		same := blobs[d.Path] == ""
		if d.Op() != workspace.Removed {
			content, err := r.Home.Get(d.After.Digest)
			same = err == nil && git.IsBlob(blobs[d.Path], content)
		}
		if !same {
			return "", failure.Usage(fmt.Sprintf("commit %.12s does not have %s as the run left it", id, render.Line(d.Path)), "commit the run's work, then: hone receipt "+named+" --commit HEAD")
		}
	}
	return id, nil
}
