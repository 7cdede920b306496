package history_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/workspace"
)

// answers returns what a past answers to all questions.
func answers(p *history.Past) map[string]any {
	object, written, certain := p.NewestManifest()
	all := map[string]any{
		"facts": p.Facts(), "events": len(p.Events()), "first": p.First().Seq, "last": p.Last().Seq, "charged": p.Charged("test"),
		"object": object, "written": written, "certain": certain, "declined": p.DeclinedPaths(),
		"work": len(p.Records("work")), "since": len(p.Since(journal.Identity{Round: 1, Name: "work"})),
	}
	for round := range 4 {
		r := p.Round(round)
		all[fmt.Sprint("round ", round)] = []any{r.Manifest, r.Touched, r.Edited, r.Restored, p.Declined(round)}
	}
	return all
}

// lively is a workspace with a run that was interrupted, changed outside, resumed
// without a user, and undone.
func lively(t *testing.T) (dir string) {
	dir = busyTree(t)
	crashtest.WriteFile(dir, "asked", "0")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := process{ctx: ctx, set: func(r *hone.Run) { r.Rules.Approve = []string{"asked"} }}
	p.round = func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if r.Round() == 2 && r.Past().Facts().Resumes == 0 {
			cancel()
			return nil, ctx.Err()
		}
		if _, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("asked", fmt.Sprint(r.Round()))}}, nil); err != nil {
			return nil, err
		}
		return busy(dir)(ctx, r, prior)
	}
	p.end(t, dir)
	crashtest.WriteFile(dir, "untouched", "theirs")
	p.ctx = nil
	p.end(t, dir)
	if _, _, err := crashtest.Undo(dir, 2, true); err != nil {
		t.Fatal(err)
	}
	return dir
}

// After each event, a past that follows a run answers like one that is read
// from the events so far.
func TestFollow(t *testing.T) {
	dir := lively(t)
	home := crashtest.Must(journal.FindHome(dir))
	defer home.Close()
	j := crashtest.Must(home.OpenReplay(crashtest.Must(home.FindRun("last"))))
	followed := history.Follow(j)
	for len(j.Remaining()) > 0 {
		e := j.Skip()
		if diff := cmp.Diff(answers(history.Read(j.Events())), answers(followed), cmp.AllowUnexported(history.Outage{})); diff != "" {
			t.Fatalf("after %s (-read +followed):\n%s", e.Line(), diff)
		}
	}
	if err := followed.Facts().Fault; err != nil {
		t.Error(err)
	}
}

func TestPast(t *testing.T) {
	dir := lively(t)
	home := crashtest.Must(journal.FindHome(dir))
	defer home.Close()
	p := history.Read(crashtest.Must(home.Read(crashtest.Must(home.FindRun("last")))))
	var unanswered []string
	for _, q := range p.Facts().Pending {
		unanswered = append(unanswered, q.Path)
	}
	end, ended := p.Facts().End, p.Facts().Ended
	to := p.Facts().RestoredTo
	if to == nil {
		t.Fatal("nothing was restored")
	}
	got := []any{p.Facts().Resumes, len(p.Facts().States), p.Facts().State.Round, *to, p.Declined(3), unanswered, p.Facts().Begun, ended, end.Rounds, p.Facts().AtEnd,
		len(p.Records("work")), p.Round(3).Edited, p.Round(4).Touched, p.Facts().State.Manifest == p.Events()[len(p.Events())-1].Manifest()}
	want := []any{1, 3, 3, 2, false, []string{"asked"}, true, true, 3, false, 3, true, false, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnreadableEvent(t *testing.T) {
	home := crashtest.Must(journal.OpenHome(t.TempDir()))
	defer home.Close()
	j := crashtest.Must(home.Create(home.NewRun()))
	defer j.Close()
	p := history.Follow(j)
	for _, n := range []journal.Entry{
		{Type: history.TypeStart, Payload: history.Start{Loop: "test"}},
		{Type: history.TypeNotice, Payload: map[string]any{"text": 7}},
		{Type: "of another version"},
		{Type: history.TypeNotice, Payload: history.Notice{Text: "said"}},
	} {
		crashtest.Must(j.Append(n))
	}
	if p.Facts().Fault == nil || !p.Noticed("said") || p.Events()[2].Payload != nil || len(p.Events()) != 4 {
		t.Errorf("fault %v, events %v", p.Facts().Fault, p.Events())
	}
}

// BenchmarkPast reads a run of 5 000 events, and asks one question after each of
// 5 000 events.
func BenchmarkPast(b *testing.B) {
	home := crashtest.Must(journal.OpenHome(b.TempDir()))
	defer home.Close()
	j := crashtest.Must(home.Create(home.NewRun()))
	defer j.Close()
	for i := range 2500 {
		id := journal.Identity{Round: 1 + i/500, Session: 1, Turn: i, Name: "tool"}
		crashtest.Must(j.Append(journal.Entry{Type: history.TypeTool, Phase: journal.Begin, Step: &id, Payload: history.ToolCall{Role: "editor", Tool: "read", Args: `{"path":"a"}`}}))
		crashtest.Must(j.Append(journal.Entry{Type: history.TypeTool, Phase: journal.Record, Step: &id, Payload: map[string]any{"text": "what the file holds"}}))
	}
	events := j.Events()
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			history.Read(events)
		}
	})
	b.Run("follow", func(b *testing.B) {
		for b.Loop() {
			p := history.Follow(j)
			for range events {
				_ = p.Facts().Replies
			}
		}
	})
}
