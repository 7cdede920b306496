package model

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFaultReadsErrorBodies(t *testing.T) {
	for _, test := range []struct {
		name    string
		status  int
		body    string
		kind    Kind
		message string
	}{
		{"OpenAI", 401, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, Auth, "Incorrect API key provided."},
		{"OpenAI quota", 429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, Quota, "You exceeded your current quota."},
		{"OpenAI context", 400, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}`, TooLong, "Your input exceeds the context window of this model."},
		{"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Overloaded, "Overloaded"},
		{"Anthropic context", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, TooLong, "prompt is too long: 210000 tokens > 200000 maximum"},
		{"Anthropic credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, Quota, "Your credit balance is too low to access the API."},
		{"Gemini", 429, `{"error":{"code":429,"message":"Quota exceeded for the minute.","status":"RESOURCE_EXHAUSTED"}}`, RateLimited, "Quota exceeded for the minute."},
		{"Gemini key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, Auth, "API key not valid. Please pass a valid API key."},
		{"Gemini stream", 503, `[{"error":{"code":503,"message":"Busy.","status":"UNAVAILABLE"}}]`, Overloaded, "Busy."},
		{"Ollama", 404, `{"error":"model \"x\" not found"}`, NoModel, `model "x" not found`},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"too many tokens","type":"exceed_context_size_error"}}`, TooLong, "too many tokens"},
		{"vLLM", 400, `{"object":"error","message":"bad","type":"BadRequestError","code":400}`, Invalid, "bad"},
		{"FastAPI", 422, `{"detail":"no such field"}`, Invalid, "no such field"},
		{"plain text", 502, "bad gateway\nsorry", Overloaded, "bad gateway sorry"},
		{"a proxy's page", 502, "<html>…", Overloaded, "Bad Gateway"},
		{"empty", 403, "", Auth, "Forbidden"},
		{"unexpected error type", 400, `{"error":[1]}`, Invalid, "Bad Request"},
		{"unknown status", 799, ``, Overloaded, "no error message"},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			x := NewExchange(t.Context(), Timeouts{})
			defer x.Close()
			if err := get(x, url); err != nil {
				t.Fatal(err)
			}
			e := fault(t, x, errors.New("the SDK's message"))
			if e.Kind != test.kind || e.Message != test.message || e.Status != test.status || e.RetryAfter != 3*time.Second {
				t.Errorf("fault = %+v, want kind %q, message %q, status %d, after 3s", e, test.kind, test.message, test.status)
			}
		})
	}
}

func TestStatusErrorKinds(t *testing.T) {
	for _, test := range []struct {
		status        int
		message, code string
		want          Kind
	}{
		{400, "", "", Invalid},
		{401, "", "", Auth},
		{402, "", "", Quota},
		{403, "", "", Auth},
		{404, "", "", Invalid},
		{408, "", "", Overloaded},
		{409, "", "", Overloaded},
		{413, "", "", TooLong},
		{422, "", "", Invalid},
		{429, "", "rate_limit_exceeded", RateLimited},
		{429, "", "insufficient_quota", Quota},
		{425, "", "", Overloaded},
		{499, "", "", Overloaded},
		{500, "", "", Overloaded},
		{503, "", "", Overloaded},
		{529, "", "", Overloaded},
		{0, "", "rate_limit_error", RateLimited},
		{0, "", "RESOURCE_EXHAUSTED", RateLimited},
		{0, "", "overloaded_error", Overloaded},
		{0, "", "server_error", Overloaded},
		{0, "", "authentication_error", Auth},
		{0, "", "invalid_request_error", Invalid},
		{0, "", "context_length_exceeded", TooLong},
		{0, "", "", Overloaded},
		{0, "This model's maximum context length is 8 tokens", "", TooLong},
		// A message that quotes the prompt, whose words say nothing of the error.
		{400, "cannot read this request: " + strings.Repeat("a letter ", 1<<12) + "my credit and api key" + strings.Repeat(" a letter", 1<<12) + ", which is too long for the context window", "", TooLong},
	} {
		e := StatusError(test.status, nil, test.message, test.code)
		if e.Kind != test.want {
			t.Errorf("StatusError(%d, %q, %q) is %q, want %q", test.status, test.message, test.code, e.Kind, test.want)
		}
		if e.Message == "" {
			t.Errorf("StatusError(%d, %q, %q) has no message", test.status, test.message, test.code)
		}
	}
}

// What may pass is not taken for what lasts, because words have several meanings: under 5xx only
// those that nothing else says count, and a named wait of seconds says that it passes.
func TestWordsOfTemporaryFaults(t *testing.T) {
	const limit = "You have reached the rate limit of 3 requests per minute. "
	for _, test := range []struct {
		status  int
		after   string // Retry-After
		message string
		want    Kind
	}{
		{503, "", "The model is not available at the moment. Please try again later.", Overloaded},
		{503, "", "Model m is not available. Please try again.", Overloaded},
		{503, "", "Model m is currently loading", Overloaded},
		{503, "1", "Model m is not found on any ready replica", Overloaded},
		{503, "7200", "model not found", Overloaded},
		{503, "", "No available channel for model m", NoModel},
		{0, "", "The model m is not available at the moment", Overloaded},
		{0, "", "The model m is not available", NoModel},
		{404, "", "The model m is not available at the moment", NoModel},

		{502, "", "upstream connect error: load balance policy found no healthy host", Overloaded},
		{500, "", "failed to balance shards", Overloaded},
		{500, "", "credit assignment failed", Overloaded},
		{500, "", "no invoice for the shard", Overloaded},
		{500, "", "insufficient_quota", Quota},
		{400, "", "the load balance policy is unknown", Invalid},
		{400, "", "account balance: 0", Quota},

		{429, "1", limit + "Add a credit card to raise it.", RateLimited},
		{429, "", limit + "Add a credit card to raise it.", Quota},
		{429, "86400", limit + "Add a credit card to raise it.", Quota},
		{429, "1", "Rate limit exceeded, try again in 1s. Add 10 credits to unlock 1000 requests per day.", RateLimited},
		{429, "", "Rate limit exceeded, try again in 1.5 seconds. Add 10 credits.", RateLimited},
		{429, "1", "insufficient_quota", Quota},
		{429, "1", "You have no credits left", Quota},
		{402, "1", "rate limit", Quota},
		{400, "", "supermini has no such field", Invalid}, // "per mini" is no rate

		{500, "", "CUDA error: out of memory while growing the context window of a slot", Overloaded},
		{500, "", "cannot allocate the context size", Overloaded},
		{500, "", "the input length exceeds the context length", TooLong},
		{502, "", "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", TooLong},
		{500, "", "prompt is too long: 210000 tokens > 200000 maximum", TooLong},
		{400, "", "context window is full", TooLong},

		{424, "", "the dependency failed", Overloaded},
	} {
		header := http.Header{}
		if test.after != "" {
			header.Set("Retry-After", test.after)
		}
		if got := StatusError(test.status, header, test.message, "").Kind; got != test.want {
			t.Errorf("status %d, Retry-After %q, %q: %q, want %q", test.status, test.after, test.message, got, test.want)
		}
	}
}

// An error may stand for a reply, which was used up: it is no reason to stop the run, nor to wait.
func TestErrorThatIsAReply(t *testing.T) {
	for _, test := range []struct {
		status        int
		message, code string
		want          Finish // empty for none
	}{
		{400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "", Filtered},
		{400, "Filtered.", "content_filter", Filtered},
		{400, "litellm.ContentPolicyViolationError: AzureException", "400", Filtered},
		{400, "Content Exists Risk", "invalid_request_error", Filtered},
		{400, "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content.", "", Filtered},
		{403, "Content violates usage guidelines.", "", Filtered},
		{400, "Failed to call a function. Please adjust your prompt.", "tool_use_failed", Other},
		{400, "tool call validation failed: parameters for tool read did not match schema", "tool_use_failed", Other},
		{500, "error parsing tool call: raw='{\"path\":', err=unexpected end of JSON input", "", Other},
		{0, "Failed to call a function.", "", Other},
		{500, "the content filter is down", "", ""},
		{400, "unknown field filter", "", ""},
		{401, "wrong key", "", ""},
	} {
		e := StatusError(test.status, nil, test.message, test.code)
		reply, ok := e.Reply()
		if ok != (test.want != "") || reply.Finish != test.want || ok && (reply.Detail != e.Message || reply.HasContent() || e.Temporary()) {
			t.Errorf("%v is the reply %+v, want it to end %q", e, reply, test.want)
		}
	}
}

func TestTemporary(t *testing.T) {
	for _, kind := range []Kind{RateLimited, Overloaded, Unreachable, Cut, Garbage, Silent} {
		if !(&Error{Kind: kind}).Temporary() {
			t.Errorf("%q is not temporary", kind)
		}
	}
	for _, kind := range []Kind{Auth, Invalid, TooLong, OutputLimit, Quota, NoModel} {
		if (&Error{Kind: kind}).Temporary() {
			t.Errorf("%q is temporary", kind)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	later := now.Add(90 * time.Second).Format(http.TimeFormat)
	for _, test := range []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"none", nil, 0},
		{"seconds", map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{"part of a second", map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		{"milliseconds", map[string]string{"Retry-After-Ms": "250"}, 250 * time.Millisecond},
		{"milliseconds win", map[string]string{"Retry-After-Ms": "250", "Retry-After": "7"}, 250 * time.Millisecond},
		{"date", map[string]string{"Retry-After": later}, 90 * time.Second},
		{"date by the server's clock", map[string]string{"Retry-After": later, "Date": now.Add(80 * time.Second).Format(http.TimeFormat)}, 10 * time.Second},
		{"past date", map[string]string{"Retry-After": now.Add(-time.Hour).Format(http.TimeFormat)}, 0},
		{"negative", map[string]string{"Retry-After": "-7"}, 0},
		{"huge", map[string]string{"Retry-After": "1e300"}, maxAfter},
		{"infinite", map[string]string{"Retry-After": "Inf"}, maxAfter},
		{"not a number", map[string]string{"Retry-After": "NaN"}, 0},
		{"nonsense", map[string]string{"Retry-After": "soon"}, 0},
	} {
		h := http.Header{}
		for k, v := range test.header {
			h.Set(k, v)
		}
		if got := retryAfter(h, now); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                   "plain",
		" a\r\n\tb\x1b[31m\x00c ": "a b [31m c",
		"a\u202eb":                "a b",
		"\xff":                    "�",
		"":                        "",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb")
	f.Add(strings.Repeat("é", 300))
	f.Add(strings.Repeat("\xff ", math.MaxInt8))
	f.Fuzz(func(t *testing.T, s string) {
		got := OneLine(s)
		if len(got) > maxMessage || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x1b\x00") {
			t.Errorf("OneLine(%q) = %q", s, got)
		}
		if again := OneLine(got); again != got {
			t.Errorf("OneLine is not stable: %q, then %q", got, again)
		}
	})
}
