package reconcile_test

import (
	"context"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop/reconcile"
	"hone/model"
)

// someone approves what is not named.
type someone struct{ declines string }

func (s someone) Ask(_ context.Context, q hone.Question) (hone.Answer, error) {
	return hone.Answer{Approved: q.Path != s.declines, By: "user"}, nil
}

// TestCrashAmongQuestions: each edit has an answer of its own, one is declined,
// and the last round has none left to ask about.
func TestCrashAmongQuestions(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Replies: []model.Reply{
			answer(`{"create-or-update": {"specs/s.md": "yes\n", "specs/no.md": "no\n", "src/a": "one\n", "../b": "no"}, "delete": ["old", "gone"]}`),
			answer(`{"create-or-update": {"specs/s.md": "again\n", "src/a": "two\n", "specs/no.md": "no\n"}}`),
			answer(`{"create-or-update": {"src/a": "three\n"}}`),
		},
		Setup: func(t testing.TB, dir string) {
			project(t, dir, map[string]string{"src/a": "zero\n", "old": "x", "specs/s.md": "do\n", "specs/no.md": "old\n"}, nil)
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			return process{model: m, rounds: 5, loop: reconcile.Loop{Approve: []string{"old"}}, human: someone{"specs/no.md"},
				check: until(dir, "src/a", "three\n"), observe: o}.live(t, dir)
		},
	}.Run(t)
}

// TestCrashWhenAskedLater: without a terminal the run is blocked; then the user is
// asked the open questions again, and the edits are made.
func TestCrashWhenAskedLater(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Replies: []model.Reply{
			answer(`{"create-or-update": {"src/a": "one\n", "specs/s.md": "asked\n", "specs/new.md": "asked\n"}}`),
			answer(`{"create-or-update": {"src/b": "bee\n", "specs/new.md": "asked otherwise\n"}, "delete": ["old", "specs/s.md"]}`),
		},
		Setup: func(t testing.TB, dir string) {
			project(t, dir, map[string]string{"src/a": "zero\n", "old": "x", "specs/s.md": "do\n"}, nil)
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			p := process{model: m, rounds: 2, check: until(dir, "specs/new.md", "asked otherwise\n"), observe: o}
			if end := p.live(t, dir); end.Kind != "blocked" {
				return end
			}
			p.human = someone{}
			return p.live(t, dir)
		},
	}.Run(t)
}

// TestCrashWithoutAChecker: an unreadable reply, then one that is made, and
// nothing that verifies it (ruling B8).
func TestCrashWithoutAChecker(t *testing.T) {
	cut := answer(`{"create-or-update": {"src/a": "cut"}}`)
	cut.Finish = model.Length
	crashtest.Scene{
		CompareRequests: true,
		Replies:         []model.Reply{cut, answer(`{"delete": ["src/a", "old"]}`)},
		Setup: func(t testing.TB, dir string) {
			project(t, dir, map[string]string{"src/a": "zero\n", "old": "x", "specs/s.md": "do\n"}, nil)
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			return process{model: m, rounds: 3, observe: o}.live(t, dir)
		},
	}.Run(t)
}

// TestCrashWithABrokenChecker, and rounds that are used up with findings left.
func TestCrashWithABrokenChecker(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Replies:         []model.Reply{answer(`{"create-or-update": {"src/a": "one\n"}}`), answer(`{"create-or-update": {"src/a": "two\n"}}`)},
		Setup: func(t testing.TB, dir string) {
			project(t, dir, map[string]string{"src/a": "zero\n", "specs/s.md": "do\n"}, nil)
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			looks := until(dir, "src/a", "three\n")
			return process{model: m, rounds: 2, observe: o, check: func(ctx context.Context) ([]check.Finding, error) {
				found, err := looks(ctx)
				if read(t, dir, "src/a") == "one\n" {
					return []check.Finding{{Source: "checker", Text: "failed to run", Broken: true}}, err
				}
				return found, err
			}}.live(t, dir)
		},
	}.Run(t)
}

func read(t testing.TB, dir, name string) string { return crashtest.Tree(t, dir)[name] }
