package phase

import (
	"cmp"
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
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/excerpt"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop/phase/spec"
	"hone/workspace"
)

// It returns what the failed health check printed, also if the budget does not pay for another attempt.
func (l *Loop) build(ctx context.Context, r *hone.Run, prior []check.Finding) (unhealthy []check.Finding, err error) {
	for attempt := 1; ; attempt++ {
		messages, err := l.compose(ctx, r, toBuild, prior)
		if err != nil {
			return nil, err
		}
		if _, err := l.talkIn(ctx, r, l.Builder, messages); err != nil {
			if !hone.OutOfBudget(err) {
				unhealthy = nil
			}
			return unhealthy, err
		}
		if err := l.commit(ctx, r, Src, fmt.Sprintf("build/step-%d/pre-deterministic", r.Round()), attempt); err != nil {
			return nil, err
		}
		h, err := l.health(ctx, r)
		if err != nil {
			return nil, err
		}
		if h.Healthy {
			return nil, l.commit(ctx, r, Src, fmt.Sprintf("build/step-%d/post-deterministic", r.Round()), attempt)
		}
		unhealthy = []check.Finding{{Source: sourceHealth, Text: h.Log}}
		if attempt >= max(1, l.HealthAttempts) {
			return unhealthy, nil
		}
		prior = append(unhealthy, slices.DeleteFunc(slices.Clone(prior), func(f check.Finding) bool { return f.Source == sourceHealth })...)
	}
}

type health struct {
	Healthy bool `json:"healthy"`
	// The report's Log is what the hook printed and logged.
	history.Report
}

// It writes lint.log for the user if the hook only prints, or logs elsewhere, as the hooks of ABL's later layout (ruling A15).
func (l *Loop) health(ctx context.Context, r *hone.Run) (health, error) {
	return repeatable(ctx, r, "health check", func(ctx context.Context) (health, error) {
		dir := r.Tree.Dir()
		logs, stale := []string{lintLog}, []string{devLog}
		for _, other := range l.Logs {
			logs, stale = append(logs, other+"/lint.log", other+"/health.log"), append(stale, other+"/dev.log")
		}
		// The hook runs the builder's code, which must not see what the server wrote about
		// the verifier's requests.
		for _, name := range append(stale, logs...) {
			if err := artifact.Remove(dir, name); err != nil {
				return health{}, err
			}
		}
		said, err := l.Hooks.Call(ctx, "health_check")
		if err != nil {
			return health{}, err
		}
		if line := unwritableLog.FindString(said.Output); line != "" && said.Exit != 0 {
			return health{}, noLog(line)
		}
		var written []string
		for _, name := range logs {
			text, err := artifact.Read(dir, name, maxLog)
			switch {
			case err == nil:
				written = append(written, string(text))
			case !errors.Is(err, fs.ErrNotExist):
				written = append(written, "("+err.Error()+")")
			}
		}
		written = append(written, said.Output)
		if _, err := os.Lstat(filepathIn(r, lintLog)); errors.Is(err, fs.ErrNotExist) {
			if err := artifact.Write(dir, lintLog, strings.NewReader(strings.Join(written, ""))); err != nil {
				return health{}, noLog(err.Error())
			}
		}
		h := health{Healthy: said.Exit == 0, Report: history.Report{Said: "passed"}}
		if !h.Healthy {
			h.Said = "failed, see " + lintLog
			h.Log = cmp.Or(l.readable(written...), fmt.Sprintf("(the health check failed with exit status %d and printed nothing)", said.Exit))
		}
		return h, nil
	})
}

// The health check cannot say what is wrong, which is not the builder's fault (ruling A15).
func noLog(why string) error {
	return &hone.Stop{Kind: hone.KindFailed, Why: "the health check could not write its log: " + why, Next: hone.Next{Verb: hone.Resume,
		First: "change health_check in " + HooksName + " so that it writes its log to " + Results + "/ or " + LogDir + "/"}}
}

// maxLog limits how much of a log is read, and maxExcerpt how much of it a report
// contains, in bytes.
const (
	maxLog     = 16 << 20
	maxExcerpt = 48 << 10
)

// It has no secrets, and lacks the middle of a long text.
func (l *Loop) readable(texts ...string) string { return l.shortened(maxExcerpt, texts...) }

// most is in bytes.
func (l *Loop) shortened(most int, texts ...string) string {
	var parts []string
	for _, text := range texts {
		text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
		if text != "" {
			parts = append(parts, l.Guard.Redact(text))
		}
	}
	return excerpt.Middle(strings.Join(parts, "\n"), most)
}

// Hooks may run again if they were interrupted.
func repeatable[T any](ctx context.Context, r *hone.Run, name string, do func(context.Context) (T, error)) (T, error) {
	return hone.Once(ctx, r, name, nil, do, func(ctx context.Context, _ []string) (T, error) { return do(ctx) })
}

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
