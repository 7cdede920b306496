package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/cmd/hone/eval"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/story"
)

// objects are the objects of a test's run.
type objects map[string]string

func (o objects) get(name string) ([]byte, error) {
	if text, ok := o[name]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("there is no object %s", name)
}

// stored returns a value as an object holds it.
func stored(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// talk returns the events of a round in which a model is asked twice, and their objects.
func talk(t *testing.T) ([]history.Event, objects) {
	t.Helper()
	call := &model.Call{ID: "1", Name: "read", Args: `{"path":"a"}`}
	o := objects{
		"first": stored(t, model.Request{System: "You fix.", Tools: []model.Spec{{Name: "read", Description: "reads"}, {Name: "edit"}},
			Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: "KEY " + strings.Repeat("long ", 10_000)}}}}}),
		"second": stored(t, history.AddedRequest{After: "first", Messages: []model.Message{
			{Role: model.Assistant, Parts: []model.Part{{Text: "I read."}, {Call: call}}},
			{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "read", Text: "contents"}}}}}}),
		"reply": stored(t, history.StoredReply{Reply: model.Reply{Parts: []model.Part{{Text: "Done."}}}}),
	}
	step := func(turn int) *journal.Identity {
		return &journal.Identity{Round: 1, Session: 1, Turn: turn, Name: "fixer"}
	}
	var events []history.Event
	add := func(turn int, payload any) {
		events = append(events, history.Event{Event: journal.Event{Seq: int64(len(events)) + 1, Step: step(turn)}, Payload: payload})
	}
	add(1, history.Asked{Role: "fixer", Model: "script/home/me/s", Request: "first", Bytes: 2000})
	add(1, history.Replied{Reply: "reply", Usage: &model.Usage{Input: 100, CacheRead: 300, Output: 7}})
	add(2, history.Asked{Role: "fixer", Model: "a/b", Request: "second", Bytes: 3000})
	return events, o
}

// TestCalls: a call shows what it adds to the one before it, without secrets and
// shortened, and what it used.
func TestCalls(t *testing.T) {
	t.Parallel()
	events, o := talk(t)
	m := Maker{Clean: func(s string) string { return strings.ReplaceAll(s, "KEY", "[redacted]") }, get: o.get, calls: map[int][]Call{}, at: map[journal.Identity]int{}}
	for _, e := range events {
		if err := m.addCall(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.calls[1]) != 2 {
		t.Fatal(m.calls)
	}
	first, second := m.calls[1][0], m.calls[1][1]
	if long := first.Texts[2]; len(long.Text) > 33<<10 || !strings.HasPrefix(long.Text, "[redacted] long") {
		t.Errorf("the long text: %d bytes, %.40q", len(long.Text), long.Text)
	}
	first.Texts[2].Text = ""
	want := Call{Seq: 1, Name: "fixer, turn 1", Model: "script/s", Replied: true, Used: &model.Usage{Input: 100, CacheRead: 300, Output: 7},
		Texts: []story.Part{{Name: "system", Text: "You fix."}, {Name: "tools", Text: "read, edit"}, {Name: "user"}}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]story.Part{{Name: "the previous request, followed by:"}, {Name: "assistant", Text: "I read.\n(a call of read, 12 bytes)"},
		{Name: "user", Text: "(the result of read, 8 bytes)"}}, second.Texts); diff != "" || second.Used != nil {
		t.Error(diff, second.Used)
	}
}

// TestEvaluation: a mark for each try of a case with a model, and the report of the models.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	results := []eval.Result{
		{Case: "two", Model: "m", Time: 2, Why: "late", Tokens: 1500, At: at},
		{Case: "two", Model: "m", Time: 1, Passed: true, Why: "good", Rounds: 1, At: at},
		{Case: "one", Model: "n", Time: 1, Passed: true, Why: "good", At: at},
	}
	got := EvaluationOf("x", results)
	if got.About != "2 cases with 2 models · last result 2026-11-23 12:00:00" {
		t.Error(got.About)
	}
	if diff := cmp.Diff([]string{"MODEL", "PASS@1", "PASS@2", "PASSED"}, got.Head[:4]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"m", "0.50", "1.00", "1/2"}, got.Rows[0][:4]); diff != "" {
		t.Error(diff)
	}
	want := []Row{
		{Name: "two", Cells: []Cell{{Marks: []Tick{{Mark: "✓", Title: "try 1: good, 1 round, 0 tokens"}, {Mark: "✗", Title: "try 2: late, 0 rounds, 1.5k tokens"}}, Text: "1/2"}, {}}},
		{Name: "one", Cells: []Cell{{}, {Marks: []Tick{{Mark: "✓", Title: "try 1: good, 0 rounds, 0 tokens"}}}}},
	}
	if diff := cmp.Diff(want, got.Cases.Rows); diff != "" {
		t.Error(diff)
	}
	if got := EvaluationOf("x", nil); got.Cases != nil || got.About != "no results yet" {
		t.Error(got)
	}
}

// TestReply: a long reply keeps its end, in whole lines, and each attempt begins anew.
func TestReply(t *testing.T) {
	t.Parallel()
	var r Reply
	r.Add("first ")
	if r.Add("line\n"); r.Text() != "first line\n" {
		t.Errorf("%q", r.Text())
	}
	r.Add(strings.Repeat("more of it\n", 2000))
	if got := r.Text(); len(got) > 16<<10 || len(got) < 15<<10 || !strings.HasPrefix(got, "more of it\n") {
		t.Errorf("%d bytes, %.20q", len(got), got)
	}
	r.Show(history.Event{Payload: history.Commit{}})
	for _, ends := range []any{history.Reserve{}, history.Replied{}} {
		if r.Show(history.Event{Payload: ends}); r.Text() != "" {
			t.Errorf("%q after %T", r.Text(), ends)
		}
		r.Add("x")
	}
	var none *Reply
	none.Add("x")
	none.Show(history.Event{Payload: history.Replied{}})
	if none.Text() != "" {
		t.Error("nil has a text")
	}
}

// TestWaits: a run waits for the model from a request to its reply, or to its end.
func TestWaits(t *testing.T) {
	t.Parallel()
	events, _ := talk(t)
	at := time.Date(2026, 11, 23, 12, 0, 1, 0, time.Local)
	events[2].Time = at
	told := func(events []history.Event) Wait {
		m := Maker{fold: story.New(story.Options{})}
		for _, e := range events {
			m.fold.Add(e)
		}
		return m.Waits()
	}
	if got, want := told(events), (Wait{Model: "a/b", Role: "fixer", Since: "12:00:01"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := told(events[:2]); got != (Wait{}) {
		t.Errorf("%+v after the reply", got)
	}
	if got := told(append(events, history.Event{Payload: history.Resumed{}})); got != (Wait{}) {
		t.Errorf("%+v in another process", got)
	}
}

// TestScores: samples are dots, those of a change that was taken back are crosses, and the best is a line.
func TestScores(t *testing.T) {
	score := func(kept bool, best float64, samples ...float64) *history.Score {
		return &history.Score{Name: "<ms>", Lower: true, First: 10, Best: best, Kept: kept, New: samples}
	}
	got := scores([]history.State{{Score: score(false, 10, 9, 10, 11)}, {Round: 1, Score: score(true, 8, 8, 8)}, {Round: 2, Score: score(false, 8, 12)}, {Round: 3, Score: score(false, 8)}})
	svg := string(got.SVG)
	for part, want := range map[string]int{"<circle": 5, `class="back"`: 1, `class="best"`: 1, "<ms>": 0, ">round 3<": 1} {
		if n := strings.Count(svg, part); n != want {
			t.Errorf("%d times %s, want %d: %s", n, part, want, svg)
		}
	}
	if got.Last != "8" || got.Name != "<ms> by round" {
		t.Errorf("%q, %q", got.Name, got.Last)
	}
}
