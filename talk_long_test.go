package hone_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// wordy is a read-only tool that returns so many letters.
func wordy(bytes int) tool.Tool {
	one := echo()
	one.Run = func(_ context.Context, in tool.Input) (tool.Result, error) {
		s := string(in.Args) + strings.Repeat("x", bytes)
		return tool.Result{Text: s[:bytes]}, nil
	}
	return one
}

// looking returns replies that read one thing after another, and then answer.
func looking(n, each int) []model.Reply {
	var replies []model.Reply
	for i := 0; i < n; i += each {
		var pairs []string
		for j := i; j < min(n, i+each); j++ {
			pairs = append(pairs, "look", fmt.Sprintf(`{"at":%d}`, j))
		}
		replies = append(replies, calls(pairs...))
	}
	return append(replies, text("so"))
}

// roomy is a role with a context of so many tokens.
func roomy(context int64, tools ...tool.Tool) hone.Role {
	role := handy(nil, tools...)
	role.Context = context
	return role
}

// At four fifths of the context old output is omitted, in one go, until two
// fifths are used (ruling G13).
func TestElision(t *testing.T) {
	const context, size = 10_000, 3_000 // tokens, bytes
	dir := t.TempDir()
	talk, m := converse(t, dir, roomy(context, wordy(size)), looking(20, 1)...)
	gone := 0
	for i, req := range m.requests {
		whole, now := int64(len(encoded(plain(req)))), 0
		for _, message := range req.Messages {
			for _, p := range message.Parts {
				if p.Result != nil && strings.Contains(p.Result.Text, "omitted to save space") {
					now++
				}
			}
		}
		if whole/4 > context*8/10 {
			t.Errorf("request %d takes %d bytes", i, whole)
		}
		if least := int64(context*4*4/10) - size; now > gone && (whole < least || whole > least+size+1000) {
			t.Errorf("request %d takes %d bytes after output was taken out", i, whole)
		}
		if now > gone && now-gone < 4 {
			t.Errorf("request %d had %d results taken out at a time", i, now-gone)
		}
		if got := m.results(i); i > 0 && (len(got) != 1 || len(got[0]) != size) {
			t.Errorf("request %d does not end with the last results", i)
		}
		if req.Messages[0].Parts[0].Text != "do it" {
			t.Errorf("request %d does not begin with the first message", i)
		}
		gone = now
	}
	elisions := of[struct{ Results, Bytes int }](t, named(t, dir, "elide"), "step", journal.Record)
	if len(elisions) != 2 || elisions[0].Results+elisions[1].Results != gone {
		t.Errorf("elisions on record: %+v; %d results are gone", elisions, gone)
	}
	for i, e := range of[tool.Result](t, events(t, dir), "tool", journal.Record) {
		if len(e.Text) != size || talk.Calls[i].Result.Text != e.Text {
			t.Errorf("output %d is not kept whole", i)
		}
	}
}

// named returns the events of steps of a name.
func named(t testing.TB, dir, name string) []journal.Event {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(events(t, dir)), func(e journal.Event) bool { return e.Step == nil || e.Step.Name != name })
}

// The model may repeat a call whose output was omitted.
func TestElidedOutputCanBeHadAgain(t *testing.T) {
	same := calls("look", `{}`)
	replies := append(slices.Concat([]model.Reply{same, same}, looking(10, 1)[:10]), same, text("so"))
	dir := t.TempDir()
	talk, _ := converse(t, dir, roomy(10_000, wordy(3000)), replies...)
	if len(named(t, dir, "elide")) == 0 {
		t.Fatal("nothing was taken out")
	}
	if c := talk.Calls[12]; c.Refused != "" {
		t.Errorf("the call was refused: %+v", c)
	}
}

// If old output takes little space, it is not omitted turn by turn.
func TestElisionOfLittle(t *testing.T) {
	role := roomy(10_000, wordy(400))
	role.System = strings.Repeat("s", 33_000)
	dir := t.TempDir()
	if talk, _ := converse(t, dir, role, looking(4, 1)...); talk.Ended != hone.EndedAnswer {
		t.Errorf("ended by %q", talk.Ended)
	}
	if n := len(named(t, dir, "elide")); n != 0 {
		t.Errorf("%d events of elisions", n)
	}
}

// The last results stay even if a discarded reply came after them.
func TestLastResultsStay(t *testing.T) {
	short := text("half")
	short.Finish, short.Detail = model.Other, strings.Repeat("d", 12_000)
	_, m := converse(t, t.TempDir(), roomy(10_000, wordy(10_000)), append(looking(2, 1)[:2], short, text("so"))...)
	var got []int
	for _, message := range m.requests[3].Messages {
		if p := message.Parts[0]; p.Result != nil {
			got = append(got, len(p.Result.Text))
		}
	}
	if len(got) != 2 || got[0] > 1000 || got[1] != 10_000 {
		t.Errorf("results have %v bytes, want the first taken out and the second whole", got)
	}
}

// TestElisionAtEveryPoint kills processes that omit output.
func TestElisionAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		Replies: looking(4, 1),
		Setup:   func(testing.TB, string) {},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			role := roomy(1000, wordy(1000))
			role.Model, role.MaxOutput = m, 100
			end := process{round: talks(role, func(hone.Conversation) {}), observe: o}.end(t, dir)
			holdRequests(t, dir)
			if len(of[struct{}](t, named(t, dir, "elide"), "step", journal.Record)) != 1 {
				t.Error("output was not taken out once")
			}
			return end
		},
	}.Run(t)
}

// A first prompt that does not fit the context ends the run in another way than
// a conversation that outgrows it later, when nothing is left to omit.
func TestContextOutgrown(t *testing.T) {
	tooLong := fails(&model.Error{Kind: model.TooLong, Message: "too many tokens"})
	look := func(context.Context, model.Request) (model.Reply, error) { return calls("look", "{}"), nil }
	for _, tt := range []struct {
		name    string
		context int64
		first   int // bytes
		result  int
		answers []answer
		kind    hone.Kind
		calls   int
	}{
		{"the first prompt", 1000, 4000, 0, []answer{says("so")}, hone.KindPrompt, 0},
		{"the first prompt, says the provider", 0, 4000, 0, []answer{tooLong}, hone.KindPrompt, 1},
		{"the last results", 1000, 100, 4000, []answer{look, says("so")}, hone.KindContext, 1},
		{"the last results, says the provider", 0, 100, 4000, []answer{look, tooLong}, hone.KindContext, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := speaker(tt.answers...)
			role := roomy(tt.context, wordy(tt.result))
			role.Model = m
			end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				_, err := r.Talk(ctx, role, user(strings.Repeat("x", tt.first)))
				return nil, err
			}}.end(t, t.TempDir())
			wantEnd(t, end, tt.kind)
			if m.calls() != tt.calls {
				t.Errorf("%d calls, want %d", m.calls(), tt.calls)
			}
		})
	}
}

// The reserve of a turn covers the whole request, not only what it adds.
func TestReserveOfATurn(t *testing.T) {
	dir := t.TempDir()
	_, m := converse(t, dir, handy(nil, wordy(5000)), looking(4, 1)...)
	asked, reserves := of[history.Asked](t, events(t, dir), "ask", journal.Begin), of[history.Reserve](t, events(t, dir), "reserve", "")
	for i, req := range m.requests {
		whole := int64(len(encoded(plain(req))))
		if asked[i].Bytes != whole || reserves[i].Tokens != whole+1024+1000 {
			t.Errorf("request %d has %d bytes; %d are told, and %d tokens reserved", i, whole, asked[i].Bytes, reserves[i].Tokens)
		}
	}
}

// long holds a conversation of n calls with a kilobyte of output each. It calls
// last when the model is asked for the last time.
func long(t testing.TB, dir string, n, each int, last func()) {
	t.Helper()
	replies := looking(n, each)
	m := &quick{replies: replies, last: last}
	role := handy(m, wordy(1000))
	role.Bounds = hone.Bounds{Turns: n + 2, Calls: n + 1, PerTurn: each}
	var talk hone.Conversation
	wantEnd(t, process{round: talks(role, func(got hone.Conversation) { talk = got })}.end(t, dir), hone.KindDone)
	if len(talk.Calls) != n || talk.Ended != hone.EndedAnswer {
		t.Fatalf("%d calls, ended by %q", len(talk.Calls), talk.Ended)
	}
}

// quick is an actor that remembers nothing.
type quick struct {
	replies []model.Reply
	last    func()
}

func (q *quick) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	if req.Seq == len(q.replies)-1 {
		q.last()
	}
	return q.replies[req.Seq], nil
}

// What a session keeps on disk and in memory grows with its length, not with
// the square of it, and nothing runs after its end.
func TestLongTalk(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it measures memory, which the race detector uses more of")
	}
	before := runtime.NumGoroutine()
	var start, end runtime.MemStats
	kept := func(n int) int64 {
		dir := t.TempDir()
		runtime.GC()
		runtime.ReadMemStats(&start)
		long(t, dir, n, 10, func() {
			runtime.GC()
			runtime.ReadMemStats(&end)
		})
		return size(dir)
	}
	half, whole := kept(500), kept(1000)
	if whole > half*22/10 {
		t.Errorf("500 calls keep %d bytes and 1000 keep %d", half, whole)
	}
	// A thousand outputs of 1 kB, kept as such, in the history, as lines, and
	// in a request under way; a hundred whole requests would be 60 MB.
	if used := int64(end.HeapAlloc) - int64(start.HeapAlloc); used > 20<<20 {
		t.Errorf("%d bytes of memory at the end of 1000 calls", used)
	}
	if !waittest.Until(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	}
}

// size returns how many bytes the workspace's home contains.
func size(dir string) (n int64) {
	must(0, filepath.WalkDir(filepath.Join(dir, journal.HomeName), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n += must(d.Info()).Size()
		}
		return err
	}))
	return n
}

// BenchmarkTalk1000 holds a session of a thousand calls, ten in a turn and one.
func BenchmarkTalk1000(b *testing.B) {
	for _, each := range []int{10, 1} {
		b.Run(fmt.Sprintf("%d a turn", each), func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				long(b, dir, 1000, each, func() {})
				b.ReportMetric(float64(size(dir)), "kept-bytes")
			}
		})
	}
}
