package agent

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"hone/internal/crashtest/waittest"
	"hone/model"
	"hone/model/modeltest"
)

func TestPassesOn(t *testing.T) {
	used := model.Usage{Input: 11, Output: 7, Reasoning: 2, CacheRead: 5}
	for _, s := range simples() {
		t.Run(s.name, func(t *testing.T) {
			up := modeltest.NewServer(t, modeltest.Turn{Text: "hello", Usage: &used})
			ledger := &book{grant: 40}
			base := up.URL
			if s.wire == OpenAI {
				base += "/v1"
			}
			f, addr := open(t, ForwardConfig{Wire: s.wire, Base: base, Reserve: ledger.Reserve})
			got := post(t, "http://"+addr+s.path, s.body)
			if got.status != 200 || got.err != nil || !strings.Contains(got.body, "hello") {
				t.Fatalf("response: %d, %q, %v", got.status, got.body, got.err)
			}
			sent := up.Received()[0]
			want := strings.Replace(s.body, s.limit, strings.Replace(s.limit, "500", "40", 1), 1)
			if !sameJSON(string(sent.Body), want) {
				t.Errorf("sent %s, want %s", sent.Body, want)
			}
			if key := auth(sent.Header); key != testKey {
				t.Errorf("the key that was sent is %q", key)
			}
			calls, _ := ledger.list()
			wantCall := reserved{calls[0].model, int64(len(s.body)), 500}
			if calls[0] != wantCall || calls[0].model != "m" && calls[0].model != "gemini-x" {
				t.Errorf("reserved %+v, want %+v", calls[0], wantCall)
			}
			done := ledger.one(t)
			if done.used == nil || *done.used != used || done.fault != nil {
				t.Errorf("settled with %+v, %v, want %+v", done.used, done.fault, used)
			}
			if f.Err() != nil {
				t.Error(f.Err())
			}
		})
	}
}

// auth returns the key in a request to a provider.
func auth(h http.Header) string {
	for _, name := range []string{"X-Goog-Api-Key", "X-Api-Key", "Authorization"} {
		if v := h.Get(name); v != "" {
			return strings.TrimPrefix(v, "Bearer ")
		}
	}
	return ""
}

func TestOnlySomeHeadersPass(t *testing.T) {
	var got http.Header
	var host, query string
	up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		got, host, query = r.Header, r.Host, r.URL.RawQuery
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("X-Echo", "you sent "+auth(r.Header))
		w.Header().Set("X-Request-Id", "42")
		_, _ = io.WriteString(w, `{"models":[]}`)
	})
	_, addr := open(t, ForwardConfig{Wire: Gemini, Base: up, Reserve: (&book{}).Reserve})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1beta/models?key=dummy&pageSize=5", nil)
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "X-Http-Method-Override",
		"X-Goog-User-Project", "X-Forwarded-For", "Proxy-Authorization", "Idempotency-Key", "X-Goog-Fieldmask", "Te"} {
		req.Header.Set(name, "dummy")
	}
	req.Header.Set("Connection", "close, User-Agent")
	req.Header.Set("User-Agent", "agent/1")
	req.Host = "elsewhere.example"
	res := do(t, req)
	if res.status != 200 {
		t.Fatalf("response: %+v", res)
	}
	for name, values := range got {
		if strings.Contains(strings.Join(values, " "), "dummy") {
			t.Errorf("%s: %v was passed on", name, values)
		}
	}
	if got.Get("X-Goog-Api-Key") != testKey || got.Get("User-Agent") != "agent/1" || "http://"+host != up || query != "pageSize=5" {
		t.Errorf("the provider got %v of %s with %s", got, host, query)
	}
	if res.header.Get("Set-Cookie") != "" || res.header.Get("X-Hop") != "" || res.header.Get("X-Request-Id") != "42" || res.header.Get("X-Echo") != "you sent [key]" {
		t.Errorf("the answer's header is %v", res.header)
	}
}

// Informational responses and trailers do not reach the agent: they could
// contain the key.
func TestNoEarlyHintsAndNoTrailers(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		key := auth(r.Header)
		w.Header().Set("Link", key)
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.WriteString(w, `{"models":[]}`)
		w.Header().Set("X-Announced", key)
		w.Header().Set(http.TrailerPrefix+"X-Late", key)
	})
	_, addr := open(t, ForwardConfig{Wire: Gemini, Base: up, Reserve: (&book{}).Reserve})
	got := raw(t, addr, "GET /v1beta/models HTTP/1.1\r\nHost: x\r\nConnection: close, te\r\nTe: trailers\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, `{"models":[]}`) {
		t.Errorf("response: %s", got)
	}
	for _, hidden := range []string{testKey, "[key]", "Link", "X-Announced", "X-Late", "Trailer"} {
		if strings.Contains(got, hidden) {
			t.Errorf("%s is in the response: %s", hidden, got)
		}
	}
}

func TestEventsAreNotDelayed(t *testing.T) {
	for _, s := range simples() {
		if !strings.Contains(s.name, "stream") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			seen := make(chan struct{})
			up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: {\"first\":1}\n\n")
				w.(http.Flusher).Flush()
				select {
				case <-seen:
				case <-r.Context().Done():
				}
			})
			_, addr := open(t, ForwardConfig{Wire: s.wire, Base: up, Reserve: (&book{}).Reserve})
			res, err := http.Post("http://"+addr+s.path, "application/json", strings.NewReader(s.body))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			line, err := bufio.NewReader(res.Body).ReadString('\n')
			close(seen)
			if line != "data: {\"first\":1}\n" || err != nil {
				t.Errorf("read %q, %v", line, err)
			}
		})
	}
}

// The usage is found in whatever form a stream has (ruling G23), and the agent
// gets it as it is.
func TestFormsOfStreams(t *testing.T) {
	const chat = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n"
	for name, text := range map[string]string{
		"LF": chat, "CR": strings.ReplaceAll(chat, "\n", "\r"), "a byte order mark": "\ufeff" + chat, "no blank lines": strings.ReplaceAll(chat, "\n\n", "\n"),
		"comments": ": working\n" + chat, "data that is no JSON": "data: ping\n\n" + chat, "lines of JSON": strings.ReplaceAll(strings.ReplaceAll(chat, "data: [DONE]", ""), "data: ", ""),
		"no last line feed": strings.TrimRight(chat, "\n"),
	} {
		for size := 1; size <= len(text); size += 16 {
			ledger := &book{}
			up := upstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
					_, _ = io.WriteString(w, rest[:min(size, len(rest))])
					w.(http.Flusher).Flush()
				}
			})
			_, addr := open(t, ForwardConfig{Wire: OpenAI, Base: up, Reserve: ledger.Reserve})
			got := post(t, "http://"+addr+"/chat/completions", simples()[5].body)
			if done := ledger.one(t); got.body != text || done.used == nil || *done.used != (model.Usage{Input: 3, Output: 4}) {
				t.Errorf("%s, in pieces of %d: the agent got %q, settled with %+v, %v", name, size, got.body, done.used, done.fault)
			}
		}
	}
}

// After the last event an agent may immediately make another call, whose
// reservation must not fail because of the first one.
func TestSettledBeforeTheLastEventIsSent(t *testing.T) {
	ledger := &book{}
	up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}`+"\n\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`+"\n\n"+
			`data: {"type":"message_stop"}`+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // never ends on its own
	})
	_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up, Reserve: ledger.Reserve})
	res, err := http.Post("http://"+addr+"/v1/messages", "application/json", strings.NewReader(simples()[3].body))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "message_stop") {
		continue
	}
	done := ledger.one(t)
	if done.used == nil || *done.used != (model.Usage{Input: 3, Output: 9}) {
		t.Errorf("settled with %+v", done.used)
	}
	res.Body.Close()
}

func TestChargedInFull(t *testing.T) {
	used := model.Usage{Input: 11, Output: 7}
	for _, s := range simples() {
		for name, turn := range map[string]modeltest.Turn{
			"cut":           {Text: strings.Repeat("hello ", 20), Usage: &used, Cut: true},
			"no last event": {Text: "hello", Usage: &used, NoEnd: true},
			"no usage":      {Text: "hello"},
			"a 500":         {Status: 500, Message: "sorry"},
			"negative":      {Text: "hello", Usage: &model.Usage{Input: 5, Output: -100}},
			"beyond reason": {Text: "hello", Usage: &model.Usage{Input: 5, Output: 1 << 50}},
		} {
			if name == "no last event" && !strings.Contains(s.name, "stream") {
				continue // a plain response has no last event
			}
			t.Run(s.name+"/"+name, func(t *testing.T) {
				up := modeltest.NewServer(t, turn)
				ledger := &book{}
				f, addr := open(t, ForwardConfig{Wire: s.wire, Base: up.URL, Reserve: ledger.Reserve})
				got := post(t, "http://"+addr+s.path, s.body)
				if cut := got.err != nil; cut != (name == "cut") {
					t.Errorf("the agent's answer is %d %q, %v", got.status, got.body, got.err)
				}
				f.Close()
				done := ledger.one(t)
				if done.used != nil || done.fault == nil {
					t.Errorf("settled with %+v, %v", done.used, done.fault)
				}
			})
		}
	}
}

// A usage that cannot be read settles in full, like none, and so does one
// without output tokens for a response with content.
func TestUnreadableUsageOfCalls(t *testing.T) {
	turns := modeltest.Misreports()
	turns["a text without output"] = modeltest.Turn{Text: "Paris", Usage: &model.Usage{Input: 12}}
	turns["a call without output"] = modeltest.Turn{Calls: []model.Call{{ID: "c", Name: "read", Args: `{"path":"a"}`}}, Usage: &model.Usage{Input: 12}}
	for _, s := range simples() {
		for name, turn := range turns {
			up := modeltest.NewServer(t, turn)
			ledger := &book{}
			_, addr := open(t, ForwardConfig{Wire: s.wire, Base: up.URL, Reserve: ledger.Reserve})
			if got := post(t, "http://"+addr+s.path, s.body); got.status != http.StatusOK || got.err != nil {
				t.Errorf("%s, %s: response: %d, %v", s.name, name, got.status, got.err)
			}
			if done := ledger.one(t); done.used != nil || done.fault == nil || !strings.Contains(done.fault.Error(), "without a usage") {
				t.Errorf("%s, %s: settled with %+v, %v", s.name, name, done.used, done.fault)
			}
		}
	}
}

// An empty response may have no output.
func TestEmptyResponse(t *testing.T) {
	for _, s := range simples() {
		used := model.Usage{Input: 12}
		up := modeltest.NewServer(t, modeltest.Turn{Usage: &used})
		ledger := &book{}
		_, addr := open(t, ForwardConfig{Wire: s.wire, Base: up.URL, Reserve: ledger.Reserve})
		post(t, "http://"+addr+s.path, s.body)
		if done := ledger.one(t); done.used == nil || *done.used != used || done.fault != nil {
			t.Errorf("%s: settled with %+v, %v", s.name, done.used, done.fault)
		}
	}
}

func TestRejected(t *testing.T) {
	for _, s := range simples() {
		for _, status := range []int{400, 401, 402, 403, 404, 413, 422, 429} {
			up := modeltest.NewServer(t, modeltest.Turn{Status: status, Message: "no " + testKey, RetryAfter: "7"})
			ledger := &book{}
			_, addr := open(t, ForwardConfig{Wire: s.wire, Base: up.URL, Reserve: ledger.Reserve})
			got := post(t, "http://"+addr+s.path, s.body)
			if got.status != status || got.header.Get("Retry-After") != "7" || !strings.Contains(got.body, "no [key]") {
				t.Errorf("%s: response: %d %v %s", s.name, got.status, got.header, got.body)
			}
			done := ledger.one(t)
			var fault *model.Error
			if !errors.As(done.fault, &fault) || fault.Status != status || !fault.Rejected() || strings.Contains(fault.Message, testKey) {
				t.Errorf("%s: fault: %v", s.name, done.fault)
			}
			if done.used == nil || *done.used != (model.Usage{}) {
				t.Errorf("%s: %d is charged with %+v", s.name, status, done.used)
			}
		}
	}
}

func TestUnreachableCostsNothing(t *testing.T) {
	ledger := &book{}
	_, addr := open(t, ForwardConfig{Wire: Anthropic, Base: "http://127.0.0.1:1", Reserve: ledger.Reserve})
	got := post(t, "http://"+addr+"/v1/messages", simples()[2].body)
	if got.status != http.StatusBadGateway || !strings.Contains(got.body, `"api_error"`) {
		t.Errorf("response: %d %s", got.status, got.body)
	}
	if done := ledger.one(t); done.used == nil || *done.used != (model.Usage{}) || done.fault == nil {
		t.Errorf("settled with %+v, %v", done.used, done.fault)
	}
}

// The forwarder decodes nothing, and of an error it reads the beginning only.
func TestLargeErrors(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, 8<<20))
	_ = w.Close()
	for name, test := range map[string]struct {
		status   int
		encoding string
		body     []byte
		answer   int // the status that the agent sees
		length   int // of the body that it sees; 0 means the forwarder's own
		used     *model.Usage
	}{
		"rejected":            {400, "", bytes.Repeat([]byte("a"), 5<<20), 400, model.MaxErrorBody, &model.Usage{}},
		"failed":              {500, "", bytes.Repeat([]byte("a"), 5<<20), 500, model.MaxErrorBody, nil},
		"at the limit":        {400, "", bytes.Repeat([]byte("a"), 1<<20), 400, 1 << 20, &model.Usage{}},
		"encoded rejection":   {400, "gzip", packed.Bytes(), 502, 0, nil},
		"encoded response":    {200, "gzip", packed.Bytes(), 502, 0, nil},
		"not said to be gzip": {400, "", packed.Bytes(), 400, packed.Len(), &model.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			up := upstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write(test.body)
			})
			ledger := &book{}
			f, addr := open(t, ForwardConfig{Wire: OpenAI, Base: up, Reserve: ledger.Reserve})
			got := post(t, "http://"+addr+"/chat/completions", simples()[4].body)
			if got.status != test.answer || got.err != nil || test.length > 0 && len(got.body) != test.length {
				t.Errorf("the agent's answer is %d with %d bytes, %v", got.status, len(got.body), got.err)
			}
			f.Close()
			if done := ledger.one(t); !reflect.DeepEqual(done.used, test.used) || done.fault == nil {
				t.Errorf("settled with %+v, %v", done.used, done.fault)
			}
		})
	}
}

func TestHostileProviders(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		status int
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/"+testKey, http.StatusTemporaryRedirect)
		}, 400},
		"encodes": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "\x1f\x8b")
		}, 502},
		"sends a huge header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 11<<20))
		}, 502},
		"is silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504},
		"hangs up":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 502},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := &book{}
			up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) { test.answer(w, r) })
			c := ForwardConfig{Wire: OpenAI, Base: up, Reserve: ledger.Reserve}
			if test.status == 504 {
				c.Timeouts.Idle = 200 * time.Millisecond
			}
			_, addr := open(t, c)
			got := post(t, "http://"+addr+"/chat/completions", simples()[4].body)
			if got.status != test.status || got.err != nil || strings.Contains(got.body, testKey) || got.header.Get("Location") != "" {
				t.Errorf("response: %+v", got)
			}
			if done := ledger.one(t); done.used != nil {
				t.Errorf("settled with %+v, %v", done.used, done.fault)
			}
		})
	}
}

func TestOverrunStopsForwarding(t *testing.T) {
	for _, s := range simples() {
		up := modeltest.NewServer(t, modeltest.Turn{Text: "hello", Usage: &model.Usage{Input: 3, Output: 501}})
		ledger := &book{}
		f, addr := open(t, ForwardConfig{Wire: s.wire, Base: up.URL, Reserve: ledger.Reserve})
		if got := post(t, "http://"+addr+s.path, s.body); got.status != 200 {
			t.Fatalf("%s: response: %+v", s.name, got)
		}
		done := ledger.one(t)
		var over *Overrun
		if !errors.As(done.fault, &over) || over.Wrote != 501 || over.Allowed != 500 || done.used == nil || done.used.Output != 501 {
			t.Errorf("%s: settled with %+v, %v", s.name, done.used, done.fault)
		}
		if got := post(t, "http://"+addr+s.path, s.body); got.status != 400 || len(up.Received()) != 1 {
			t.Errorf("%s: the next call returns status %d", s.name, got.status)
		}
		if !errors.As(f.Err(), &over) {
			t.Errorf("%s: %v", s.name, f.Err())
		}
	}
}

func TestFailedCommitStopsForwarding(t *testing.T) {
	broken := errors.New("the journal is full")
	up := modeltest.NewServer(t, modeltest.Turn{Text: "hello", Usage: &model.Usage{Input: 3, Output: 5}})
	f, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up.URL, Reserve: (&book{fail: broken}).Reserve})
	for i, want := range []int{200, 400} {
		if got := post(t, "http://"+addr+"/v1/messages", simples()[2].body); got.status != want {
			t.Errorf("call %d returns status %d, want %d", i, got.status, want)
		}
	}
	if !errors.Is(f.Err(), broken) {
		t.Error(f.Err())
	}
}

// If the agent disconnects, its call is canceled and charged in full.
func TestAgentDisconnects(t *testing.T) {
	for _, begun := range []bool{false, true} {
		gone, there := make(chan struct{}), make(chan struct{})
		up := upstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, ": begun\n\n")
				w.(http.Flusher).Flush()
			}
			close(there)
			<-r.Context().Done()
			close(gone)
		})
		ledger := &book{}
		_, addr := open(t, ForwardConfig{Wire: OpenAI, Base: up, Reserve: ledger.Reserve})
		c := dial(t, addr, plainPost("/v1/responses", simples()[6].body))
		<-there
		c.Close()
		<-gone
		ledger.wait()
		if done := ledger.one(t); done.used != nil || done.fault == nil {
			t.Errorf("settled with %+v, %v", done.used, done.fault)
		}
	}
}

// Close cancels and settles hanging calls, and leaves no goroutine running.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("hanging", func(t *testing.T) {
		there := make(chan struct{}, 10)
		up := upstream(t, func(_ http.ResponseWriter, r *http.Request, _ []byte) {
			there <- struct{}{}
			<-r.Context().Done()
		})
		ledger := &book{}
		f, addr := open(t, ForwardConfig{Wire: OpenAI, Base: up, Reserve: ledger.Reserve, maxConcurrent: 3})
		for range 5 {
			dial(t, addr, plainPost("/v1/responses", simples()[6].body))
		}
		for range 3 {
			<-there
		}
		dial(t, addr, "POST /v1/resp")
		dial(t, addr, "POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 57\r\n\r\n{")
		f.Close()
		calls, done := ledger.list()
		if len(calls) != 3 || len(done) != 3 {
			t.Errorf("%d calls are reserved and %d settled, want 3 each", len(calls), len(done))
		}
		for _, s := range done {
			if s.used != nil || s.fault == nil {
				t.Errorf("settled with %+v, %v", s.used, s.fault)
			}
		}
	})
	// The runtime still counts goroutines that have just returned.
	if !waittest.Until(func() bool { return runtime.NumGoroutine() <= before }) {
		stacks := make([]byte, 1<<16)
		t.Fatalf("%d goroutines are left of %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
	}
}
