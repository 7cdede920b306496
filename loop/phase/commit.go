package phase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/history"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop/phase/spec"
	"hone/workspace"
)

// The trailers of hone's commits: the run, the attempt within the step, and a
// digest of the specifications by which a phase passed.
const (
	trailerRun     = "Hone-Run"
	trailerAttempt = "Hone-Attempt"
	trailerSpecs   = "Hone-Specs"
)

// A commit is made whether or not something has changed (ruling A6). Its run and attempt, from 1, identify it, so that it is
// made only once.
func (l *Loop) commit(ctx context.Context, r *hone.Run, repo, point string, attempt int) error {
	trailers := []string{trailerRun + ": " + r.Journal.Run()}
	if attempt > 1 {
		trailers = append(trailers, fmt.Sprintf("%s: %d", trailerAttempt, attempt))
	}
	_, err := hone.Step(ctx, r, "commit", []any{repo, point, attempt}, func(ctx context.Context) (history.Report, error) {
		return l.commitIn(ctx, r.Tree, repo, point, trailers)
	})
	return err
}

// Logs and files that are too large to be read are left out.
func (l *Loop) commitIn(ctx context.Context, tree *workspace.Tree, repo, point string, trailers []string) (history.Report, error) {
	c := git.Commit{Subject: fmt.Sprintf("phase%d/%s", l.Phase, point), Trailers: trailers, MaxFile: tree.MaxRead()}
	if repo == Tests {
		c.Exclude = []string{path.Base(Results)}
	}
	// If a role has broken its repository, Open would find the user's own in a parent
	// directory.
	at, err := l.Git.Init(ctx, filepath.Join(tree.Dir(), repo))
	if err != nil {
		return history.Report{}, err
	}
	made, err := at.Commit(ctx, c)
	if err != nil {
		return history.Report{}, err
	}
	said := fmt.Sprintf("commit %.7s in %s: %s", made.ID, repo, c.Subject)
	if len(made.TooLarge) > 0 {
		said += fmt.Sprintf("; without files larger than %s: %s", render.Bytes(c.MaxFile), render.Names(made.TooLarge))
	}
	return history.Report{Said: said}, nil
}

// passedPoint is the subject's end in the commit that records a passed phase.
const passedPoint = "passed"

// It is the message of that commit in a repository; empty if there is none.
func passedMessage(ctx context.Context, g *git.Git, dir string, phase int) (string, error) {
	at, err := g.Init(ctx, dir)
	if err != nil {
		return "", err
	}
	_, message, err := at.FindCommit(ctx, fmt.Sprintf("phase%d/%s", phase, passedPoint))
	return message, err
}

// HasPassed reports whether both repositories of a project record that a phase
// passed by its current specifications.
func HasPassed(ctx context.Context, g *git.Git, root string, phase int) (bool, error) {
	sum, err := specsDigest(root, phase)
	if err != nil {
		return false, err
	}
	for _, repo := range []string{Src, Tests} {
		dir := filepath.Join(root, repo)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		message, err := passedMessage(ctx, g, dir, phase)
		if err != nil || !strings.Contains(message, trailerSpecs+": "+sum) {
			return false, err
		}
	}
	return true, nil
}

func specsDigest(dir string, phase int) (string, error) {
	specs, err := spec.Read(dir, phase)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, s := range specs {
		fmt.Fprintf(h, "%s\x00%s\x00", s.Path, s.Text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// Finish records in both repositories that a phase has passed. It does nothing for
// any other end, and may be called again.
func (l *Loop) Finish(ctx context.Context, r *hone.Run, end hone.End) error {
	if end.Kind != hone.KindDone {
		return nil
	}
	sum, err := specsDigest(r.Tree.Dir(), l.Phase)
	if err != nil {
		return err
	}
	trailers := []string{trailerRun + ": " + r.Journal.Run(), trailerSpecs + ": " + sum}
	for _, repo := range []string{Src, Tests} {
		if message, err := passedMessage(ctx, l.Git, filepath.Join(r.Tree.Dir(), repo), l.Phase); err == nil && strings.Contains(message, trailers[0]) {
			continue // an earlier process made the commit
		}
		if _, err := l.commitIn(ctx, r.Tree, repo, passedPoint, trailers); err != nil {
			return fmt.Errorf("record that phase %d passed: %w", l.Phase, err)
		}
	}
	return nil
}

// Summary returns how a phase ended: that it passed, or what it is stuck on
// (ruling A11). It is empty for an end that is neither.
func (l *Loop) Summary(r *hone.Run, end hone.End) string {
	if end.Kind == hone.KindDone {
		by := ""
		if last, ok, err := hone.Last[suiteRun](r, stepSuite); err == nil && ok && last.Absent {
			by = " by the verifier's report alone"
		}
		text := fmt.Sprintf("✓ Phase %d passed%s\n", l.Phase, by)
		due, err := l.dueItems(r)
		names, other := l.unseen(r, due)
		if err == nil && other == nil && len(names) > 0 {
			text += "hone did not see these points fail; review their tests:\n"
			for _, name := range names {
				text += "  " + render.Line(name) + "\n"
			}
		}
		return text
	}
	if !slices.Contains([]hone.Kind{hone.KindRounds, hone.KindStuck, hone.KindBlocked}, end.Kind) {
		return ""
	}
	var b strings.Builder
	contracts, logs := fromSource(end.Findings, sourceContract), append(fromSource(end.Findings, sourceHealth), fromSource(end.Findings, sourceServer)...)
	var see []string
	if len(contracts) > 0 {
		see = []string{failedPath}
	}
	for _, f := range logs {
		see = append(see, logName(f.Source))
	}
	if see == nil {
		see = []string{"what the check reports"}
	}
	fmt.Fprintf(&b, "✗ Phase %d is STUCK — see %s\n", l.Phase, strings.Join(see, ", "))
	for _, f := range contracts {
		fmt.Fprintf(&b, "\n%s\n", render.Escape(strings.TrimSpace(f.Text)))
	}
	for _, f := range logs {
		fmt.Fprintf(&b, "\n%s, the end of it:\n%s\n", logName(f.Source), render.Escape(tail(f.Text, 20)))
	}
	return b.String()
}

func logName(source string) string {
	if source == sourceServer {
		return devLog
	}
	return lintLog
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
