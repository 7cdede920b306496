package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/model/anthropic"
	"hone/model/modeltest"
)

const key = "sk-ant-test-key"

func newModel(url string) *anthropic.Model {
	return anthropic.New(anthropic.Config{Name: "claude-opus-4-8", Key: key, BaseURL: url})
}

func ask(parts ...model.Part) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: parts}}}
}

var hi = ask(model.Part{Text: "hi"})

func raw(t testing.TB, status int, body string) *anthropic.Model {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return newModel(s.URL)
}

// stream serves one response with an event for each of data.
func stream(t testing.TB, data ...string) *anthropic.Model { return raw(t, 200, events(data...)) }

func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(d), &e)
		b.WriteString("event: " + e.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

const (
	start     = `{"type":"message_start","message":{"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}`
	textStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textDelta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"grüße"}}`
	blockStop = `{"type":"content_block_stop","index":0}`
	endTurn   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`
	stop      = `{"type":"message_stop"}`
)

func fault(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *model.Error", err)
	}
	return e
}

func sent(t *testing.T, m func(url string) *anthropic.Model, req model.Request) map[string]json.RawMessage {
	t.Helper()
	s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
	if _, err := m(s.URL).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(s.Received()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestThinkingIsSentBackUnchanged(t *testing.T) {
	const (
		redacted = `{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}`
		thinking = `{"type":"thinking","thinking":"Is a \u003c b?","signature":"c2ln+/Mg=="}`
	)
	m := stream(t, start, `{"type":"ping"}`,
		`{"type":"content_block_start","index":0,"content_block":`+redacted+`}`, blockStop,
		`{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"Is a "}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"< b?"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"c2ln+/Mg=="}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look."}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 12345678901234567890,"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"a\":1.50}"}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"list","input":{}}}`,
		`{"type":"content_block_stop","index":4}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":15}}`, stop)
	reply, err := m.Generate(t.Context(), hi)
	if err != nil {
		t.Fatal(err)
	}
	opaque := func(data string) model.Part {
		return model.Part{Opaque: &model.Opaque{Wire: anthropic.Wire, Data: json.RawMessage(data)}}
	}
	want := []model.Part{
		opaque(redacted), opaque(thinking), {Text: "I look."},
		{Call: &model.Call{ID: "toolu_1", Name: "read", Args: `{"n": 12345678901234567890,"a":1.50}`}},
		{Call: &model.Call{ID: "toolu_2", Name: "list", Args: `{}`}},
	}
	if diff := cmp.Diff(want, reply.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if reply.Finish != model.Calls {
		t.Errorf("finish %q, want calls", reply.Finish)
	}

	req := ask(model.Part{Text: "hi"})
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Parts: append(reply.Parts, model.Part{Text: " \n"},
			model.Part{Opaque: &model.Opaque{Wire: "gemini", Data: json.RawMessage(`"x"`)}})},
		model.Message{Role: model.User, Parts: []model.Part{
			{Result: &model.Result{ID: "toolu_1", Name: "read", Text: "A"}},
			{Result: &model.Result{ID: "toolu_2", Name: "list", Failed: true}},
		}},
		model.Message{Role: model.Assistant},
		model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "call|3/x", Name: "read", Args: "[not json"}}}},
		model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "call|3/x", Name: "read", Text: "?"}}}},
	)
	wantMessages := `[{"content":[{"text":"hi","type":"text"}],"role":"user"},{"content":[` + redacted + "," + thinking +
		`,{"text":"I look.","type":"text"},` +
		`{"id":"toolu_1","input":{"n":12345678901234567890,"a":1.50},"name":"read","type":"tool_use"},` +
		`{"id":"toolu_2","input":{},"name":"list","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"tool_use_id":"toolu_1","content":[{"text":"A","type":"text"}],"type":"tool_result"},` +
		`{"tool_use_id":"toolu_2","is_error":true,"type":"tool_result"}],"role":"user"},` +
		`{"content":[{"id":"call_3_x","input":{},"name":"read","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"tool_use_id":"call_3_x","content":[{"text":"?","type":"text"}],"type":"tool_result"}],"role":"user"}]`
	if diff := cmp.Diff(wantMessages, string(sent(t, newModel, req)["messages"])); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
}

func TestUnsignedThinkingIsDropped(t *testing.T) {
	m := stream(t, start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so lo"}}`, blockStop,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":15}}`, stop)
	reply, err := m.Generate(t.Context(), hi)
	if err != nil || len(reply.Parts) != 0 || reply.Finish != model.Length {
		t.Errorf("got %+v, %v", reply, err)
	}
}

func TestFinishes(t *testing.T) {
	for reason, want := range map[string]model.Finish{
		"end_turn": model.Stop, "stop_sequence": model.Stop, "tool_use": model.Stop, "max_tokens": model.Length,
		"model_context_window_exceeded": model.Length, "refusal": model.Filtered, "pause_turn": model.Other,
		"unknown_reason": model.Other,
	} {
		m := stream(t, start, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"}}`, stop)
		reply, err := m.Generate(t.Context(), hi)
		if err != nil || reply.Finish != want || reply.Detail != reason {
			t.Errorf("%s: got %q, %q, %v; want %q", reason, reply.Finish, reply.Detail, err, want)
		}
	}
	m := stream(t, start, `{"type":"message_delta","delta":{"stop_reason":"refusal",`+
		`"stop_details":{"type":"refusal","category":"cyber","explanation":"No."}}}`, stop)
	if reply, err := m.Generate(t.Context(), hi); err != nil || reply.Detail != "refusal: cyber: No." {
		t.Errorf("refusal: got %q, %v", reply.Detail, err)
	}
}

func TestUsage(t *testing.T) {
	m := stream(t,
		`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":2}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":11,"output_tokens":40,"output_tokens_details":{"thinking_tokens":25}}}`, stop)
	reply, err := m.Generate(t.Context(), hi)
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Usage{Input: 11, CacheWrite: 20, CacheRead: 30, Output: 40, Reasoning: 25}
	if diff := cmp.Diff(want, reply.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// Gateways send zeros, or a second message_delta, after what was counted (envoyproxy/ai-gateway#1631).
func TestSmallerUsageAtTheEnd(t *testing.T) {
	want := &model.Usage{Input: 9, CacheRead: 4, Output: 15}
	for _, after := range []string{``, `,"usage":{}`, `,"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`} {
		end := strings.Replace(endTurn, `{"output_tokens":15}`, `{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":15}`, 1)
		m := stream(t, start, textStart, textDelta, blockStop, end, `{"type":"message_delta","delta":{}`+after+`}`, stop)
		reply, err := m.Generate(t.Context(), hi)
		if diff := cmp.Diff(want, reply.Usage); err != nil || diff != "" {
			t.Errorf("%s: usage (-want +got), %v:\n%s", after, err, diff)
		}
	}
}

// The output at the message's start is not that of the message, and a later
// event that cannot be read does not leave the earlier one's numbers.
func TestUnreadableUsageAtTheEnd(t *testing.T) {
	for _, end := range []string{``, `,"usage":null`, `,"usage":{}`, `,"usage":"15"`, `,"usage":[]`, `,"usage":{"output_tokens":null}`,
		`,"usage":{"output_tokens":"15"}`, `,"usage":{"output_tokens":1e400}`, `,"usage":{"output_tokens":1.5}`, `,"usage":{"output_tokens":-1}`,
		`,"usage":{"output_tokens":0}`, `,"usage":{"output_tokens":15,"input_tokens":"9"}`,
		`,"usage":{"output_tokens":15,"output_tokens_details":{"thinking_tokens":"3"}}`} {
		m := stream(t, start, textStart, textDelta, blockStop, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}`+end+`}`, stop)
		if reply, err := m.Generate(t.Context(), hi); err != nil || reply.Usage != nil {
			t.Errorf("%s: usage = %+v, %v; want nil", end, reply.Usage, err)
		}
	}
}

func TestErrorInTheStream(t *testing.T) {
	for kind, want := range map[string]model.Kind{
		"overloaded_error": model.Overloaded, "api_error": model.Overloaded, "rate_limit_error": model.RateLimited,
		"invalid_request_error": model.Invalid, "request_too_large": model.TooLong, "billing_error": model.Quota,
	} {
		m := stream(t, start, textStart, textDelta, `{"type":"error","error":{"type":"`+kind+`","message":"No."}}`, blockStop, endTurn, stop)
		_, err := m.Generate(t.Context(), hi)
		wantError := &model.Error{Kind: want, Streamed: true, Message: "No.", Usage: &model.Usage{Input: 9, CacheRead: 4, Output: 1}}
		if want == model.Quota {
			wantError.Hint, wantError.Alternative = "add credit to the account, or raise its limit", "start a new run with another model"
		}
		if diff := cmp.Diff(wantError, fault(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestProtocolViolationsNeverSucceed(t *testing.T) {
	around := func(data string) string { return events(start, textStart, data, textDelta, blockStop, endTurn, stop) }
	for body, want := range map[string]model.Kind{
		around(`{"type":"content_block_delta","index":0,"delta":5}`):                               model.Garbage,
		around(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":{}}}`): model.Garbage,
		around(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta"}}`):     model.Garbage,
		around(`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta"}}`):           model.Garbage,
		around(`{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta"}}`):          model.Garbage,
		around(`{"type":"content_block_start","index":1}`):                                         model.Garbage,
		around(`{"type":"content_block_start","index":1,"content_block":7}`):                       model.Garbage,
		around(`{"type":"error"}`):                   model.Overloaded,
		around(`{"oops":1}`):                         model.Garbage,
		around("{\"type\":\"ping\",\"x\":\"\xff\"}"): model.Garbage,
		events(start, textStart, textDelta, blockStop) + "data: {\"oops\": [,,,\n\n" + events(endTurn, stop): model.Garbage,
		events(start) + "event: message_stop\ndata: {":                                                       model.Cut,
		events(start, textStart, textDelta, blockStop):                                                       model.Cut,
		"":                   model.Cut,
		"<html>proxy</html>": model.Garbage,
	} {
		reply, err := raw(t, 200, body).Generate(t.Context(), hi)
		if err == nil {
			t.Errorf("%q: got a reply %+v", body, reply)
			continue
		}
		if e := fault(t, err); e.Kind != want || !e.Temporary() {
			t.Errorf("%q: got %v, want kind %q", body, e, want)
		}
	}
}

// Gateways number blocks from 1, leave out events, and send types that nobody knows.
func TestLooseStreams(t *testing.T) {
	second := strings.NewReplacer(`"index":0`, `"index":2`, "grüße", "!")
	for name, list := range map[string][]string{
		"no content_block_stop": {start, textStart, textDelta, endTurn, stop},
		"no message_stop":       {start, textStart, textDelta, blockStop, endTurn},
		"a delta after its end": {start, textStart, blockStop, textDelta, endTurn, stop},
		"one index for all":     {start, textStart, textDelta, blockStop, textStart, strings.Replace(textDelta, "grüße", "", 1), endTurn, stop},
		"numbers with a gap":    {start, second.Replace(textStart), strings.Replace(second.Replace(textDelta), "!", "grüße", 1), blockStop, endTurn, stop},
		"an unknown delta":      {start, textStart, `{"type":"content_block_delta","index":0,"delta":{"type":"emphasis_delta","level":1}}`, textDelta, endTurn, stop},
		"an unknown block": {start, `{"type":"content_block_start","index":0,"content_block":{"type":"memo"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"memo_delta"}}`, blockStop, textStart, textDelta, endTurn, stop},
		"an error at the end": {start, textStart, textDelta, blockStop, endTurn, `{"type":"error","error":{"message":"late"}}`},
	} {
		reply, err := stream(t, list...).Generate(t.Context(), hi)
		if err != nil || len(reply.Parts) != 1 || reply.Text() != "grüße" || reply.Finish != model.Stop || reply.Usage == nil {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
}

func TestOverlongLine(t *testing.T) {
	body := events(start) + "data: " + strings.Repeat("x", 33<<20) + "\n\n" + events(endTurn, stop)
	_, err := raw(t, 200, body).Generate(t.Context(), hi)
	if e := fault(t, err); e.Kind != model.Garbage || !strings.Contains(e.Message, "too long") {
		t.Errorf("got %v", e)
	}
}

func TestUnknownEventsAreIgnored(t *testing.T) {
	body := ": comment\n\nevent: message_start\ndata:\n\n" +
		events(start, `{"type":"news","of":["next year"]}`, textStart, textDelta, blockStop, endTurn) + "data: " + stop + "\n\n"
	reply, err := raw(t, 200, strings.ReplaceAll(body, "\n", "\r\n")).Generate(t.Context(), hi)
	if err != nil || reply.Text() != "grüße" || reply.Finish != model.Stop {
		t.Errorf("got %+v, %v", reply, err)
	}
}

func TestErrorBodies(t *testing.T) {
	tests := []struct {
		turn modeltest.Turn
		want model.Error
	}{
		{modeltest.Turn{Status: 401, Message: "invalid x-api-key"}, model.Error{Kind: model.Auth, Status: 401,
			Message: "invalid x-api-key", Hint: "set ANTHROPIC_API_KEY to a key for this model"}},
		{modeltest.Turn{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."},
			model.Error{Kind: model.Quota, Status: 400, Message: "Your credit balance is too low to access the Anthropic API.",
				Hint: "add credit to the account, or raise its limit", Alternative: "start a new run with another model"}},
		{modeltest.Turn{Status: 400, Code: "context_length_exceeded"},
			model.Error{Kind: model.TooLong, Status: 400, Message: "prompt is too long: 208310 tokens > 200000 maximum"}},
		{modeltest.Turn{Status: 413, Message: "Request exceeds the maximum size"},
			model.Error{Kind: model.TooLong, Status: 413, Message: "Request exceeds the maximum size"}},
		{modeltest.Turn{Status: 404, Message: "model: claude-x"}, model.Error{Kind: model.NoModel, Status: 404, Message: "model: claude-x",
			Hint: "no such model? Make sure that its name and the endpoint's address are right", Alternative: "start a new run with another model"}},
		{modeltest.Turn{Status: 429, Message: "Slow.", RetryAfter: "13"},
			model.Error{Kind: model.RateLimited, Status: 429, Message: "Slow.", RetryAfter: 13 * time.Second}},
		{modeltest.Turn{Status: 529, Message: "Overloaded"}, model.Error{Kind: model.Overloaded, Status: 529, Message: "Overloaded"}},
	}
	for _, test := range tests {
		s := modeltest.NewServer(t, test.turn)
		_, err := newModel(s.URL).Generate(t.Context(), hi)
		if diff := cmp.Diff(&test.want, fault(t, err)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", test.turn.Status, diff)
		}
		if diff := cmp.Diff(&test.want, fault(t, newModel(s.URL).Probe(t.Context()))); diff != "" {
			t.Errorf("%d, probe (-want +got):\n%s", test.turn.Status, diff)
		}
		if n := len(s.Received()); n != 2 {
			t.Errorf("%d: %d requests for two attempts", test.turn.Status, n)
		}
	}
}

func TestLimitsAndThinking(t *testing.T) {
	const adaptive = `{"type":"adaptive"}`
	tests := []struct {
		name                    string
		reasoning               model.Reasoning
		asked                   int64
		limit, thinking, effort string
	}{
		{"claude-opus-4-8", "", 0, "32000", "", ""},
		{"claude-opus-4-8", model.High, 0, "32000", adaptive, `{"effort":"high"}`},
		{"claude-opus-4-6", model.Low, 128000, "128000", adaptive, `{"effort":"low"}`},
		{"claude-sonnet-5-5", model.Medium, 0, "32000", adaptive, `{"effort":"medium"}`},
		{"claude-sonnet-5-5", model.Medium, 90000, "90000", adaptive, `{"effort":"medium"}`},
		{"claude-haiku-4-5-20251001", model.High, 64000, "64000", `{"budget_tokens":32000,"type":"enabled"}`, ""},
		{"claude-opus-4-1-20250805", model.High, 0, "32000", `{"budget_tokens":16000,"type":"enabled"}`, ""},
		{"claude-sonnet-4-5", model.Low, 5000, "5000", `{"budget_tokens":2500,"type":"enabled"}`, ""},
		{"claude-sonnet-4-5", model.Low, 2000, "2000", "", ""},
		{"claude-3-7-sonnet-latest", model.Medium, 64000, "64000", `{"budget_tokens":16000,"type":"enabled"}`, ""},
		{"claude-3-5-haiku-latest", model.High, 8192, "8192", "", ""},
		{"deepseek-chat", "", 0, "32000", "", ""},
	}
	for _, test := range tests {
		req := hi
		req.Reasoning, req.MaxOutput = test.reasoning, test.asked
		body := sent(t, func(url string) *anthropic.Model {
			return anthropic.New(anthropic.Config{Name: test.name, BaseURL: url})
		}, req)
		got := []string{string(body["max_tokens"]), string(body["thinking"]), string(body["output_config"])}
		if diff := cmp.Diff([]string{test.limit, test.thinking, test.effort}, got); diff != "" {
			t.Errorf("%s %q %d (-want +got):\n%s", test.name, test.reasoning, test.asked, diff)
		}
	}
}

// A model with a budget rejects a conversation whose last calls it did not think about,
// if it is asked to think: those that another model made.
func TestThinkingAfterCallsOfAnotherModel(t *testing.T) {
	thinking := model.Part{Opaque: &model.Opaque{Wire: anthropic.Wire, Data: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"s"}`)}}
	call := model.Part{Call: &model.Call{ID: "1", Name: "read", Args: "{}"}}
	for _, tt := range []struct {
		name  string
		parts []model.Part
		want  bool
	}{
		{"claude-sonnet-4-5", []model.Part{thinking, call}, true},
		{"claude-sonnet-4-5", []model.Part{call}, false},
		{"claude-sonnet-4-5", []model.Part{{Text: "no call"}}, true},
		{"claude-sonnet-5", []model.Part{call}, true},
	} {
		req := ask(model.Part{Text: "hi"})
		req.Reasoning = model.High
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: tt.parts},
			model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "read", Text: "text"}}}})
		body := sent(t, func(url string) *anthropic.Model {
			return anthropic.New(anthropic.Config{Name: tt.name, BaseURL: url})
		}, req)
		if got := body["thinking"] != nil; got != tt.want {
			t.Errorf("%s %+v: thinking %v, want %v", tt.name, tt.parts, got, tt.want)
		}
	}
}

func TestCacheMarks(t *testing.T) {
	marked := func(text string) model.Part { return model.Part{Text: text, Cache: true} }
	thought := model.Part{Cache: true, Opaque: &model.Opaque{Wire: anthropic.Wire, Data: json.RawMessage(`{"type":"redacted_thinking","data":"x"}`)}}
	tests := []struct {
		name  string
		req   model.Request
		tools bool
		want  []string // texts of the marked blocks
	}{
		{"none", model.Request{System: "S", Messages: ask(model.Part{Text: "a"}).Messages}, false, nil},
		{"one and the system", model.Request{System: "S", Messages: ask(marked("a"), model.Part{Text: "b"}).Messages}, true, []string{"S", "a"}},
		{"one and the tools", model.Request{Messages: ask(marked("a")).Messages}, true, []string{"second", "a"}},
		{"four", model.Request{System: "S", Messages: ask(marked("a"), marked("b"), marked("c"), marked("d")).Messages}, true, []string{"a", "b", "c", "d"}},
		{"the last four", model.Request{System: "S", Messages: ask(marked("a"), marked("b"), marked("c"), marked("d"), marked("e")).Messages}, false, []string{"b", "c", "d", "e"}},
		{"on the block before", model.Request{Messages: ask(model.Part{Text: "a"}, thought, marked(" "), marked("b")).Messages}, false, []string{"a", "b"}},
		{"a block counts once", model.Request{System: "S", Messages: ask(marked("a"), marked("b"), marked("c"), thought, marked(" ")).Messages}, false, []string{"S", "a", "b", "c"}},
		{"nowhere to go", model.Request{Messages: ask(thought, model.Part{Text: "a"}).Messages}, false, nil},
	}
	for _, test := range tests {
		if test.tools {
			test.req.Tools = []model.Spec{{Name: "first"}, {Name: "second"}}
		}
		body := sent(t, newModel, test.req)
		var got []string
		for _, field := range []string{"tools", "system", "messages"} {
			got = append(got, marks(t, body[field])...)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// marks returns the texts or names of the blocks that carry a mark.
func marks(t *testing.T, list json.RawMessage) (found []string) {
	t.Helper()
	var blocks []struct {
		Text, Name string
		Content    json.RawMessage
		Cache      *struct{ Type string } `json:"cache_control"`
	}
	if list == nil {
		return nil
	}
	if err := json.Unmarshal(list, &blocks); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Cache != nil && b.Cache.Type == "ephemeral" {
			found = append(found, b.Text+b.Name)
		}
		found = append(found, marks(t, b.Content)...)
	}
	return found
}

func TestToolsAndSystem(t *testing.T) {
	req := hi
	req.System = "Be brief."
	req.Tools = []model.Spec{
		{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","required":["p"],"properties":{"p":{"type":"string"}},"$defs":{}}`)},
		{Name: "list"},
	}
	body := sent(t, newModel, req)
	want := map[string]string{
		"system": `[{"text":"Be brief.","type":"text"}]`,
		"tools": `[{"input_schema":{"type":"object","required":["p"],"properties":{"p":{"type":"string"}},"$defs":{}},"name":"read","description":"Reads."},` +
			`{"input_schema":{"type":"object"},"name":"list"}]`,
		"model":  `"claude-opus-4-8"`,
		"stream": `true`,
	}
	for field, value := range want {
		if string(body[field]) != value {
			t.Errorf("%s: sent %s, want %s", field, body[field], value)
		}
	}
}

func TestAddressAndKey(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
	for _, base := range []string{s.URL, s.URL + "/", s.URL + "/v1", s.URL + "/v1/"} {
		s.Script(modeltest.Turn{Text: "ok"})
		m := anthropic.New(anthropic.Config{Name: "claude-opus-4-8", Key: key, BaseURL: base})
		if _, err := m.Generate(t.Context(), hi); err != nil {
			t.Fatal(err)
		}
		got := s.Received()[0]
		if got.Path != "/v1/messages" || got.Query != "" || got.Header.Get("X-Api-Key") != key || got.Header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("%s: got %s ? %s, %v", base, got.Path, got.Query, got.Header)
		}
	}
	s.Script(modeltest.Turn{Text: "ok"})
	if _, err := anthropic.New(anthropic.Config{Name: "x", BaseURL: s.URL}).Generate(t.Context(), hi); err != nil {
		t.Fatal(err)
	}
	for name, values := range s.Received()[0].Header {
		if name == "X-Api-Key" || name == "Authorization" || strings.Contains(strings.Join(values, " "), "from-the-environment") {
			t.Errorf("a model without a key sent %s: %q", name, values)
		}
	}
}

func TestProbe(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Turn{})
	if err := newModel(s.URL).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.Received()[0]
	if got.Path != "/v1/models/claude-opus-4-8" || len(got.Body) != 0 || got.Header.Get("X-Api-Key") != key {
		t.Errorf("got %s, body %q", got.Path, got.Body)
	}
	if e := fault(t, raw(t, 200, "<html>sign in</html>").Probe(t.Context())); e.Kind != model.Garbage {
		t.Errorf("a web page: got %v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newModel(s.URL).Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}

// TestTheSDKReadsTheSame compares how the official SDK and this package read
// the test server's stream.
func TestTheSDKReadsTheSame(t *testing.T) {
	turn := modeltest.Turn{
		Text:     "Größe: groß, and then a second piece.",
		Calls:    []model.Call{{ID: "toolu_1", Name: "read", Args: `{"path":"x","n":1}`}, {ID: "toolu_2", Name: "grep", Args: `{}`}},
		Thinking: "Which one is <it>?",
		Usage:    &model.Usage{Input: 70, CacheRead: 30, CacheWrite: 5, Output: 50, Reasoning: 20},
	}
	s := modeltest.NewServer(t, turn)
	reply, err := newModel(s.URL).Generate(t.Context(), hi)
	if err != nil {
		t.Fatal(err)
	}
	client := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(s.URL), option.WithAPIKey(key))
	params := sdk.MessageNewParams{
		Model: "claude-opus-4-8", MaxTokens: 100, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hi"))},
	}
	events := client.Messages.NewStreaming(t.Context(), params)
	defer events.Close()
	var message sdk.Message
	for events.Next() {
		if err := message.Accumulate(events.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	plain, err := client.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	asValue := cmp.Transformer("value", func(raw json.RawMessage) (v any) {
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Error(err)
		}
		return v
	})
	if diff := cmp.Diff(sdkParts(t, &message), sdkParts(t, plain), asValue); diff != "" || plain.StopReason != message.StopReason {
		t.Errorf("the server's responses (-streamed +plain):\n%s", diff)
	}
	if diff := cmp.Diff(sdkParts(t, &message), reply.Parts, asValue); diff != "" {
		t.Errorf("parts (-SDK +ours):\n%s", diff)
	}
	if string(message.StopReason) != reply.Detail {
		t.Errorf("the SDK reads stop %q, we %q", message.StopReason, reply.Detail)
	}
	u := message.Usage
	read := model.Usage{Input: u.InputTokens, Output: u.OutputTokens, Reasoning: u.OutputTokensDetails.ThinkingTokens,
		CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens}
	if diff := cmp.Diff(&read, reply.Usage); diff != "" || read != *turn.Usage {
		t.Errorf("usage (-SDK +ours):\n%s\nsent %+v", diff, turn.Usage)
	}
}

// sdkParts returns the SDK's message as the parts that this package would
// return.
func sdkParts(t *testing.T, message *sdk.Message) (parts []model.Part) {
	t.Helper()
	for _, b := range message.Content {
		switch b := b.AsAny().(type) {
		case sdk.TextBlock:
			parts = append(parts, model.Part{Text: b.Text})
		case sdk.ToolUseBlock:
			parts = append(parts, model.Part{Call: &model.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)}})
		case sdk.ThinkingBlock:
			data, err := json.Marshal(map[string]string{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature})
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, model.Part{Opaque: &model.Opaque{Wire: "anthropic", Data: data}})
		}
	}
	return parts
}
