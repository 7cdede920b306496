package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/excerpt"
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
