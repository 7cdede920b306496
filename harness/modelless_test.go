package harness

import (
	"context"
	"strings"
	"testing"

	"hone"
	"hone/check"
)

// A run that asks no model needs none. One that does ends when it asks, and says what
// to set.
func TestOpenWithoutModel(t *testing.T) {
	for _, c := range []struct {
		name, model string
		findings    []check.Finding
		kind        hone.Kind
		why, next   string
	}{
		{name: "clean", kind: hone.KindDone},
		{name: "no model", findings: []check.Finding{{Text: "wrong"}}, kind: hone.KindUsage, why: "no model was given", next: "GEMINI_API_KEY"},
		{name: "no key", model: "openai/gpt-5.4", findings: []check.Finding{{Text: "wrong"}}, kind: hone.KindUsage, why: "OPENAI_API_KEY is not set", next: "export OPENAI_API_KEY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.TempDir(), Options{Model: c.model, Walls: "none", Environ: []string{}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			run := s.Run(hone.Limits{})
			run.Check = func(context.Context) ([]check.Finding, error) { return c.findings, nil }
			run.Trust.CheckFirst = hone.UnlessClean
			role := s.Role("fixer", "")
			end, err := run.Do(t.Context(), func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				_, err := r.Talk(ctx, role, hone.Text("fix"))
				return nil, err
			})
			if err != nil || end.Kind != c.kind || !strings.Contains(end.Why, c.why) || !strings.Contains(end.Next.First, c.next) || end.Tokens != 0 {
				t.Errorf("%+v, %v", end, err)
			}
		})
	}
}
