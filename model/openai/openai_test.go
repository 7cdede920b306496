package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/model/modeltest"
	"hone/model/openai"
)

// serve starts a server that always sends body and stores the last request.
func serve(t *testing.T, contentType, body string) (url string, last *modeltest.Received) {
	t.Helper()
	last = new(modeltest.Received)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		*last = modeltest.Received{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: sent}
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, last
}

// events returns a stream with one event for each of data.
func events(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

const stream = "text/event-stream"

func hello() model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: "Hello"}}}}}
}

func generate(t *testing.T, c openai.Config, req model.Request) model.Reply {
	t.Helper()
	c.Name = "m"
	reply, err := openai.New(c).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

const chatEnd = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// No credentials from the environment reach a local server.
func TestEnvironmentIsNotRead(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk-environment", "OPENAI_ADMIN_KEY": "sk-environment", "OPENAI_ORG_ID": "org-environment",
		"OPENAI_PROJECT_ID": "proj-environment", "OPENAI_BASE_URL": "http://environment.invalid",
		"OPENAI_CUSTOM_HEADERS": "X-Custom: environment",
	} {
		t.Setenv(name, value)
	}
	for _, wire := range []string{openai.Chat, openai.Responses} {
		s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
		generate(t, openai.Config{BaseURL: s.URL + "/v1", Wire: wire}, hello())
		r := s.Received()[0]
		if _, ok := r.Header["Authorization"]; ok {
			t.Errorf("%s: a request without a key has the header %q", wire, r.Header["Authorization"])
		}
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "environment") {
				t.Errorf("%s: the header %s is %q", wire, name, values)
			}
		}
	}
}

func TestWireAndAddress(t *testing.T) {
	for _, test := range []struct {
		wire string
		base string
		path string
	}{
		{"", "/v1", "/v1/chat/completions"},
		{"", "/v1/", "/v1/chat/completions"},
		{"", "", "/chat/completions"},
		{openai.Responses, "/api/v1", "/api/v1/responses"},
	} {
		s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
		generate(t, openai.Config{BaseURL: s.URL + test.base, Wire: test.wire}, hello())
		if got := s.Received()[0].Path; got != test.path {
			t.Errorf("wire %q at %q: path %s, want %s", test.wire, test.base, got, test.path)
		}
	}
}

func TestConfigurationFaults(t *testing.T) {
	for _, c := range []openai.Config{
		{Name: "m", BaseURL: "localhost:11434/v1"},
		{Name: "m", BaseURL: "http://user:secret@[::1"},
		{Name: "m", BaseURL: "/v1"},
		{Name: "m", BaseURL: "ftp://secret.invalid/"},
		{BaseURL: "http://localhost/v1"},
	} {
		for _, wire := range []string{openai.Chat, openai.Responses} {
			c.Wire = wire
			_, err := openai.New(c).Generate(t.Context(), hello())
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != model.Invalid || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: error = %v, want kind %q", c, err, model.Invalid)
			}
		}
	}
}

// Servers reject the calls of an earlier message without what they sent beside them: DeepSeek
// and Kimi the reasoning, OpenRouter its details, Google the signature of a call.
func TestReasoningIsSentBackWithCalls(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}%s}]`
	signed := strings.Replace(call, "%s", `,"extra_content":{"google":{"thought_signature":"c2ln+/=="}}`, 1)
	delta := func(fields string) string { return `{"choices":[{"index":0,"delta":{` + fields + `}}]}` }
	for name, body := range map[string]string{
		"streamed": events(delta(`"reasoning_content":"Is a < b? "`), delta(`"reasoning_content":"I look.","content":null`),
			delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Is","signature":null}]`),
			delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":" a","signature":"s"}]`),
			delta(`"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"x"}]`),
			delta(signed), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]"),
		"plain": `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","reasoning_content":"Is a < b? I look.","reasoning_details":[
			{"type":"reasoning.text","index":0,"text":"Is a","signature":"s"},{"type":"reasoning.encrypted","index":1,"data":"x"}],` + signed + `}}]}`,
	} {
		url, last := serve(t, stream, body)
		req := hello()
		reply := generate(t, openai.Config{BaseURL: url}, req)
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: append(reply.Parts,
			model.Part{Opaque: &model.Opaque{Wire: "gemini", Data: json.RawMessage(`{"reasoning_content":"of another"}`)}})},
			model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "c1", Name: "read", Text: "x"}}}})
		generate(t, openai.Config{BaseURL: url}, req)
		var sent struct {
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(last.Body, &sent); err != nil {
			t.Fatal(err)
		}
		want := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"},` +
			`"extra_content":{"google":{"thought_signature":"c2ln+/=="}}}],"reasoning_content":"Is a < b? I look.",` +
			`"reasoning_details":[{"index":0,"signature":"s","text":"Is a","type":"reasoning.text"},{"type":"reasoning.encrypted","index":1,"data":"x"}]}`
		got := string(sent.Messages[1])
		if name == "plain" { // the details are as they were
			want = strings.Replace(want, `{"index":0,"signature":"s","text":"Is a","type":"reasoning.text"}`, `{"type":"reasoning.text","index":0,"text":"Is a","signature":"s"}`, 1)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: sent back (-want +got):\n%s", name, diff)
		}
	}
	url, last := serve(t, stream, events(delta(`"reasoning_content":"Hm."`), delta(`"content":"Hi"`), chatEnd))
	req := hello()
	req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: generate(t, openai.Config{BaseURL: url}, req).Parts})
	generate(t, openai.Config{BaseURL: url}, req)
	if strings.Contains(string(last.Body), "Hm.") {
		t.Errorf("the reasoning of a message without calls is sent back: %s", last.Body)
	}
}

// What was streamed counts, also if the last event of the Responses API lacks it.
func TestStreamedItemsCount(t *testing.T) {
	const call = `{"type":"function_call","id":"f","call_id":"c","name":"read","arguments":"{\"n\":1}"}`
	const message = `{"type":"message","id":"m","content":[{"type":"output_text","text":"I work"}]}`
	const other = `{"type":"message","id":"x","content":[{"type":"output_text","text":"I work."}]}`
	const reasoning = `{"type":"reasoning","id":"r","summary":[]}`
	done := func(item string) string {
		return `{"type":"response.output_item.done","output_index":0,"item":` + item + `}`
	}
	end := func(items ...string) string {
		return `{"type":"response.completed","response":{"status":"completed","output":[` + strings.Join(items, ",") + `]}}`
	}
	bare := strings.Replace(call, `{\"n\":1}`, "", 1)
	added := `{"type":"response.output_item.added","output_index":2,"item":` + bare + `}`
	args := `{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"f","delta":"{\"n\":1}"}`
	text := `{"type":"response.output_text.delta","output_index":1,"delta":"I work"}`
	for name, test := range map[string]struct {
		events []string
		want   string // kinds of the parts
	}{
		"all":                         {[]string{done(reasoning), done(message), done(call), end(reasoning, message, call)}, "opaque text call"},
		"other identifiers":           {[]string{text, done(call), end(other, strings.NewReplacer(`"f"`, `"g"`, `"c"`, `"d"`).Replace(call))}, "text call"},
		"only the message at the end": {[]string{done(reasoning), done(call), end(message)}, "opaque call text"},
		"arguments as an object":      {[]string{end(strings.Replace(call, `"{\"n\":1}"`, `{"n":1}`, 1))}, "call"},
		"arguments in deltas":         {[]string{added, args, end()}, "call"},
		"arguments when done":         {[]string{added, strings.NewReplacer(".delta", ".done", `"delta"`, `"arguments"`).Replace(args), end()}, "call"},
		"arguments lost at the end":   {[]string{added, args, done(bare), end(bare)}, "call"},
		"text in deltas":              {[]string{text, done(reasoning), end(reasoning)}, "text opaque"},
		"response.done":               {[]string{text, `{"type":"response.done","response":{"output":[]}}`}, "text"},
	} {
		url, _ := serve(t, stream, events(test.events...))
		reply := generate(t, openai.Config{BaseURL: url, Wire: openai.Responses}, hello())
		var kinds []string
		for _, p := range reply.Parts {
			switch {
			case p.Call != nil:
				kinds = append(kinds, "call")
				if p.Call.Args != `{"n":1}` {
					t.Errorf("%s: arguments %q", name, p.Call.Args)
				}
			case p.Opaque != nil:
				kinds = append(kinds, "opaque")
			default:
				kinds = append(kinds, "text")
			}
		}
		if got := strings.Join(kinds, " "); got != test.want || !reply.Finish.Normal() {
			t.Errorf("%s: %s, %q; want %s", name, got, reply.Finish, test.want)
		}
	}
}

// A plain response's usage is read as strictly as a stream's.
func TestUnreadableUsageOfAPlainResponse(t *testing.T) {
	for _, count := range []string{`"9"`, `1e400`, `1.5`, `-1`, `null`, `9223372036854775808`, `{}`, `2000000000000`} {
		for wire, body := range map[string]string{
			openai.Chat: `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}],
				"usage":{"prompt_tokens":` + count + `,"completion_tokens":4}}`,
			openai.Responses: `{"object":"response","status":"completed","usage":{"input_tokens":` + count + `,"output_tokens":4},"output":[
				{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}]}`,
		} {
			url, _ := serve(t, "application/json", body)
			if reply := generate(t, openai.Config{BaseURL: url, Wire: wire}, hello()); reply.Text() != "Hi" || reply.Usage != nil {
				t.Errorf("%s, %s: text %q, usage %+v; want nil", wire, count, reply.Text(), reply.Usage)
			}
		}
	}
}

// The tokens that are read from the cache and written to it are parts of the input.
func TestCachedUsage(t *testing.T) {
	want := model.Usage{Input: 10, Output: 4, CacheRead: 70, CacheWrite: 20}
	for wire, body := range map[string]string{
		openai.Chat: `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}],
			"usage":{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":70,"cache_write_tokens":20}}}`,
		openai.Responses: `{"object":"response","status":"completed","usage":{"input_tokens":100,"output_tokens":4,"input_tokens_details":{"cached_tokens":70,"cache_write_tokens":20}},"output":[
			{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}]}`,
	} {
		url, _ := serve(t, "application/json", body)
		if reply := generate(t, openai.Config{BaseURL: url, Wire: wire}, hello()); reply.Usage == nil || *reply.Usage != want {
			t.Errorf("%s: usage %+v, want %+v", wire, reply.Usage, want)
		}
	}
}

// A server that ignores the request for a stream works too.
func TestPlainResponses(t *testing.T) {
	for wire, body := range map[string]string{
		openai.Chat: `{"id":"x","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"I look.",
			"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]}}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`,
		openai.Responses: `{"id":"x","object":"response","status":"completed","output":[
			{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
			{"type":"function_call","id":"f","call_id":"c1","name":"read","arguments":"{}","status":"completed"}],
			"usage":{"input_tokens":9,"output_tokens":4,"total_tokens":13}}`,
	} {
		url, _ := serve(t, "application/json", body)
		req, streamed := hello(), ""
		req.Stream = func(text string) { streamed += text }
		reply := generate(t, openai.Config{BaseURL: url, Wire: wire}, req)
		want := []model.Part{{Text: "I look."}, {Call: &model.Call{ID: "c1", Name: "read", Args: "{}"}}}
		if diff := cmp.Diff(want, reply.Parts); diff != "" || reply.Finish != model.Calls || streamed != "I look." {
			t.Errorf("%s: finish %q, streamed %q, parts (-want +got):\n%s", wire, reply.Finish, streamed, diff)
		}
		if diff := cmp.Diff(&model.Usage{Input: 9, Output: 4}, reply.Usage); diff != "" {
			t.Errorf("%s: usage (-want +got):\n%s", wire, diff)
		}
	}
}

// callDelta returns a chunk with one piece of a call.
func callDelta(call string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + call + `]},"finish_reason":null}]}`
}

func TestChatCallFormats(t *testing.T) {
	a := model.Call{ID: "a", Name: "read", Args: `{"p":1}`}
	b := model.Call{ID: "b", Name: "write", Args: `{"p":2}`}
	for name, test := range map[string]struct {
		chunks []string
		want   []model.Call
	}{
		"in pieces that alternate": {
			[]string{
				`{"index":0,"id":"a","function":{"name":"read","arguments":""}},{"index":1,"id":"b","function":{"name":"write","arguments":""}}`,
				`{"index":0,"function":{"arguments":"{\"p\""}}`, `{"index":1,"function":{"arguments":"{\"p\""}}`,
				`{"index":1,"function":{"arguments":":2}"}}`, `{"index":0,"function":{"arguments":":1}"}}`,
			}, []model.Call{a, b},
		},
		"all with one index": {
			[]string{
				`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
				`{"index":0,"id":"b","function":{"name":"write","arguments":"{\"p\":2}"}}`,
			}, []model.Call{a, b},
		},
		"without IDs": {
			[]string{
				`{"index":0,"function":{"name":"read","arguments":"{\"p\":1}"}}`,
				`{"index":1,"function":{"name":"write","arguments":"{\"p\":2}"}}`,
			}, []model.Call{{ID: "made00001", Name: "read", Args: a.Args}, {ID: "made00002", Name: "write", Args: b.Args}},
		},
		"without IDs and with one index": {
			[]string{
				`{"function":{"name":"read","arguments":"{\"p\":1}"}}`,
				`{"function":{"name":"write","arguments":"{\"p\":2}"}}`,
			}, []model.Call{{ID: "made00001", Name: "read", Args: a.Args}, {ID: "made00002", Name: "write", Args: b.Args}},
		},
	} {
		var chunks []string
		for _, c := range test.chunks {
			chunks = append(chunks, callDelta(c))
		}
		url, _ := serve(t, stream, events(append(chunks, chatEnd, "[DONE]")...))
		reply := generate(t, openai.Config{BaseURL: url}, hello())
		if diff := cmp.Diff(test.want, reply.Calls()); diff != "" || reply.Finish != model.Calls {
			t.Errorf("calls %s: finish %q (-want +got):\n%s", name, reply.Finish, diff)
		}
	}
}

// A made ID must differ from those of earlier replies.
func TestChatMadeIDsAreUnique(t *testing.T) {
	url, last := serve(t, stream, events(callDelta(`{"index":0,"function":{"name":"read","arguments":"{}"}}`), chatEnd))
	req := hello()
	seen := map[string]bool{}
	for range 3 {
		reply := generate(t, openai.Config{BaseURL: url}, req)
		call := reply.Calls()[0]
		if seen[call.ID] {
			t.Errorf("the ID %s is not unique", call.ID)
		}
		seen[call.ID] = true
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: reply.Parts},
			model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: call.ID, Name: "read", Text: "ok"}}}})
	}
	if n := strings.Count(string(last.Body), `"made00002"`); n != 2 {
		t.Errorf("the second ID appears %d times in the request, want 2 (its call and its result): %s", n, last.Body)
	}
}

// Results directly follow their calls, before the message's text.
func TestChatResultsComeBeforeText(t *testing.T) {
	url, last := serve(t, stream, events(chatEnd))
	req := hello()
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "a", Name: "read", Args: "no JSON"}}}},
		model.Message{Role: model.User, Parts: []model.Part{{Text: "and answer now"}, {Result: &model.Result{ID: "a", Name: "read", Text: "ok"}}}})
	generate(t, openai.Config{BaseURL: url}, req)
	var sent struct{ Messages json.RawMessage }
	if err := json.Unmarshal(last.Body, &sent); err != nil {
		t.Fatal(err)
	}
	const want = `[{"role":"user","content":"Hello"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]},` +
		`{"role":"tool","content":"ok","tool_call_id":"a"},{"role":"user","content":"and answer now"}]`
	if diff := cmp.Diff(want, string(sent.Messages)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// Several texts of a user are one string: some compatible servers reject lists.
func TestChatJoinsTexts(t *testing.T) {
	url, last := serve(t, stream, events(chatEnd))
	req := hello()
	req.Messages[0].Parts = []model.Part{{Text: "one\n", Cache: true}, {Text: "two", Cache: true}, {Text: "three"}}
	generate(t, openai.Config{BaseURL: url}, req)
	if want := `"content":"one\ntwo\n\nthree"`; !strings.Contains(string(last.Body), want) {
		t.Errorf("%s, want %s", last.Body, want)
	}
}

func TestChatRequestsUsageAndAStream(t *testing.T) {
	url, last := serve(t, stream, events(chatEnd))
	req := hello()
	req.MaxOutput = 7
	generate(t, openai.Config{BaseURL: url}, req)
	const want = `{"model":"m","messages":[{"role":"user","content":"Hello"}],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(want, string(last.Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestResponsesStoresNothing(t *testing.T) {
	for name, include := range map[string]bool{"gpt-5": true, "o4-mini": true, "gpt-4o": false, "gpt-4.1-mini": false} {
		s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
		m := openai.New(openai.Config{Name: name, BaseURL: s.URL, Wire: openai.Responses})
		if _, err := m.Generate(t.Context(), hello()); err != nil {
			t.Fatal(err)
		}
		body := string(s.Received()[0].Body)
		if !strings.Contains(body, `"store":false`) || strings.Contains(body, `"include":["reasoning.encrypted_content"]`) != include {
			t.Errorf("%s: body = %s, want store false and include %t", name, body, include)
		}
	}
}

func TestRefusal(t *testing.T) {
	turn := modeltest.Turn{Text: "I can't help\nwith that.", Finish: model.Filtered, Detail: "refusal"}
	for _, wire := range []string{openai.Chat, openai.Responses} {
		s := modeltest.NewServer(t, turn)
		reply := generate(t, openai.Config{BaseURL: s.URL, Wire: wire}, hello())
		if reply.Finish != model.Filtered || reply.Detail != "refusal: I can't help with that." || reply.Text() != "" {
			t.Errorf("%s: reply = %+v, want a refusal", wire, reply)
		}
	}
}

func TestErrorsInsideAStream(t *testing.T) {
	for name, test := range map[string]struct {
		wire string
		body string
		want model.Error
	}{
		"chat": {
			openai.Chat, events(`{"error":{"message":"Too many\nrequests.","type":"requests","code":"rate_limit_exceeded"}}`),
			model.Error{Kind: model.RateLimited, Streamed: true, Message: "Too many requests."},
		},
		"OpenRouter": {
			openai.Chat, events(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"error":{"message":"The provider disconnected.","code":502},"choices":[]}`),
			model.Error{Kind: model.Overloaded, Status: 502, Streamed: true, Message: "The provider disconnected."},
		},
		"responses": {
			openai.Responses, events(`{"type":"error","code":"server_error","message":"It broke.","param":null,"sequence_number":1}`),
			model.Error{Kind: model.Overloaded, Streamed: true, Message: "It broke."},
		},
		"responses, nested": {
			openai.Responses, events(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Too long."}}`),
			model.Error{Kind: model.TooLong, Streamed: true, Message: "Too long."},
		},
		"a failed response": {
			openai.Responses, events(`{"type":"response.failed","response":{"status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"Later."},` +
				`"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}`),
			model.Error{Kind: model.RateLimited, Streamed: true, Message: "Later.", Usage: &model.Usage{Input: 5, Output: 2}},
		},
	} {
		url, _ := serve(t, stream, test.body)
		_, err := openai.New(openai.Config{Name: "m", BaseURL: url, Wire: test.wire}).Generate(t.Context(), hello())
		var e *model.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error = %v, want a *model.Error", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, *e); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A stream with a finish reason is complete even without the closing [DONE].
func TestChatStreamWithoutDone(t *testing.T) {
	url, _ := serve(t, stream, events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, chatEnd,
		`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}],"usage":{"prompt_tokens":1}}`))
	if reply := generate(t, openai.Config{BaseURL: url}, hello()); reply.Text() != "Hi" || reply.Finish != model.Stop {
		t.Errorf("reply = %+v, want it complete", reply)
	}
}

// Items that are neither text nor calls are sent back unchanged, and so is the
// phase of a message.
func TestResponsesItemsAreSentBack(t *testing.T) {
	const reasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a <b> & c"}],"encrypted_content":"gAAA+/=="}`
	const search = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`
	const message = `{"id":"m_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`
	const call = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"read","arguments":"{\"p\":1}"}`
	url, last := serve(t, stream, events(
		`{"type":"response.output_item.done","output_index":0,"item":`+reasoning+`}`,
		`{"type":"response.completed","response":{"status":"completed","output":[`+strings.Join([]string{reasoning, search, message, call}, ",")+`]}}`))
	c := openai.Config{BaseURL: url, Wire: openai.Responses}
	req := hello()
	reply := generate(t, c, req)
	if reply.Text() != "I look." || reply.Finish != model.Calls {
		t.Errorf("reply = %+v", reply)
	}
	req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: reply.Parts},
		model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "c1", Name: "read", Text: "ok"}}}})
	generate(t, c, req)
	var sent struct{ Input json.RawMessage }
	if err := json.Unmarshal(last.Body, &sent); err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]},` + reasoning + "," + search + "," +
		`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},` +
		`{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"p\":1}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"ok"}]`
	if diff := cmp.Diff(want, string(sent.Input)); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

// Some servers leave the closing event's output empty.
func TestResponsesOutputFromItems(t *testing.T) {
	url, _ := serve(t, stream, events(
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}}`,
		`{"type":"response.completed","response":{"status":"completed","output":[]}}`))
	if reply := generate(t, openai.Config{BaseURL: url, Wire: openai.Responses}, hello()); reply.Text() != "Hi" {
		t.Errorf("reply = %+v, want the items' text", reply)
	}
}
