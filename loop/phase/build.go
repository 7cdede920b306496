package phase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/loop/phase/devserver"
)

// build has the builder write code until the health check passes, or the
// round's attempts are used up, or cannot be paid: then the findings say what it
// printed.
func (l Loop) build(ctx context.Context, r *hone.Run, prior []check.Finding) (sick []check.Finding, err error) {
	for attempt := 1; ; attempt++ {
		messages, err := l.compose(ctx, r, toBuild, prior)
		if err != nil {
			return nil, err
		}
		if _, err := r.Talk(ctx, l.Builder, messages); err != nil {
			if !hone.OutOfBudget(err) {
				sick = nil
			}
			return sick, err
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
		sick = []check.Finding{{Source: sourceHealth, Text: h.Log}}
		if attempt >= max(1, l.HealthAttempts) {
			return sick, nil
		}
		prior = append(sick, without(prior, sourceHealth)...)
	}
}

// health is what the health check says of the code.
type health struct {
	Healthy bool `json:"healthy"`
	// Told's Log is what it printed and wrote into lint.log.
	history.Report
}

// health runs the health check. It leaves lint.log for people also where the
// hook itself only prints.
func (l Loop) health(ctx context.Context, r *hone.Run) (health, error) {
	return again(ctx, r, "health check", func(ctx context.Context) (health, error) {
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return health{}, err
		}
		defer root.Close()
		// What the server wrote of the verifier's requests is not for the builder,
		// whose code this hook runs.
		for _, name := range []string{lintLog, devserver.Log} {
			if err := artifact.Remove(root, name); err != nil {
				return health{}, err
			}
		}
		said, err := l.Hooks.Call(ctx, "health_check")
		if err != nil {
			return health{}, err
		}
		written, err := artifact.Read(root, lintLog, maxLog)
		if errors.Is(err, fs.ErrNotExist) {
			err = artifact.Write(root, lintLog, strings.NewReader(said.Output))
		}
		if err != nil {
			written = []byte("(" + err.Error() + ")")
		}
		h := health{Healthy: said.Exit == 0, Report: history.Report{Said: "passed"}}
		if !h.Healthy {
			h.Said = "failed, see " + lintLog
			h.Log = l.readable(string(written), said.Output)
			if h.Log == "" {
				h.Log = fmt.Sprintf("(the health check ended with exit status %d and printed nothing)", said.Exit)
			}
		}
		return h, nil
	})
}

// maxLog limits how much of a log is read, and maxExcerpt how much of it a report
// contains, in bytes.
const (
	maxLog     = 16 << 20
	maxExcerpt = 48 << 10
)

// readable are logs as a model or a person can read them, without secrets. Of
// a long one the middle is left out: errors stand at either end.
func (l Loop) readable(texts ...string) string {
	var parts []string
	for _, text := range texts {
		text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
		if text != "" {
			parts = append(parts, l.redact(text))
		}
	}
	return devserver.Excerpt(strings.Join(parts, "\n"), maxExcerpt)
}

// redact takes out what is withheld.
func (l Loop) redact(text string) string {
	if l.Guard == nil {
		return text
	}
	return l.Guard.Redact(text)
}

// again is a step that runs commands and can be repeated: a hook is.
func again[T any](ctx context.Context, r *hone.Run, name string, do func(context.Context) (T, error)) (T, error) {
	return hone.Once(ctx, r, name, nil, do, func(ctx context.Context, _ []string) (T, error) { return do(ctx) })
}
