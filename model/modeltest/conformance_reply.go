package modeltest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hone/model"
)

func replyTests() []conformanceTest {
	return []conformanceTest{
		{"plain", plainReply},
		{"streamed", streamedReply},
		{"non-ASCII split anywhere", splitReply},
		{"empty", emptyReply},
		{"ten megabytes", largeReply},
		{"tool call", toolCall},
		{"parallel tool calls", parallelCalls},
		{"arguments that are not JSON", brokenArguments},
		{"reasoning is not text", reasoningIsNotText},
		{"output limit", outputLimit},
		{"filtered", filteredReply},
		{"refused without text", refusedPrompt},
		{"usage", usage},
		{"no usage", noUsage},
		{"unreadable usage", unreadableUsage},
		{"text without output tokens", freeText},
		{"raw", rawReply},
		{"concurrent", concurrentReplies},
	}
}

func plainReply(t *testing.T, p Provider) {
	const text = "The capital of France is Paris.\n\n```go\n// <b> & \"quoted\" \\ tab\t\n```\n"
	reply := p.ask(t, Turn{Text: text})
	if reply.Text() != text {
		t.Errorf("Text = %q, want %q", reply.Text(), text)
	}
	if reply.Finish != model.Stop || len(reply.Calls()) != 0 {
		t.Errorf("Finish = %q, %d calls; want %q and none", reply.Finish, len(reply.Calls()), model.Stop)
	}
}

func streamedReply(t *testing.T, p Provider) {
	const text = "One sentence that is long enough for several events of a stream, and then another one."
	_, m := p.start(t, Turn{Text: text, Chunk: 8})
	var pieces []string
	req := question()
	req.Stream = func(piece string) { pieces = append(pieces, piece) }
	var received atomic.Int64
	req.Received = func(bytes int) { received.Add(int64(bytes)) }
	reply, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(pieces, ""); got != text || got != reply.Text() {
		t.Errorf("streamed %q, reply %q, want %q", got, reply.Text(), text)
	}
	if got := received.Load(); p.has(Streaming) && got < int64(len(text)) {
		t.Errorf("%d bytes were received for a text of %d; if the provider does not stream, Lacks must name Streaming", got, len(text))
	}
	if p.has(Streaming) && len(pieces) < 2 {
		t.Errorf("the text was streamed in %d pieces, want several; if the provider does not stream, Lacks must name Streaming", len(pieces))
	}
}

func splitReply(t *testing.T, p Provider) {
	const text = "Zürich, 東京, Ελλάδα, עברית, 👩‍👩‍👧‍👦 and a line\u2028separator — end"
	for _, split := range []int{1, 3} {
		_, m := p.start(t, Turn{Text: text, Split: split, Chunk: 5})
		req := question()
		req.Stream = func(piece string) {
			if !utf8.ValidString(piece) {
				t.Errorf("split %d: streamed half a character: %q", split, piece)
			}
		}
		reply, err := m.Generate(t.Context(), req)
		if err != nil || reply.Text() != text {
			t.Errorf("split %d: Generate = %q, %v; want %q", split, reply.Text(), err, text)
		}
	}
}

func emptyReply(t *testing.T, p Provider) {
	reply := p.ask(t, Turn{})
	if reply.Text() != "" || len(reply.Calls()) != 0 || reply.Finish != model.Stop {
		t.Errorf("reply = %+v, want an empty one with Finish %q", reply, model.Stop)
	}
}

func largeReply(t *testing.T, p Provider) {
	size := 10 << 20
	if testing.Short() {
		size = 1 << 20
	}
	text := strings.Repeat("0123456789abcdef", size/16)
	if got := p.ask(t, Turn{Text: text, Chunk: 64 << 10}).Text(); got != text {
		t.Errorf("a text of %d bytes arrived as %d", len(text), len(got))
	}
}

func toolCall(t *testing.T, p Provider) {
	p.skip(t, Tools)
	want := model.Call{ID: "call_1", Name: "write", Args: `{"content":"a < b && c","path":"src/größe.go"}`}
	reply := p.ask(t, Turn{Text: "I write it.", Calls: []model.Call{want}, Chunk: 4})
	p.wantCalls(t, reply, want)
	if reply.Text() != "I write it." || reply.Finish != model.Calls {
		t.Errorf("Text = %q, Finish = %q; want the text and %q", reply.Text(), reply.Finish, model.Calls)
	}
	var kinds []string
	for _, part := range reply.Parts {
		switch {
		case part.Call != nil:
			kinds = append(kinds, "call")
		case part.Opaque == nil:
			kinds = append(kinds, "text")
		}
	}
	if diff := cmp.Diff([]string{"text", "call"}, kinds); diff != "" {
		t.Errorf("order of the parts (-want +got):\n%s", diff)
	}
}

func parallelCalls(t *testing.T, p Provider) {
	p.skip(t, Tools)
	calls := []model.Call{
		{ID: "call_b", Name: "read", Args: `{"path":"b.go"}`},
		{ID: "call_a", Name: "read", Args: `{"path":"a.go"}`},
		{ID: "call_c", Name: "write", Args: `{"content":"","path":"c.go"}`},
	}
	reply := p.ask(t, Turn{Calls: calls, Chunk: 3})
	p.wantCalls(t, reply, calls...)
	if reply.Finish != model.Calls {
		t.Errorf("Finish = %q, want %q", reply.Finish, model.Calls)
	}
}

func (p Provider) wantCalls(t *testing.T, reply model.Reply, want ...model.Call) {
	t.Helper()
	got := reply.Calls()
	if len(got) != len(want) {
		t.Fatalf("%d calls, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].ID != want[i].ID || got[i].Name != want[i].Name || !p.sameArgs(got[i].Args, want[i].Args) {
			t.Errorf("call %d = %+v, want %+v", i, got[i], want[i])
		}
	}
}

// Invalid arguments reach the caller as the model wrote them, and the
// conversation can continue with them.
func brokenArguments(t *testing.T, p Provider) {
	p.skip(t, Tools)
	for _, args := range []string{`{"path": "a.go`, `path=a.go`, `[1,2]`, `{"n":9007199254740993}`, ``} {
		s, m := p.start(t, Turn{Calls: []model.Call{{ID: "call_1", Name: "read", Args: args}}}, Turn{Text: "done"})
		req := question()
		req.Tools = tools()
		reply, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Errorf("arguments %q: %v", args, err)
			continue
		}
		calls := reply.Calls()
		if len(calls) != 1 || calls[0].Name != "read" {
			t.Errorf("arguments %q: calls = %+v, want one call of read", args, calls)
			continue
		}
		if !p.ObjectArgs && args != "" && calls[0].Args != args {
			t.Errorf("arguments = %q, want %q", calls[0].Args, args)
		}
		req.Messages = append(req.Messages,
			model.Message{Role: model.Assistant, Parts: reply.Parts},
			results(model.Result{ID: calls[0].ID, Name: "read", Text: "the arguments are not JSON", Failed: true}))
		if _, err := m.Generate(t.Context(), req); err != nil {
			t.Errorf("arguments %q: the next call: %v", args, err)
		}
		wantInOrder(t, lastBody(t, s), "the arguments are not JSON")
	}
}

func results(list ...model.Result) model.Message {
	m := model.Message{Role: model.User}
	for _, r := range list {
		m.Parts = append(m.Parts, model.Part{Result: &r})
	}
	return m
}

func reasoningIsNotText(t *testing.T, p Provider) {
	_, m := p.start(t, Turn{Thinking: "hidden thought", Text: "visible answer"})
	var streamed strings.Builder
	req := question()
	req.Stream = func(text string) { streamed.WriteString(text) }
	reply, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Text() != "visible answer" || streamed.String() != "visible answer" {
		t.Errorf("Text = %q, streamed %q; want only the answer", reply.Text(), streamed.String())
	}
}

func outputLimit(t *testing.T, p Provider) {
	u := &model.Usage{Input: 7, Output: 5}
	reply := p.ask(t, Turn{Text: "The capital of", Finish: model.Length, Usage: u})
	if reply.Finish != model.Length || reply.Text() != "The capital of" || reply.Detail == "" {
		t.Errorf("Finish = %q (%q), Text = %q; want %q with the text so far", reply.Finish, reply.Detail, reply.Text(), model.Length)
	}
	if diff := cmp.Diff(u, reply.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func filteredReply(t *testing.T, p Provider) {
	reply := p.ask(t, Turn{Text: "I cannot", Finish: model.Filtered})
	if reply.Finish != model.Filtered || reply.Detail == "" {
		t.Errorf("Finish = %q (%q), want %q with the provider's reason", reply.Finish, reply.Detail, model.Filtered)
	}
}

func refusedPrompt(t *testing.T, p Provider) {
	reply := p.ask(t, Turn{Finish: model.Filtered})
	if reply.Finish != model.Filtered || reply.Detail == "" || reply.Text() != "" {
		t.Errorf("reply = %+v, want an empty one with Finish %q", reply, model.Filtered)
	}
}

func usage(t *testing.T, p Provider) {
	want := &model.Usage{Input: 1200, Output: 340, Reasoning: 120, CacheRead: 800}
	if p.CacheWrite {
		want.CacheWrite = 56
	}
	turns := []Turn{{Text: "Paris", Usage: want}}
	if p.has(Tools) {
		turns = append(turns, Turn{Calls: []model.Call{readCall()}, Usage: want})
	}
	for _, turn := range turns {
		if diff := cmp.Diff(want, p.ask(t, turn).Usage); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	}
}

// readCall returns a call of the tool read.
func readCall() model.Call { return model.Call{ID: "call_1", Name: "read", Args: `{"path":"a"}`} }

func noUsage(t *testing.T, p Provider) {
	if got := p.ask(t, Turn{Text: "Paris"}).Usage; got != nil {
		t.Errorf("usage = %+v, want nil because the provider reported none", got)
	}
}

// A usage that cannot be read is none, so that the caller assumes the maximum.
// The reply itself stays.
func unreadableUsage(t *testing.T, p Provider) {
	for name, turn := range Misreports() {
		if reply := p.ask(t, turn); reply.Usage != nil || reply.Text() != turn.Text {
			t.Errorf("%s: Text = %q, usage = %+v; want %q and nil", name, reply.Text(), reply.Usage, turn.Text)
		}
	}
}

// No reply with content is free. Only an empty one may have no output tokens,
// and a server may count no input.
func freeText(t *testing.T, p Provider) {
	turns := []Turn{
		{Text: "Paris", Usage: &model.Usage{Input: 1200}},
		{Text: "Paris", Usage: &model.Usage{}},
	}
	if p.has(Tools) {
		turns = append(turns, Turn{Calls: []model.Call{readCall()}, Usage: &model.Usage{Input: 1200}})
	}
	for _, turn := range turns {
		if got := p.ask(t, turn).Usage; got != nil {
			t.Errorf("usage = %+v for a reply with content, want nil", got)
		}
	}
	for _, turn := range []Turn{
		{Usage: &model.Usage{Input: 1200}},
		{Text: "Paris", Usage: &model.Usage{Output: 1}},
	} {
		if diff := cmp.Diff(turn.Usage, p.ask(t, turn).Usage); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	}
}

func rawReply(t *testing.T, p Provider) {
	reply := p.ask(t, Turn{Text: "Paris", Chunk: 64})
	raw := string(reply.Raw)
	if !strings.Contains(raw, `"Paris"`) {
		t.Errorf("Raw = %.500s, want the response", raw)
	}
	if p.has(Streaming) && !strings.HasPrefix(raw, "[") {
		t.Errorf("Raw = %.500s, want the stream's events as an array", raw)
	}
}

func concurrentReplies(t *testing.T, p Provider) {
	turn := Turn{Text: "Paris"}
	if p.has(Tools) {
		turn.Calls = []model.Call{readCall()}
	}
	_, m := p.start(t, turn)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		wg.Go(func() {
			reply, err := m.Generate(t.Context(), question())
			if err == nil && (reply.Text() != "Paris" || len(reply.Calls()) != len(turn.Calls)) {
				err = fmt.Errorf("reply = %+v", reply)
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
