package hone_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
)

// withEscalation is a role whose part test/strong does after two rounds without fewer
// findings.
func withEscalation(role hone.Role, strong model.Model) hone.Role {
	role.Escalation = &hone.Candidate{Model: strong, Called: "test/strong", MaxOutput: 1000}
	return role
}

// counting is a check with so many findings in each of its runs.
func counting(counts []int) check.Func {
	ran := 0
	return func(context.Context) (found []check.Finding, _ error) {
		n := counts[min(ran, len(counts)-1)]
		ran++
		for i := range n {
			found = append(found, check.Finding{Source: "check", Text: fmt.Sprint("wrong ", i, ran)})
		}
		return found, nil
	}
}

// repliers returns the models that replied, in order.
func repliers(t testing.TB, dir string) []string {
	var names []string
	for _, r := range of[history.Replied](t, events(t, dir), "reply", journal.Record) {
		names = append(names, strings.TrimPrefix(r.Model, "test/"))
	}
	return names
}

// The other model does all rounds that follow two in a row without fewer findings than
// any round before.
func TestEscalation(t *testing.T) {
	many := slices.Repeat([]answer{says("so")}, 9)
	for _, tt := range []struct {
		first  bool  // the check runs before the first round
		counts []int // of findings, in each run of the check
		want   string
	}{
		{false, []int{5, 4, 3, 2, 0}, "model model model model model"},
		{false, []int{5, 5, 4, 3, 0}, "model model strong strong strong"},
		{false, []int{5, 4, 4, 4, 0}, "model model model model strong"},
		{false, []int{5, 7, 6, 0}, "model model strong strong"},
		{false, []int{5, 4, 6, 5, 0}, "model model model model strong"},
		{true, []int{6, 5, 5, 4, 5, 0}, "model model model model model"},
		{true, []int{5, 5, 6, 0}, "model model strong"},
	} {
		t.Run(fmt.Sprint(tt.counts), func(t *testing.T) {
			dir := t.TempDir()
			role := withEscalation(editor(speaker(many...)), speaker(many...))
			p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				return asks(role, fmt.Sprint("round ", r.Round()))(ctx, r, prior)
			}}
			p.set = func(r *hone.Run) {
				r.Limits.Rounds, r.Check = 9, counting(tt.counts)
				if tt.first {
					r.Trust.CheckFirst = hone.Informed
				}
			}
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindDone)
			if diff := cmp.Diff(strings.Fields(tt.want), repliers(t, dir)); diff != "" {
				t.Errorf("the models that replied (-want +got):\n%s", diff)
			}
			said := of[history.Escalated](t, events(t, dir), "escalate", "")
			at := slices.Index(strings.Fields(tt.want), "strong") + 1
			if (len(said) == 1) != (at > 0) || at > 0 && said[0] != (history.Escalated{Round: at, Role: "editor", From: "test/model", To: "test/strong", After: 2}) {
				t.Errorf("recorded: %+v", said)
			}
			if at > 0 && !slices.Contains(end.Notes, said[0].String()) {
				t.Errorf("the notes of the end are %q", end.Notes)
			}
			p.replays(t, dir)
		})
	}
}

// A round whose reply cannot be used is no progress, and does not count as a judgement.
func TestEscalationAfterUnusableReplies(t *testing.T) {
	many := slices.Repeat([]answer{says("so")}, 9)
	role := withEscalation(editor(speaker(many...)), speaker(many...))
	dir := t.TempDir()
	round := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if _, err := asks(role, fmt.Sprint("round ", r.Round()))(ctx, r, prior); err != nil || r.Round() > 2 {
			return nil, err
		}
		return []check.Finding{{Source: check.SourceReply, Text: "unreadable"}}, nil
	}
	wantEnd(t, process{round: round, set: func(r *hone.Run) { r.Limits.Unreadable = 3 }}.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([]string{"model", "model", "strong"}, repliers(t, dir)); diff != "" {
		t.Errorf("the models that replied (-want +got):\n%s", diff)
	}
}

// If the other model fails, those that it replaced take its place; one of them may have
// failed before.
func TestFailoverOfAnEscalation(t *testing.T) {
	first := speaker(slices.Concat([]answer{says("1")}, outOfService(6))...)
	spare, strong := speaker(says("2"), says("4")), speaker(slices.Concat([]answer{says("3")}, outOfService(6))...)
	role := withEscalation(withSpare(editor(first), spare), strong)
	dir := t.TempDir()
	p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		return asks(role, fmt.Sprint("round ", r.Round()))(ctx, r, prior)
	}, set: func(r *hone.Run) { retryQuickly(r); r.Limits.Rounds, r.Check = 4, counting([]int{2, 2, 1, 0}) }}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([]string{"model", "spare", "strong", "spare"}, repliers(t, dir)); diff != "" {
		t.Errorf("the models that replied (-want +got):\n%s", diff)
	}
	p.replays(t, dir)
}

// A kill at any point leaves the same models for the same rounds.
func TestCrashAroundEscalation(t *testing.T) {
	crashtest.Scene{
		Replies:         []model.Reply{calls("look", `{"n":1}`), text("one"), text("two"), calls("look", `{"n":2}`), text("three")},
		Setup:           func(testing.TB, string) {},
		CompareRequests: true,
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			role := withEscalation(handy(until(3, m), echo()), m)
			end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				_, err := r.Talk(ctx, role, user(fmt.Sprint("round ", r.Round())))
				return nil, err
			}, observe: o, set: func(r *hone.Run) {
				r.Check = func(context.Context) ([]check.Finding, error) {
					if r.Round() < 3 {
						return []check.Finding{{Source: "check", Text: "wrong"}}, nil
					}
					return nil, nil
				}
			}}.end(t, dir)
			if diff := cmp.Diff([]string{"model", "model", "model", "strong", "strong"}, repliers(t, dir)); diff != "" {
				t.Errorf("the models that replied (-want +got):\n%s", diff)
			}
			return end
		},
	}.Run(t)
}
