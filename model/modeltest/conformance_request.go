package modeltest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hone/model"
)

func requestTests() []conformanceTest {
	return []conformanceTest{
		{"system text in the system field", systemText},
		{"messages in order", messagesInOrder},
		{"tools in order", toolsInOrder},
		{"tool results are sent", sendsResults},
		{"output limit", sendsMaxOutput},
		{"reasoning level", sendsReasoning},
		{"opaque parts are sent back", sendsOpaque},
		{"another wire's opaque parts are not sent", foreignOpaque},
		{"the prefix never changes", stablePrefix},
		{"a conversation from the journal is the same request", journaled},
	}
}

func systemText(t *testing.T, p Provider) {
	req := question()
	req.System = "You are terse <and> exact & \"quoted\"."
	body := p.send(t, req)
	var got string
	if err := json.Unmarshal(valueAt(body, p.System), &got); err != nil || got != req.System {
		t.Errorf("%s = %s, want %q: %.2000s", p.System, valueAt(body, p.System), req.System, body)
	}
	if n := bytes.Count(body, []byte("You are terse")); n != 1 {
		t.Errorf("the system text is in the request %d times", n)
	}
	if without := p.send(t, question()); bytes.Equal(valueAt(without, p.System), valueAt(body, p.System)) {
		t.Errorf("%s is sent for a request without a system text: %.2000s", p.System, without)
	}
}

func messagesInOrder(t *testing.T, p Provider) {
	req := model.Request{Messages: []model.Message{
		userText("first user part", "second user part"),
		{Role: model.Assistant, Parts: []model.Part{{Text: "an assistant part"}}},
		userText("last user part"),
	}}
	wantInOrder(t, p.send(t, req), "first user part", "second user part", "an assistant part", "last user part")
}

func toolsInOrder(t *testing.T, p Provider) {
	p.skip(t, Tools)
	req := question()
	req.Tools = tools()
	body := p.send(t, req)
	wantInOrder(t, body, `"write"`, `"read"`)
	wantInOrder(t, body, "Writes a file.", "Reads a file.")
	wantInOrder(t, body, "the file's path")
	if bytes.Contains(p.send(t, question()), []byte(`"tools"`)) {
		t.Error("a request without tools sends tools")
	}
}

// conversation returns a request with a question, the server's reply and
// results for the reply's calls.
func (p Provider) conversation(t *testing.T, m model.Model) model.Request {
	t.Helper()
	req := model.Request{System: "system text", Tools: tools(), Messages: []model.Message{userText("the question")}}
	reply, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return appendReply(req, reply)
}

// appendReply appends the reply and a result for each of its calls.
func appendReply(req model.Request, reply model.Reply) model.Request {
	req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: reply.Parts})
	next := model.Message{Role: model.User}
	for _, call := range reply.Calls() {
		var args struct{ Path string }
		_ = json.Unmarshal([]byte(call.Args), &args) // without a path, the result names none
		result := model.Result{ID: call.ID, Name: call.Name, Text: "result of " + args.Path}
		next.Parts = append(next.Parts, model.Part{Result: &result})
	}
	if len(next.Parts) == 0 {
		next.Parts = []model.Part{{Text: "continue"}}
	}
	req.Messages = append(req.Messages, next)
	return req
}

// thinkingTurn has thinking, text and two calls.
var thinkingTurn = Turn{
	Thinking: "a signed thought",
	Text:     "I look at both.",
	Calls: []model.Call{
		{ID: "call_b", Name: "read", Args: `{"path":"beta"}`},
		{ID: "call_a", Name: "read", Args: `{"path":"alpha"}`},
	},
}

func sendsResults(t *testing.T, p Provider) {
	p.skip(t, Tools)
	s, m := p.start(t, thinkingTurn, Turn{Text: "done"})
	req := p.conversation(t, m)
	if calls := (model.Reply{Parts: req.Messages[1].Parts}).Calls(); len(calls) != len(thinkingTurn.Calls) {
		t.Fatalf("reply = %s, want its %d calls", encode(req.Messages[1]), len(thinkingTurn.Calls))
	}
	req.Messages[2].Parts[1].Result.Failed = true
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	body := lastBody(t, s)
	wantInOrder(t, body, "the question", "I look at both.", "result of beta", "result of alpha")
	for _, id := range []string{"call_a", "call_b"} {
		if n := bytes.Count(body, []byte(id)); n != 2 {
			t.Errorf("the id %s is in the request %d times, want 2 (the call and its result): %.2000s", id, n, body)
		}
	}
}

func sendsMaxOutput(t *testing.T, p Provider) {
	req := question()
	req.MaxOutput = 4321
	if got := string(valueAt(p.send(t, req), p.MaxOutput)); got != "4321" {
		t.Errorf("%s = %s, want 4321", p.MaxOutput, got)
	}
	req.MaxOutput = 0
	if got := string(valueAt(p.send(t, req), p.MaxOutput)); got == "0" {
		t.Errorf("%s = 0 for a request without a limit", p.MaxOutput)
	}
}

func sendsReasoning(t *testing.T, p Provider) {
	seen := map[string]model.Reasoning{}
	for _, level := range []model.Reasoning{"", model.Low, model.Medium, model.High} {
		req := question()
		req.Reasoning = level
		got := string(valueAt(p.send(t, req), p.Reasoning))
		if (got == "") != (level == "") {
			t.Errorf("level %q: %s = %q", level, p.Reasoning, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("levels %q and %q both send %s", other, level, got)
		}
		seen[got] = level
	}
}

func sendsOpaque(t *testing.T, p Provider) {
	s, m := p.start(t, thinkingTurn, Turn{Text: "done"})
	req := p.conversation(t, m)
	var found []model.Opaque
	for _, part := range req.Messages[1].Parts {
		if part.Opaque != nil {
			found = append(found, *part.Opaque)
		}
	}
	if p.Opaque == "" {
		if len(found) != 0 {
			t.Errorf("opaque parts %s, want none", encode(found))
		}
		return
	}
	if len(found) == 0 || found[0].Wire != p.Opaque {
		t.Fatalf("opaque parts = %s, want one of %s", encode(found), p.Opaque)
	}
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	wantInOrder(t, lastBody(t, s), "the question", thinkingTurn.Signature(), "result of beta")
}

// A conversation read from the journal is sent as the same bytes.
func journaled(t *testing.T, p Provider) {
	s, m := p.start(t, thinkingTurn, Turn{Text: "done"})
	req := p.conversation(t, m)
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := lastBody(t, s)
	var stored model.Request
	if err := json.Unmarshal(encode(req), &stored); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if got := lastBody(t, s); !bytes.Equal(want, got) {
		t.Errorf("the request changed from\n%s\nto\n%s", want, got)
	}
}

func foreignOpaque(t *testing.T, p Provider) {
	foreign := model.Part{Opaque: &model.Opaque{Wire: "another-wire", Data: json.RawMessage(`{"signature":"foreign-bytes"}`)}}
	req := model.Request{Messages: []model.Message{
		userText("the question"),
		{Role: model.Assistant, Parts: []model.Part{foreign, {Text: "an answer"}, foreign}},
		userText("continue"),
	}}
	body := p.send(t, req)
	wantInOrder(t, body, "the question", "an answer", "continue")
	if strings.Contains(string(body), "foreign-bytes") {
		t.Errorf("another wire's bytes were sent: %s", body)
	}
	req.Messages[1].Parts = []model.Part{foreign}
	body = p.send(t, req)
	wantInOrder(t, body, "the question", "continue")
}

// A provider's prompt cache requires that a longer conversation begins with
// the same bytes.
func stablePrefix(t *testing.T, p Provider) {
	s, m := p.start(t, thinkingTurn, thinkingTurn, Turn{Text: "one more"}, Turn{Text: "done"})
	req := p.conversation(t, m)
	for range 2 {
		reply, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		req = appendReply(req, reply)
	}
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	received := s.Received()
	for i := 1; i < len(received); i++ {
		p.wantPrefix(t, received[i-1].Body, received[i].Body)
	}
}

func (p Provider) wantPrefix(t *testing.T, before, after []byte) {
	t.Helper()
	old, grown := list(t, valueAt(before, p.Messages)), list(t, valueAt(after, p.Messages))
	if len(grown) <= len(old) {
		t.Fatalf("%s has %d elements after %d", p.Messages, len(grown), len(old))
	}
	for i := range old {
		if !bytes.Equal(old[i], grown[i]) {
			t.Errorf("%s.%d changed from\n%s\nto\n%s", p.Messages, i, old[i], grown[i])
		}
	}
	var oldFields, newFields map[string]json.RawMessage
	if json.Unmarshal(before, &oldFields) != nil || json.Unmarshal(after, &newFields) != nil {
		t.Fatal("a request is not an object")
	}
	for name := range newFields {
		if name != p.Messages && !bytes.Equal(oldFields[name], newFields[name]) {
			t.Errorf("%s changed from\n%s\nto\n%s", name, oldFields[name], newFields[name])
		}
	}
}

func list(t *testing.T, raw json.RawMessage) []json.RawMessage {
	t.Helper()
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		t.Fatalf("not a list: %s", raw)
	}
	return elements
}
