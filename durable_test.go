package hone_test

import (
	"context"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
)

// generate is a model.
type generate func(context.Context, model.Request) (model.Reply, error)

func (g generate) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	return g(ctx, req)
}

// humanFunc is a user.
type humanFunc func(context.Context, hone.Question) (hone.Answer, error)

func (h humanFunc) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) { return h(ctx, q) }

// TestEffectsFollowDurableEvents: all events are durable when a model or the user is
// asked, when a command, a check or an edit starts, after the user's answer, and at the
// end. Most others wait for the next of these.
func TestEffectsFollowDurableEvents(t *testing.T) {
	dir := t.TempDir()
	for name, s := range map[string]string{"a": "zero", "gone": "soon"} {
		crashtest.WriteFile(dir, name, s)
	}
	var lost []journal.Event // to a power failure
	var entry journal.Entry
	syncs := 0
	durable := func(what string) {
		t.Helper()
		for _, e := range lost {
			t.Errorf("%s: event %d (%s %s) is not durable", what, e.Seq, e.Type, e.Phase)
		}
	}
	observe := journal.Observer{
		Before: func(n journal.Entry) {
			entry = n
			if n.Type == history.TypeApply && n.Phase == journal.Record {
				durable("edit")
			}
		},
		After: func(e journal.Event) {
			if lost = append(lost, e); entry.Sync {
				lost, syncs = nil, syncs+1
			}
			if e.Type == history.TypeApproval || e.Type == history.TypeEnd {
				durable(string(e.Type))
			}
		},
	}
	m := generate(func(context.Context, model.Request) (model.Reply, error) {
		durable("request")
		return text("one"), nil
	})
	every := everyKind(dir, m)
	process{observe: observe, round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		again := func(context.Context, []string) (seen, error) { return seen{}, nil }
		if _, err := hone.Once(ctx, r, "first", nil, func(context.Context) (seen, error) { durable("command"); return seen{}, nil }, again); err != nil {
			return nil, err
		}
		return every(ctx, r, prior)
	}, set: func(r *hone.Run) {
		r.Rules.Approve = []string{"sub/**"}
		r.Human = humanFunc(func(context.Context, hone.Question) (hone.Answer, error) {
			durable("question")
			return hone.Answer{Approved: true, By: "user"}, nil
		})
		r.Check = func(context.Context) ([]check.Finding, error) {
			durable("check")
			return []check.Finding{{Source: "check", Text: "never"}}, nil
		}
	}}.end(t, dir)
	if all := len(events(t, dir)); syncs*2 > all {
		t.Errorf("%d syncs for %d events", syncs, all)
	}
}
