package agent

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"hone/model"
	"hone/model/modeltest"
)

func TestOnlySomePathsPass(t *testing.T) {
	for _, test := range []struct {
		wire string
		line string // method and target
		want int
	}{
		{Gemini, "GET /v1beta/models", 200},
		{Gemini, "GET /v1beta/models/gemini-x", 200},
		{Gemini, "GET /v1beta/models?key=dummy", 200},
		{Gemini, "POST /v1beta/models/gemini-x:countTokens", 200},
		{Gemini, "POST /v1beta/models/gemini-x:generateContent?key=dummy", 200},
		{Gemini, "POST /v1beta/models/gemini-x:embedContent", 403},
		{Gemini, "POST /v1beta/models/gemini-x:batchGenerateContent", 403},
		{Gemini, "POST /v1beta/models/..:generateContent", 403},
		{Gemini, "POST /v1beta/models/../files:generateContent", 403},
		{Gemini, "POST /v1beta/models/%2e%2e/x:generateContent", 403},
		{Gemini, "POST /v1beta/models/a%2fb:generateContent", 403},
		{Gemini, "POST /v1beta/models/gemini-x%3AgenerateContent", 403},
		{Gemini, "POST //v1beta/models/gemini-x:generateContent", 403},
		{Gemini, "POST /v1beta//models/gemini-x:generateContent", 403},
		{Gemini, "POST /v1beta/./models/gemini-x:generateContent", 403},
		{Gemini, "POST /v1beta/models/gemini-x:generateContent?alt=media", 403},
		{Gemini, "POST /v1beta/models/gemini-x:generateContent?alt=sse&alt=sse", 403},
		{Gemini, "POST /v1beta/models/gemini-x:generateContent?$httpMethod=DELETE", 403},
		{Gemini, "POST /v1beta/models/gemini-x:generateContent?access_token=x", 403},
		{Gemini, "POST /v1beta/models/gemini-x:generateContent?alt=sse;alt=json", 403},
		{Gemini, "POST /upload/v1beta/files", 403},
		{Gemini, "GET /v1beta/files", 403},
		{Gemini, "GET /v1beta/models/gemini-x:generateContent", 403},
		{Gemini, "DELETE /v1beta/models/gemini-x", 403},
		{Anthropic, "POST /v1/messages", 200},
		{Anthropic, "POST /v1/messages?beta=true", 200},
		{Anthropic, "POST /v1/messages/count_tokens", 200},
		{Anthropic, "GET /v1/models", 200},
		{Anthropic, "POST /v1/messages/batches", 403},
		{Anthropic, "POST /v1/files", 403},
		{Anthropic, "POST /v1/complete", 403},
		{Anthropic, "POST /v1/messages/", 403},
		{Anthropic, "POST /v1/messages\\", 403},
		{Anthropic, "PUT /v1/messages", 403},
		{OpenAI, "POST /v1/chat/completions", 200},
		{OpenAI, "POST /chat/completions", 200},
		{OpenAI, "POST /v1/responses", 200},
		{OpenAI, "GET /v1/models", 200},
		{OpenAI, "GET /v1/models/author/some-model:free", 200},
		{OpenAI, "GET /v1/responses/resp_1", 403},
		{OpenAI, "POST /v1/responses/compact", 403},
		{OpenAI, "POST /v1/embeddings", 403},
		{OpenAI, "POST /v1/v1/chat/completions", 403},
		{OpenAI, "GET /v1/models/../files", 403},
		{OpenAI, "OPTIONS *", 403},
		{OpenAI, "CONNECT api.openai.com:443", 403},
		{OpenAI, "GET http://169.254.169.254/v1/models", 403},
		{OpenAI, "POST http://api.openai.com/v1/chat/completions", 403},
	} {
		t.Run(test.line, func(t *testing.T) {
			reached := 0
			up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
				reached++
				if strings.Contains(r.URL.RawQuery, "key") {
					t.Errorf("the query %q was passed on", r.URL.RawQuery)
				}
				_, _ = io.WriteString(w, "{}")
			})
			_, addr := open(t, ForwardConfig{Wire: test.wire, Base: up, Reserve: (&book{}).Reserve})
			got := raw(t, addr, fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}", test.line))
			if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", test.want)) || (reached == 1) != (test.want == 200) {
				t.Errorf("%d requests reached the provider, response: %s", reached, got)
			}
			if test.want == 403 && !strings.Contains(got, `{"error":{`) && !strings.Contains(got, `"type":"error"`) {
				t.Errorf("the response is not in the provider's format: %s", got)
			}
		})
	}
}

// Only the agent, which has the secret, can spend the budget.
func TestSecretIsRequired(t *testing.T) {
	passed := 0
	up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		passed++
		_, _ = io.WriteString(w, `{"models":[]}`)
	})
	b := &book{}
	_, addr := open(t, ForwardConfig{Wire: Gemini, Base: up, Reserve: b.Reserve, Secret: "the-secret"})
	for _, tt := range []struct {
		header, value, query string
		status               int
	}{
		{"", "", "", 401}, {"X-Goog-Api-Key", "the-secreT", "", 401}, {"X-Goog-Api-Key", "", "", 401}, {"Authorization", "Bearer ", "", 401}, {"Cookie", "the-secret", "", 401},
		{"X-Goog-Api-Key", "the-secret", "", 200}, {"X-Api-Key", "the-secret", "", 200}, {"Authorization", "Bearer the-secret", "", 200}, {"", "", "?key=the-secret", 200},
	} {
		for _, way := range []struct{ method, path string }{{http.MethodGet, "/v1beta/models"}, {http.MethodPost, "/v1beta/models/m:countTokens"}} {
			req, _ := http.NewRequestWithContext(t.Context(), way.method, "http://"+addr+way.path+tt.query, strings.NewReader("{}"))
			if tt.header != "" {
				req.Header.Set(tt.header, tt.value)
			}
			if way.method == http.MethodPost && tt.query != "" {
				continue // counting takes no query
			}
			if res := do(t, req); res.status != tt.status {
				t.Errorf("%s %q %q: %s returns status %d", tt.header, tt.value, tt.query, way.path, res.status)
			}
		}
	}
	if passed != 7 {
		t.Errorf("%d requests were passed on", passed)
	}
}

func TestHostileRequests(t *testing.T) {
	body := simples()[2].body
	for name, test := range map[string]struct{ request, want string }{
		"two lengths":           {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n{}  ", "HTTP/1.1 400 "},
		"a huge header":         {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", "HTTP/1.1 431 "},
		"two hosts":             {"GET /v1/models HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "HTTP/1.1 400 "},
		"a space in a name":     {"GET /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\n", "HTTP/1.1 400 "},
		"a strange encoding":    {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", "HTTP/1.1 501 "},
		"a body that is gzip":   {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 415 "},
		"a body too large":      {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat(" ", 5000), "HTTP/1.1 413 "},
		"chunks too large":      {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" + strings.Repeat(" ", 5000) + "\r\n0\r\n\r\n", "HTTP/1.1 413 "},
		"broken chunks":         {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
		"a web socket":          {"GET /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 426 "},
		"HTTP/2":                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 "},
		"no JSON":               {plainPost("/v1/messages", "{"), "HTTP/1.1 400 "},
		"a list":                {plainPost("/v1/messages", "[]"), "HTTP/1.1 400 "},
		"a twin inside":         {plainPost("/v1/messages", strings.Replace(body, `"content"`, `"content":[{"source":{"url":"","url":"https://x"}}],"content"`, 1)), "HTTP/1.1 400 "},
		"a twin deep inside":    {plainPost("/v1/messages", strings.Replace(body, `"hi"`, `[{"type":"image","source":{"url":"","url":"https://x"}}]`, 1)), "HTTP/1.1 400 "},
		"a twin of a tool":      {plainPost("/v1/messages", strings.Replace(body, "{", `{"tools":[{"type":"web_search_20250305","type":"custom"}],`, 1)), "HTTP/1.1 400 "},
		"a twin":                {plainPost("/v1/messages", strings.Replace(body, "{", `{"max\u005ftokens":1,`, 1)), "HTTP/1.1 400 "},
		"not UTF-8":             {plainPost("/v1/messages", strings.Replace(body, "hi", "\xff", 1)), "HTTP/1.1 400 "},
		"a length and no model": {plainPost("/v1/messages", `{"max_tokens":1}`), "HTTP/1.1 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := &book{}
			_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: forbid(t), Reserve: ledger.Reserve, maxBody: 4000})
			if got := raw(t, addr, test.request); !strings.HasPrefix(got, test.want) {
				t.Errorf("response: %.300s", got)
			}
			if ledger.asked != 0 {
				t.Errorf("%d calls are reserved", ledger.asked)
			}
		})
	}
}

// If a request has both a length and chunks, the chunks decide where it ends,
// and the rest is another request.
func TestLengthWithChunks(t *testing.T) {
	up := modeltest.NewServer(t, modeltest.Turn{Text: "hello", Usage: &model.Usage{Input: 1, Output: 1}})
	body := simples()[2].body
	_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up.URL, Reserve: (&book{}).Reserve})
	got := raw(t, addr, fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"+
		"GET /admin HTTP/1.1\r\nHost: x\r\n\r\n", len(body), body))
	if n := len(up.Received()); n != 1 || strings.Count(got, "HTTP/1.1 ") > 2 || !strings.HasPrefix(got, "HTTP/1.1 200 ") && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("%d requests reached the provider, responses: %s", n, got)
	}
	if sent := string(up.Received()[0].Body); sent != body {
		t.Errorf("the provider got %s", sent)
	}
}

func TestPipelined(t *testing.T) {
	up := modeltest.NewServer(t, modeltest.Turn{Text: "first", Usage: &model.Usage{Input: 1, Output: 1}}, modeltest.Turn{Text: "second", Usage: &model.Usage{Input: 1, Output: 1}})
	ledger := &book{}
	_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up.URL, Reserve: ledger.Reserve})
	one := plainPost("/v1/messages", simples()[2].body)
	got := raw(t, addr, one+one+"GET /quit HTTP/1.1\r\nHost: x\r\n\r\n")
	first, second := strings.Index(got, "first"), strings.Index(got, "second")
	if first < 0 || second < first || strings.Count(got, "HTTP/1.1 200") != 2 || strings.Count(got, "HTTP/1.1 403") != 1 {
		t.Errorf("responses: %s", got)
	}
	if _, done := ledger.list(); len(done) != 2 {
		t.Errorf("settled %+v", done)
	}
}

func TestReachingBeyondTheRequest(t *testing.T) {
	const (
		msg  = `"messages":[{"role":"user","content":%s}]`
		part = `{"model":"m","messages":[{"role":"user","content":[%s]}]}`
	)
	for _, test := range []struct {
		path int // of the simples
		body string
		want int
	}{
		{0, `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"properties":{"fileUri":{"type":"STRING"}}}}]}]}`, 200},
		{0, `{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"fileUri":"x"}}}]}]}`, 200},
		{0, `{"contents":[{"parts":[{"text":"\"fileUri\":\"x\""}]}]}`, 200},
		{0, `{"contents":[],"tools":[{"googleSearch":{"a":1}}]}`, 400},
		{0, `{"contents":[],"tools":[{"url_context":{"a":1}}]}`, 400},
		{0, `{"contents":[],"tools":[{"googleSearch":{}}]}`, 400},
		{0, `{"contents":[{"parts":[{"fileData":{"fileUri":"https://x"}}]}]}`, 400},
		{0, `{"contents":[{"parts":[{"file_data":{"file_uri":"https://x"}}]}]}`, 400},
		{0, `{"contents":[{"a":1e400,"parts":[{"functionCall":{"args":{"a":[1]}}},{"fileData":{"fileUri":"https://x"}}]}]}`, 400},
		{0, `{"contents":[],"cachedContent":"cachedContents/1"}`, 400},
		{2, `{"model":"m","messages":[],"tools":[{"name":"f","input_schema":{}},{"type":"custom","name":"g"},{"type":"bash_20250124","name":"bash"}]}`, 200},
		{2, `{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"source":{"url":"x"}}}]}]}`, 200},
		{2, `{"model":"m","messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, 400},
		{2, `{"model":"m","messages":[],"tools":[{"type":["custom"],"name":"x"}]}`, 400},
		{2, `{"model":"m","messages":[],"mcp_servers":[{"type":"url","url":"https://x"}]}`, 400},
		{2, fmt.Sprintf(part, `{"type":"image","source":{"type":"base64","data":"aaaa"}}`), 200},
		{2, fmt.Sprintf(part, `{"type":"image","source":{"type":"url","url":"https://x"}}`), 400},
		{4, fmt.Sprintf(part, `{"type":"image_url","image_url":{"url":"data:image/png;base64,aa"}}`), 200},
		{4, fmt.Sprintf(part, `{"type":"image_url","image_url":{"url":"https://x"}}`), 400},
		{4, `{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f"}}]}`, 200},
		{4, `{"model":"m","messages":[],"web_search_options":{"a":1}}`, 400},
		{4, `{"model":"m","messages":[],"web_search_options":{}}`, 400},
		{6, `{"model":"m","input":[],"tools":[{"type":"function","name":"f"},{"type":"custom","name":"p"},{"type":"local_shell"}]}`, 200},
		{6, `{"model":"m","input":[],"tools":[{"type":"web_search"}]}`, 400},
		{6, `{"model":"m","input":[],"tools":[{"type":"mcp","server_url":"https://x"}]}`, 400},
		{6, `{"model":"m","input":[],"tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}`, 400},
		{6, `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x"}]}]}`, 400},
		{6, `{"model":"m","input":[],"previous_response_id":"r"}`, 400},
		{6, `{"model":"m","input":[],"background":true}`, 400},
		{6, `{"model":"m","input":[],"background":false,"previous_response_id":null}`, 200},
	} {
		for _, hosted := range []bool{false, true} {
			s, want := simples()[test.path], test.want
			if hosted {
				want = 200
			}
			up := modeltest.NewServer(t, modeltest.Turn{Text: "hello"})
			_, addr := open(t, ForwardConfig{Wire: s.wire, Base: up.URL, Reserve: (&book{}).Reserve, Hosted: hosted})
			if got := post(t, "http://"+addr+s.path, test.body); got.status != want || (len(up.Received()) == 1) != (want == 200) {
				t.Errorf("hosted %v: %s returns status %d %s", hosted, test.body, got.status, got.body)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		there, on := make(chan struct{}), make(chan struct{})
		up := upstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			there <- struct{}{}
			<-on
			_, _ = io.WriteString(w, "{}")
		})
		ledger := &book{}
		_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up, Reserve: ledger.Reserve, maxConcurrent: 1})
		answers := make(chan reply, 2)
		for range 2 {
			go func() { answers <- post(t, "http://"+addr+"/v1/messages", simples()[2].body) }()
		}
		for range 2 {
			<-there
			// The waiting call has no reservation before this one is settled.
			if calls, done := ledger.list(); len(calls) != len(done)+1 {
				t.Errorf("%d reservations are open", len(calls)-len(done))
			}
			on <- struct{}{}
		}
		for range 2 {
			if got := <-answers; got.status != 200 {
				t.Errorf("response: %+v", got)
			}
		}
	})
	t.Run("connections", func(t *testing.T) {
		f, addr := open(t, ForwardConfig{Wire: Anthropic, Base: forbid(t), Reserve: (&book{}).Reserve, maxConcurrent: 1})
		for range 8 {
			dial(t, addr, "GET /x HTTP/1.1\r\nHost: x\r\n")
		}
		for len(f.conns) < 8 {
			runtime.Gosched()
		}
		if got := raw(t, addr, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n"); strings.HasPrefix(got, "HTTP") {
			t.Errorf("the ninth is answered with %s", got)
		}
	})
}

// An agent that does not send its body loses its slot.
func TestMissingBody(t *testing.T) {
	ledger := &book{}
	f, addr := open(t, ForwardConfig{Wire: Anthropic, Base: forbid(t), Reserve: ledger.Reserve, maxConcurrent: 1,
		Timeouts: model.Timeouts{Idle: 100 * time.Millisecond}})
	raw(t, addr, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n{")
	if ledger.asked != 0 || len(f.slots) != 0 {
		t.Errorf("%d calls, %d slots are taken", ledger.asked, len(f.slots))
	}
}

// A call whose agent does not read the response ends, and is charged in full.
func TestUnreadResponse(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
		}
	})
	ledger := &book{}
	_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up, Reserve: ledger.Reserve, Timeouts: model.Timeouts{Idle: 200 * time.Millisecond}})
	dial(t, addr, plainPost("/v1/messages", simples()[2].body))
	ledger.wait()
	if done := ledger.one(t); done.used != nil || done.fault == nil {
		t.Errorf("settled with %+v, %v", done.used, done.fault)
	}
}

func TestForwardConfigurations(t *testing.T) {
	for name, c := range map[string]ForwardConfig{
		"no wire":    {Reserve: (&book{}).Reserve},
		"no address": {Wire: OpenAI, Reserve: (&book{}).Reserve, Base: "localhost:8080"},
		"a query":    {Wire: OpenAI, Reserve: (&book{}).Reserve, Base: "http://x/v1?key=secret"},
		"a bad path": {Wire: OpenAI, Reserve: (&book{}).Reserve, Base: "http://x/a/../b"},
	} {
		if f, err := NewForward(c); err == nil {
			f.Close()
			t.Errorf("%s is no error", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The base URL may have a login and a path, as for gateways.
func TestBaseWithLoginAndPath(t *testing.T) {
	var path, user, password string
	up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		path = r.URL.Path
		user, password, _ = r.BasicAuth()
		_, _ = io.WriteString(w, `{"a":"my-password"}`)
	})
	f, addr := open(t, ForwardConfig{Wire: Anthropic, Base: strings.Replace(up, "://", "://me:my-password@", 1) + "/gateway/v1/", Reserve: (&book{}).Reserve})
	if f.URL("a:1") != "http://a:1" {
		t.Errorf("the agent's URL is %s", f.URL("a:1"))
	}
	got := post(t, f.URL(addr)+"/v1/messages", simples()[2].body)
	if path != "/gateway/v1/messages" || user != "me" || password != "my-password" || got.body != `{"a":"[key]"}` {
		t.Errorf("path %s, login %s:%s, response %s", path, user, password, got.body)
	}
}

func TestBudgetStatus(t *testing.T) {
	for _, s := range simples() {
		ledger := &book{refuse: errors.New("none of the 5 tokens is left")}
		f, addr := open(t, ForwardConfig{Wire: s.wire, Base: forbid(t), Reserve: ledger.Reserve})
		got := post(t, "http://"+addr+s.path, s.body)
		message, _ := model.ErrorBody([]byte(got.body))
		if got.status != 400 || message != errBudget.message || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: response: %+v", s.name, got)
		}
		if k := model.StatusError(400, nil, message, "").Kind; k != model.Invalid {
			t.Errorf("%s: the message is classified as %q", s.name, k)
		}
		if calls, _ := ledger.list(); len(calls) != 0 || !errors.Is(f.Err(), ledger.refuse) {
			t.Errorf("%s: %d calls, %v", s.name, len(calls), f.Err())
		}
	}
}

// A thinking budget above the granted limit is refused with a clear message.
func TestThinkingBudgetTooLarge(t *testing.T) {
	ledger := &book{grant: 2000}
	_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: forbid(t), Reserve: ledger.Reserve})
	got := post(t, "http://"+addr+"/v1/messages", `{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":4000},"messages":[]}`)
	if got.status != 400 || !strings.Contains(got.body, "budget") {
		t.Errorf("response: %+v", got)
	}
	if done := ledger.one(t); done.used == nil || *done.used != (model.Usage{}) {
		t.Errorf("settled with %+v", done.used)
	}
}
