package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/model/gemini"
	"hone/model/modeltest"
)

const key = "AIza-test-key"

func newModel(url string) *gemini.Model {
	return gemini.New(gemini.Config{Name: "gemini-3-pro-preview", Key: key, BaseURL: url})
}

func ask(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: text}}}}}
}

// stream serves one response with these chunks, each an event.
func stream(t testing.TB, chunks ...string) *gemini.Model {
	return raw(t, http.StatusOK, "data: "+strings.Join(chunks, "\r\n\r\ndata: ")+"\r\n\r\n")
}

func raw(t testing.TB, status int, body string) *gemini.Model {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return newModel(s.URL)
}

// parts returns a chunk with parts of the first candidate.
func parts(list ...string) string {
	return `{"candidates":[{"content":{"parts":[` + strings.Join(list, ",") + `],"role":"model"},"index":0}]}`
}

const stop = `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP"}]}`

func fault(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *model.Error", err)
	}
	return e
}

func TestSignaturesAreSentBackWithTheirParts(t *testing.T) {
	const (
		signedText = `{"text":"I look.","thoughtSignature":"c2lnMQ=="}`
		signedCall = `{"functionCall":{"name":"read","args":{"b":12345678901234567890,"a":1.50}},"thoughtSignature":"c2ln+/Mg=="}`
		plainCall  = `{"functionCall":{"id":"x7","name":"grep","args":{"q":"a<b"}}}`
		emptyText  = `{"text":"","thoughtSignature":"c2lnMw=="}`
		thought    = `{"text":"hm","thought":true}`
		sealed     = `{"text":"hm","thought":true,"thoughtSignature":"c2lnNA=="}`
		unknown    = `{"executableCode":{"language":"PYTHON","code":"1"}}`
	)
	m := stream(t, parts(thought, sealed), parts(`{"text":"So"}`, `{"text":": "}`), parts(signedText, `{"text":"ok"}`),
		parts(signedCall, plainCall), parts(unknown, emptyText), stop)
	req := ask("hi")
	reply, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	opaque := func(data string) model.Part {
		return model.Part{Opaque: &model.Opaque{Wire: gemini.Wire, Data: json.RawMessage(data)}}
	}
	want := []model.Part{
		opaque(sealed),
		{Text: "So: "},
		opaque(`"c2lnMQ=="`), {Text: "I look."},
		{Text: "ok"},
		opaque(`"c2ln+/Mg=="`),
		{Call: &model.Call{ID: "made00001", Name: "read", Args: `{"b":12345678901234567890,"a":1.50}`}},
		{Call: &model.Call{ID: "x7", Name: "grep", Args: `{"q":"a<b"}`}},
		opaque(unknown), opaque(emptyText),
	}
	if diff := cmp.Diff(want, reply.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if reply.Finish != model.Calls {
		t.Errorf("finish %q, want calls", reply.Finish)
	}

	s := modeltest.NewServer(t, modeltest.Turn{Text: "done"})
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Parts: reply.Parts},
		model.Message{Role: model.User, Parts: []model.Part{
			{Result: &model.Result{ID: "made00001", Name: "read", Text: "text"}},
			{Result: &model.Result{ID: "x7", Name: "grep", Text: "no such file", Failed: true}},
		}})
	if _, err := newModel(s.URL).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	wantBody := `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[` +
		strings.Join([]string{
			sealed, `{"text":"So: "}`, signedText, `{"text":"ok"}`, signedCall,
			`{"functionCall":{"id":"x7","name":"grep","args":{"q":"a<b"}}}`, unknown, emptyText,
		}, ",") +
		`]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"text"}}},` +
		`{"functionResponse":{"id":"x7","name":"grep","response":{"error":"no such file"}}}]}]}`
	if diff := cmp.Diff(wantBody, string(s.Received()[0].Body)); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
}

// Models since Gemini 3 reject calls that nobody signed. Those that another model made
// get the signature that the API has for them.
func TestCallsOfAnotherModelAreSigned(t *testing.T) {
	call := func(id string) model.Part {
		return model.Part{Call: &model.Call{ID: id, Name: "read", Args: "{}"}}
	}
	opaque := func(wire, data string) model.Part {
		return model.Part{Opaque: &model.Opaque{Wire: wire, Data: json.RawMessage(data)}}
	}
	const foreign = `"thoughtSignature":"skip_thought_signature_validator"`
	for _, tt := range []struct {
		model string
		parts []model.Part
		want  int // number of calls with that signature
	}{
		{"gemini-3-pro-preview", []model.Part{call("a"), call("b")}, 2},
		{"models/gemini-3-flash", []model.Part{opaque("anthropic", `{"type":"thinking"}`), {Text: "So."}, call("a")}, 1},
		{"gemini-3-pro-preview", []model.Part{opaque(gemini.Wire, `"c2ln"`), call("a"), call("b")}, 0},
		{"gemini-3-pro-preview", []model.Part{{Text: "no call"}}, 0},
		{"gemini-2.5-pro", []model.Part{call("a")}, 0},
	} {
		s := modeltest.NewServer(t, modeltest.Turn{Text: "done"})
		req := ask("hi")
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: tt.parts})
		if _, err := gemini.New(gemini.Config{Name: tt.model, Key: "k", BaseURL: s.URL}).Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		body := string(s.Received()[0].Body)
		if n := strings.Count(body, foreign); n != tt.want {
			t.Errorf("%s: %d calls with the signature, want %d:\n%s", tt.model, n, tt.want, body)
		}
	}
}

func TestMadeCallIDsAreUnique(t *testing.T) {
	call := parts(`{"functionCall":{"name":"read"}}`)
	req := ask("hi")
	req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: []model.Part{
		{Call: &model.Call{ID: "made00001", Name: "read", Args: "{}"}},
	}})
	reply, err := stream(t, call, call, stop).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Call{{ID: "made00002", Name: "read", Args: "{}"}, {ID: "made00003", Name: "read", Args: "{}"}}
	if diff := cmp.Diff(want, reply.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestOnlyTheFirstCandidateCounts(t *testing.T) {
	reply, err := stream(t,
		`{"candidates":[{"content":{"parts":[{"text":"second"}]},"index":1,"finishReason":"SAFETY"},{"content":{"parts":[{"text":"first"}]},"index":0}]}`,
		stop).Generate(t.Context(), ask("hi"))
	if err != nil || reply.Text() != "first" || reply.Finish != model.Stop {
		t.Errorf("got %q, %q, %v", reply.Text(), reply.Finish, err)
	}
}

func TestFinishes(t *testing.T) {
	for reason, want := range map[string]model.Finish{
		"STOP": model.Stop, "MAX_TOKENS": model.Length, "SAFETY": model.Filtered, "RECITATION": model.Filtered,
		"BLOCKLIST": model.Filtered, "PROHIBITED_CONTENT": model.Filtered, "SPII": model.Filtered,
		"MALFORMED_FUNCTION_CALL": model.Other, "UNEXPECTED_TOOL_CALL": model.Other, "LANGUAGE": model.Other,
		"UNKNOWN_REASON": model.Other,
	} {
		m := stream(t, fmt.Sprintf(`{"candidates":[{"finishReason":%q,"finishMessage":"why"}]}`, reason))
		reply, err := m.Generate(t.Context(), ask("hi"))
		if err != nil || reply.Finish != want || reply.Detail != reason+": why" {
			t.Errorf("%s: got %q, %q, %v; want %q", reason, reply.Finish, reply.Detail, err, want)
		}
	}
}

func TestBlockedPromptIsFiltered(t *testing.T) {
	m := stream(t, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7}}`)
	reply, err := m.Generate(t.Context(), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	want := model.Reply{
		Finish: model.Filtered, Detail: "PROHIBITED_CONTENT", Usage: &model.Usage{Input: 7},
		Raw: json.RawMessage(`[{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7}}]`),
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestUsageOfTheLastChunk(t *testing.T) {
	reply, err := stream(t,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100}}`,
		stop,
		`{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"toolUsePromptTokenCount":5,"candidatesTokenCount":10,"thoughtsTokenCount":30}}`,
	).Generate(t.Context(), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Usage{Input: 45, CacheRead: 60, Output: 40, Reasoning: 30}
	if diff := cmp.Diff(want, reply.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// An earlier chunk's smaller numbers do not stand in for the last chunk's.
func TestUnreadableUsageOfTheLastChunk(t *testing.T) {
	const first = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":1}}`
	for _, last := range []string{`"x"`, `[]`, `{}`, `{"promptTokenCount":"100","candidatesTokenCount":9}`, `{"promptTokenCount":100}`,
		`{"promptTokenCount":100,"candidatesTokenCount":9,"toolUsePromptTokenCount":-1}`} {
		m := stream(t, first, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":`+last+`}`)
		if reply, err := m.Generate(t.Context(), ask("hi")); err != nil || reply.Text() != "a" || reply.Usage != nil {
			t.Errorf("%s: usage = %+v, %v; want nil", last, reply.Usage, err)
		}
	}
}

func TestErrorInTheStream(t *testing.T) {
	const overloaded = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
	first := `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`
	for name, body := range map[string]string{
		"an event":       "data: " + first + "\n\ndata: " + overloaded + "\n\n",
		"not an event":   "data: " + first + "\n\n{\n  \"error\": {\n \"code\": 503,\n \"message\": \"The model is overloaded.\"}\n}\n",
		"a list":         "data: " + first + "\n\n[" + overloaded + "]",
		"after its stop": "data: " + first + "\n\ndata: " + stop + "\n\ndata: " + overloaded + "\n\n",
	} {
		_, err := raw(t, 200, body).Generate(t.Context(), ask("hi"))
		e := fault(t, err)
		want := &model.Error{
			Kind: model.Overloaded, Status: 503, Streamed: true, Message: "The model is overloaded.",
			Usage: &model.Usage{Input: 9, Output: 1},
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProtocolViolationsNeverSucceed(t *testing.T) {
	event := func(data string) string { return "data: " + data + "\n\ndata: " + stop + "\n\n" }
	for body, want := range map[string]model.Kind{
		event(`{"candidates":5}`):                           model.Garbage,
		event(`{"candidates":[5]}`):                         model.Garbage,
		event(`{"candidates":[{"content":5}]}`):             model.Garbage,
		event(parts(`5`)):                                   model.Garbage,
		event(parts(`{"text":5}`)):                          model.Garbage,
		event(parts(`{"text":"a","thoughtSignature":{}}`)):  model.Garbage,
		event(parts(`{"functionCall":"a"}`)):                model.Garbage,
		event(`{"usageMetadata":[]}`):                       model.Garbage,
		event(`{"error":"no"}`):                             model.Overloaded,
		event(`{"oops":1}`):                                 model.Garbage,
		event(parts("{\"text\":\"\xff\"}")):                 model.Garbage,
		"<html>proxy</html>":                                model.Garbage,
		"":                                                  model.Cut,
		": comment\n\n":                                     model.Cut,
		"data: " + parts(`{"text":"a"}`) + "\n\n":           model.Cut,
		"data: " + stop[:len(stop)-9]:                       model.Cut,
		"data: " + parts(`null`) + "\n\ndata: " + "\n\n":    model.Cut,
		"event: x\nid: 1\nretry: 5\ndata: {\"responseId\":": model.Cut,
	} {
		reply, err := raw(t, 200, body).Generate(t.Context(), ask("hi"))
		if err == nil {
			t.Errorf("%q: got a reply %+v", body, reply)
			continue
		}
		if e := fault(t, err); e.Kind != want || !e.Temporary() {
			t.Errorf("%q: got %v, want kind %q", body, e, want)
		}
	}
}

func TestEventFormats(t *testing.T) {
	for _, body := range []string{
		"data:" + parts(`{"text":"grüße"}`) + "\n\ndata:" + stop + "\n\n",
		"event: message\nid: 4\ndata: " + parts(`{"text":"grüße"}`) + "\n\n: ping\n\ndata: " + stop,
		"data: {\"candidates\":\r\ndata: [{\"content\":{\"parts\":[{\"text\":\"grüße\"}]},\r\ndata: \"finishReason\":\"STOP\"}]}\r\n\r\n",
	} {
		reply, err := raw(t, 200, body).Generate(t.Context(), ask("hi"))
		if err != nil || reply.Text() != "grüße" {
			t.Errorf("%q: got %q, %v", body, reply.Text(), err)
		}
	}
}

func TestErrorBodies(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   model.Error
	}{
		{"key not valid", 400,
			`{"error":{"code":400,"message":"No.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`,
			model.Error{Kind: model.Auth, Status: 400, Message: "No.", Hint: "set GEMINI_API_KEY to a key for this model"}},
		{"quota with its delay", 429,
			`{"error":{"code":429,"message":"Slow.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"13.5s"}]}}`,
			model.Error{Kind: model.RateLimited, Status: 429, Message: "Slow.", RetryAfter: 13500 * time.Millisecond}},
		{"in a list", 429,
			`[{"error":{"code":429,"message":"Slow.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]}}]`,
			model.Error{Kind: model.RateLimited, Status: 429, Message: "Slow.", RetryAfter: 2 * time.Second}},
		{"quota with an invalid delay", 429,
			`{"error":{"code":429,"message":"Slow.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"soon"}]}}`,
			model.Error{Kind: model.RateLimited, Status: 429, Message: "Slow."}},
		{"too long", 400,
			`{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`,
			model.Error{Kind: model.TooLong, Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}},
		{"no such model", 404, `{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}`,
			model.Error{Kind: model.NoModel, Status: 404, Message: "models/x is not found",
				Hint: "no such model? Make sure that its name and the endpoint's address are right", Alternative: "start a new run with another model"}},
		{"a proxy's page", 502, `<html>Bad</html>`,
			model.Error{Kind: model.Overloaded, Status: 502, Message: "Bad Gateway"}},
	}
	for _, test := range tests {
		m := raw(t, test.status, test.body)
		_, err := m.Generate(t.Context(), ask("hi"))
		if diff := cmp.Diff(&test.want, fault(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(&test.want, fault(t, m.Probe(t.Context()))); diff != "" {
			t.Errorf("%s, probe (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestGeneration(t *testing.T) {
	tests := []struct {
		name      string
		reasoning model.Reasoning
		limit     int64
		want      string
	}{
		{"gemini-3-pro-preview", "", 0, ``},
		{"gemini-3-pro-preview", model.Low, 0, `{"thinkingConfig":{"thinkingLevel":"LOW"}}`},
		{"gemini-3-pro-preview", model.Medium, 0, `{"thinkingConfig":{"thinkingLevel":"HIGH"}}`},
		{"models/gemini-3.5-flash", model.Medium, 100, `{"maxOutputTokens":100,"thinkingConfig":{"thinkingLevel":"MEDIUM"}}`},
		{"gemini-flash-latest", model.High, 0, `{"thinkingConfig":{"thinkingLevel":"HIGH"}}`},
		{"gemini-2.5-pro", model.Low, 65536, `{"maxOutputTokens":65536,"thinkingConfig":{"thinkingBudget":1024}}`},
		{"gemini-2.5-flash-lite", model.High, 0, `{"thinkingConfig":{"thinkingBudget":24576}}`},
		{"gemini-2.0-flash", model.High, 8192, `{"maxOutputTokens":8192}`},
	}
	for _, test := range tests {
		s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
		req := ask("hi")
		req.Reasoning, req.MaxOutput = test.reasoning, test.limit
		if _, err := gemini.New(gemini.Config{Name: test.name, BaseURL: s.URL}).Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Config json.RawMessage `json:"generationConfig"`
		}
		if err := json.Unmarshal(s.Received()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if string(body.Config) != test.want {
			t.Errorf("%s %q: sent %s, want %s", test.name, test.reasoning, body.Config, test.want)
		}
	}
}

func TestAddressAndKey(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "1")
	s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
	for _, test := range []struct{ base, name, want string }{
		{s.URL, "gemini-3", "/v1beta/models/gemini-3:streamGenerateContent"},
		{s.URL + "/", "models/gemini-3", "/v1beta/models/gemini-3:streamGenerateContent"},
		{s.URL + "/v1beta", "gemini-3", "/v1beta/models/gemini-3:streamGenerateContent"},
		{s.URL + "/v1beta/", "a?key=b", "/v1beta/models/a?key=b:streamGenerateContent"},
	} {
		s.Script(modeltest.Turn{Text: "ok"})
		m := gemini.New(gemini.Config{Name: test.name, Key: key, BaseURL: test.base})
		if _, err := m.Generate(t.Context(), ask("hi")); err != nil {
			t.Fatal(err)
		}
		got := s.Received()[0]
		if got.Path != test.want || got.Query != "alt=sse" || got.Header.Get("X-Goog-Api-Key") != key {
			t.Errorf("%s: got %s ? %s with key %q", test.base, got.Path, got.Query, got.Header.Get("X-Goog-Api-Key"))
		}
	}
	s.Script(modeltest.Turn{Text: "ok"})
	if _, err := gemini.New(gemini.Config{Name: "gemini-3", BaseURL: s.URL}).Generate(t.Context(), ask("hi")); err != nil {
		t.Fatal(err)
	}
	if got := s.Received()[0].Header.Values("X-Goog-Api-Key"); got != nil {
		t.Errorf("a model without a key sent %q", got)
	}
}

func TestProbe(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Turn{})
	if err := newModel(s.URL).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.Received()[0]
	if got.Path != "/v1beta/models/gemini-3-pro-preview" || len(got.Body) != 0 || got.Header.Get("X-Goog-Api-Key") != key {
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
