//go:build unix

package phase_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/loop/phase"
)

// dear makes the last reply of a session take so many tokens.
func dear(tokens int64, session []turn) []turn {
	session = slices.Clone(session)
	usage := *session[len(session)-1].reply.Usage
	usage.Input = tokens
	session[len(session)-1].reply.Usage = &usage
	return session
}

func limit(tokens *int64) func(*phase.Loop, *hone.Run) {
	return func(_ *phase.Loop, r *hone.Run) { r.Limits.Tokens = *tokens }
}

// TestVerifierIsNotPaid: a build is recorded as a round in which nothing was
// verified. A larger budget continues with the verification, unless there is
// something else to build.
func TestVerifierIsNotPaid(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		check    check.Func
		says     string
		sessions [][]turn
		left     string
	}{
		"no check":         {nil, "", [][]turn{pass()}, "unpaid"},
		"the check passes": {func(context.Context) ([]check.Finding, error) { return nil, nil }, "; the check passes, but the round is incomplete", [][]turn{pass()}, "unpaid"},
		"the check fails":  {nil, "", [][]turn{build("hello!"), pass()}, "unpaid check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			if len(tt.sessions) == 2 {
				tt.check = func(context.Context) ([]check.Finding, error) {
					if strings.Contains(read(dir, "src/answer"), "!") {
						return nil, nil
					}
					return []check.Finding{{Source: check.SourceCommand, Text: "say it louder"}}, nil
				}
			}
			m := script(append([][]turn{suite(), dear(200_000, build("hello"))}, tt.sessions...)...)
			tokens := int64(210_000)
			p := process{model: m, check: tt.check, set: limit(&tokens)}
			end := p.live(t, dir)
			if end.Kind != hone.KindBudget || end.Rounds != 1 || end.summary != "" || len(m.asked) != 4 {
				t.Fatalf("%d requests, %+v", len(m.asked), end)
			}
			if !strings.HasSuffix(end.Why, tt.says) || strings.Contains(end.Why, "passes") != (tt.says != "") {
				t.Errorf("it says %q", end.Why)
			}
			var sources []string
			for _, f := range end.Findings {
				sources = append(sources, f.Source)
			}
			if got := strings.Join(sources, " "); got != tt.left {
				t.Errorf("findings of %q: %+v", got, end.Findings)
			}
			gone(t, dir)
			must(fmt.Sscan(end.Next.Flags[0].Value, &tokens))
			if end = p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
				t.Fatalf("%+v", end)
			}
			gone(t, dir)
		})
	}
}

// TestBuilderIsNotPaidAgain: what the health check said of the first attempt of
// a round is what is wrong, where a second cannot be paid.
func TestBuilderIsNotPaidAgain(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), dear(200_000, build("LINT")), build("hello"), pass())
	tokens := int64(210_000)
	p := process{model: m, set: func(l *phase.Loop, r *hone.Run) { l.HealthAttempts, r.Limits.Tokens = 2, tokens }}
	end := p.live(t, dir)
	if end.Kind != hone.KindBudget || end.Rounds != 1 || len(end.Findings) != 1 || end.Findings[0].Source != "health" {
		t.Fatalf("%+v", end)
	}
	tokens = 900_000
	if end = p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
		t.Fatalf("%+v", end)
	}
	if diff := cmp.Diff("phase2/build/step-1/pre-deterministic phase2/build/step-2/pre-deterministic phase2/build/step-2/post-deterministic phase2/passed", subjects(t, dir, phase.Src)); diff != "" {
		t.Errorf("commits in src (-want +got):\n%s", diff)
	}
}
