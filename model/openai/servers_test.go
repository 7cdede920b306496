package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hone/model"
	"hone/model/anthropic"
	"hone/model/gemini"
	"hone/model/openai"
)

// open returns a model for each wire.
func open(wire, url string) model.Model {
	switch wire {
	case "anthropic":
		return anthropic.New(anthropic.Config{Name: "m", BaseURL: url})
	case "gemini":
		return gemini.New(gemini.Config{Name: "m", BaseURL: url})
	}
	return openai.New(openai.Config{Name: "m", BaseURL: url, Wire: wire})
}

// replies is a complete stream of each wire, whose text is "Hi".
var replies = map[string]string{
	"chat": events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, chatEnd, "[DONE]"),
	"responses": events(`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}`,
		`{"type":"response.completed","response":{"status":"completed"}}`),
	"anthropic": events(`{"type":"message_start","message":{}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`),
	"gemini": events(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}`),
}

// What servers, gateways and proxies put around events says nothing, on any wire (ruling G23).
func TestSignsOfLife(t *testing.T) {
	around := func(noise string) func(string) string {
		return func(s string) string { return noise + strings.ReplaceAll(s, "\n\n", "\n\n"+noise) }
	}
	for name, change := range map[string]func(string) string{
		"comments with a blank line (OpenRouter)": around(": working\n\n"),
		"comments alone":                  around(": ping\n"),
		"empty data":                      around("data:\n\n"),
		"empty data with a blank":         around("data: \n\n"),
		"blank lines":                     around("\n\n"),
		"retry, id and an unknown field":  around("retry: 3000\nid: 7\nx-took: 5\n\n"),
		"an event without data":           around("event: ping\n\n"),
		"data that is no JSON":            around("data: keepalive\n\n"),
		"a word":                          around("heartbeat\n\n"),
		"words before events":             func(s string) string { return "ping\nready\n" + s },
		"a comment as data (llm-gateway)": around("data: : working\n\n"),
		"an empty object":                 around("data: {}\n\n"),
		"null":                            around("data: null\n\n"),
		"byte order mark":                 func(s string) string { return "\ufeff" + s },
		"byte order mark and comment":     func(s string) string { return "\ufeff: x\n\n" + s },
		"CRLF":                            func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"CR":                              func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"no space after data":             func(s string) string { return strings.ReplaceAll(s, "data: ", "data:") },
		"no blank line between events":    func(s string) string { return strings.ReplaceAll(s, "\n\n", "\n") },
		"no blank line at the end":        strings.TrimSpace,
		"an event in several lines":       func(s string) string { return strings.ReplaceAll(s, `{"`, "{\ndata: \"") },
		"error: null in each event":       func(s string) string { return strings.ReplaceAll(s, "data: {", `data: {"error":null,`) },
		"empty members of errors": func(s string) string {
			return strings.ReplaceAll(s, "data: {", `data: {"error":{"code":null,"message":""},`)
		},
		"[DONE] at the end":                           func(s string) string { return s + "data: [DONE]\n\n" },
		"40 MB of comments":                           around(strings.Repeat(": "+strings.Repeat("x", 1<<20)+"\n", 8)),
		"a comment longer than a line of a reply may": func(s string) string { return ":" + strings.Repeat("x", model.MaxLine+1) + "\n" + s },
	} {
		for wire, reply := range replies {
			url, _ := serve(t, stream, change(reply))
			got, err := open(wire, url).Generate(t.Context(), hello())
			if err != nil || got.Text() != "Hi" || got.Finish != model.Stop {
				t.Errorf("%s, %s: %q, %q, %v", wire, name, got.Text(), got.Finish, err)
			}
		}
	}
}

// TestFirstAnswer: of several answers the first alone counts, also if the others come between its parts and end
// otherwise.
func TestFirstAnswer(t *testing.T) {
	for wire, reply := range map[string]string{
		"chat": events(`{"choices":[{"index":1,"delta":{"content":"No","tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":"{}"}}]}},{"index":0,"delta":{"content":"H"}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"No"},"finish_reason":"length"}]}`, `{"choices":[{"index":0,"delta":{"content":"i"},"finish_reason":"stop"}]}`, "[DONE]"),
		"gemini": events(`{"candidates":[{"index":1,"content":{"parts":[{"text":"No"}]},"finishReason":"MAX_TOKENS"},{"content":{"parts":[{"text":"H"}]}}]}`,
			`{"candidates":[{"index":1,"content":{"parts":[{"text":"No"}]}}]}`, `{"candidates":[{"index":0,"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}]}`),
	} {
		url, _ := serve(t, stream, reply)
		got, err := open(wire, url).Generate(t.Context(), hello())
		if err != nil || got.Text() != "Hi" || got.Finish != model.Stop || len(got.Calls()) > 0 {
			t.Errorf("%s: %q, %v, %q, %v", wire, got.Text(), got.Calls(), got.Finish, err)
		}
	}
}

// A reason that says that a reply is not complete stays, whatever a gateway sends after it.
func TestTheWorstReasonCounts(t *testing.T) {
	ends := map[string]string{ // the end of each stream of replies; %s is a reason
		"chat":      events(`{"choices":[{"index":0,"delta":{},"finish_reason":%s}]}`),
		"anthropic": events(`{"type":"message_delta","delta":{"stop_reason":%s}}`),
		"gemini":    events(`{"candidates":[{"content":{"parts":[]},"finishReason":%s}]}`),
	}
	for reason, want := range map[string]model.Finish{
		"length": model.Length, "MAX_TOKENS": model.Length, "MAX_OUTPUT": model.Length, "output_limit": model.Length, "truncated": model.Length,
		"cut off": model.Length, "refusal": model.Filtered, "SAFETY": model.Filtered, "deadline": model.Other, "timed-out": model.Other,
		"preempted": model.Other, "connection_lost": model.Other,
		"eos_token": model.Stop, "executed": model.Stop, "runtime": model.Stop,
	} {
		for wire, end := range ends {
			for _, later := range []string{`"stop"`, `null`, `""`} {
				s := strings.Replace(strings.TrimSuffix(replies[wire], events("[DONE]")), events(`{"type":"message_stop"}`), "", 1)
				s = strings.Replace(s, chatEnd, `{}`, 1)
				s = strings.Replace(s, `"STOP"`, `null`, 1)
				s = strings.Replace(s, `"end_turn"`, `null`, 1)
				s += strings.Replace(end, "%s", `"`+reason+`"`, 1) + strings.Replace(end, "%s", later, 1)
				if wire == "anthropic" {
					s += events(`{"type":"message_stop"}`)
				}
				url, _ := serve(t, stream, s)
				got, err := open(wire, url).Generate(t.Context(), hello())
				if err != nil || got.Finish != want {
					t.Errorf("%s, %s and then %s: %q, %v; want %q", wire, reason, later, got.Finish, err, want)
				}
			}
		}
	}
	for reason, want := range map[string]model.Finish{"max_output_tokens": model.Length, "content_filter": model.Filtered, "unheard_of": model.Other} {
		url, _ := serve(t, stream, strings.Replace(replies["responses"], `{"type":"response.completed","response":{"status":"completed"}}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"`+reason+`"}}}`, 1))
		if got, err := open("responses", url).Generate(t.Context(), hello()); err != nil || got.Finish != want {
			t.Errorf("responses, %s: %q, %v; want %q", reason, got.Finish, err, want)
		}
	}
}

// A usage is not believed if its output is too small for the text, or if text follows it. Neither do the meters of the
// forwarder believe it.
func TestUsageOfTheWholeText(t *testing.T) {
	long := strings.Repeat("word ", 20_000)
	readers := map[string]func(string) model.Reader{
		"chat": openai.NewReader, "responses": openai.NewReader, "anthropic": anthropic.NewReader, "gemini": gemini.NewReader,
	}
	for wire, list := range map[string][]string{
		"chat": {`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`, chatEnd, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d}}`, "[DONE]"},
		"responses": {`{"type":"response.output_text.delta","delta":"%s"}`,
			`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":%d}}}`},
		"anthropic": {`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, `{"type":"message_stop"}`},
		"gemini": {`{"candidates":[{"content":{"parts":[{"text":"%s"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":%d}}`},
	} {
		for output, want := range map[string]bool{"1": false, "20000": true} {
			meter := model.NewMeter(readers[wire]("/" + wire))
			fill := strings.NewReplacer("%s", long, "%d", output)
			for i := range list {
				meter.Add([]byte(fill.Replace(list[i])))
			}
			known, _ := meter.Usage(false)
			url, _ := serve(t, stream, fill.Replace(events(list...)))
			got, err := open(wire, url).Generate(t.Context(), hello())
			if err != nil || got.Text() != long || (got.Usage != nil) != want || (known != nil) != want {
				t.Errorf("%s, %s tokens: %v, usage %+v, metered %+v; believed: want %t", wire, output, err, got.Usage, known, want)
			}
		}
	}
	for wire, list := range map[string][]string{
		"chat": {`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
			`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, chatEnd, "[DONE]"},
		"gemini": {`{"candidates":[{"content":{"parts":[{"text":"H"}]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}`,
			`{"candidates":[{"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}]}`},
	} {
		meter := model.NewMeter(readers[wire]("/" + wire))
		for _, data := range list {
			meter.Add([]byte(data))
		}
		known, _ := meter.Usage(false)
		url, _ := serve(t, stream, events(list...))
		if got, err := open(wire, url).Generate(t.Context(), hello()); err != nil || got.Text() != "Hi" || got.Usage != nil || known != nil {
			t.Errorf("%s: %v, usage %+v, metered %+v of the first tokens", wire, err, got.Usage, known)
		}
	}
}

// Gateways cut characters in two. The decoder would silently write another one in their place.
func TestCharactersAreWholeOrRefused(t *testing.T) {
	pieces := map[string]func(a, b string) string{ // two pieces of a text, in JSON
		"chat": func(a, b string) string {
			return events(`{"choices":[{"index":0,"delta":{"content":"`+a+`"}}]}`, `{"choices":[{"index":0,"delta":{"content":"`+b+`"}}]}`, chatEnd, "[DONE]")
		},
		"responses": func(a, b string) string {
			return events(`{"type":"response.output_text.delta","delta":"`+a+`"}`, `{"type":"response.output_text.delta","delta":"`+b+`"}`,
				`{"type":"response.completed","response":{"status":"completed"}}`)
		},
		"anthropic": func(a, b string) string {
			return events(`{"type":"message_start","message":{}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"`+a+`"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+b+`"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)
		},
		"gemini": func(a, b string) string {
			return events(`{"candidates":[{"content":{"parts":[{"text":"`+a+`"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"`+b+`"}]},"finishReason":"STOP"}]}`)
		},
	}
	for wire, body := range pieces {
		for _, test := range []struct {
			a, b, want string
			finish     model.Finish
		}{
			{`smile \ud83d`, `\uDE00!`, "smile 😀!", model.Stop},
			{`smile \ud83d\ude00`, `\ud83d\\`, `smile 😀\ud83d\`, model.Other},
			{`\\ud83d \\\ude00 \ud55c`, `x`, `\ud83d \\ude00 한x`, model.Other},
			{`\\ud83d`, ` \ud55c\u00e9`, `\ud83d 한é`, model.Stop},
		} {
			url, _ := serve(t, stream, body(test.a, test.b))
			got, err := open(wire, url).Generate(t.Context(), hello())
			if err != nil || got.Text() != test.want || got.Finish != test.finish {
				t.Errorf("%s, %s and %s: %q, %q, %v; want %q, %q", wire, test.a, test.b, got.Text(), got.Finish, err, test.want, test.finish)
			}
		}
		url, _ := serve(t, stream, body("gr", "\xfc\xdfe"))
		var e *model.Error
		if got, err := open(wire, url).Generate(t.Context(), hello()); !errors.As(err, &e) || e.Kind != model.Garbage {
			t.Errorf("%s, bytes that are not UTF-8: %q, %v", wire, got.Text(), err)
		}
	}
	for args, want := range map[string]model.Finish{
		`{\"text\":\"\\ud83d\\ude00\"}`: model.Calls, `{\"text\":\"\\ud83d\"}`: model.Other, `{\"text\":\"\\\\ud83d\"}`: model.Calls,
	} {
		url, _ := serve(t, stream, events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"write","arguments":"`+args+`"}}]},"finish_reason":"tool_calls"}]}`))
		if got, err := open("chat", url).Generate(t.Context(), hello()); err != nil || got.Finish != want {
			t.Errorf("arguments %s: %q, %v; want %q", args, got.Finish, err, want)
		}
	}
}

// A reply whose reason and usage have arrived is complete, whatever becomes of the connection.
func TestWhatFollowsTheEndChangesNothing(t *testing.T) {
	for wire, reply := range map[string]string{
		"chat": events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, chatEnd, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`),
		"responses": events(`{"type":"response.output_text.delta","delta":"Hi"}`,
			`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}`),
		"gemini": events(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}`),
	} {
		for _, late := range []string{events(`{"error":{"message":"late","code":500}}`), "<html>bad gateway</html>", "data: {\"cut"} {
			url, _ := serve(t, stream, reply+late)
			got, err := open(wire, url).Generate(t.Context(), hello())
			if err != nil || got.Text() != "Hi" || got.Finish != model.Stop || got.Usage == nil || got.Usage.Total() != 4 {
				t.Errorf("%s, then %q: %+v, %v", wire, late, got, err)
			}
		}
	}
}

// TestCompletionLimit: a model that rejects max_tokens gets max_completion_tokens, and no other
// request with max_tokens. Any other rejection is the reply.
func TestCompletionLimit(t *testing.T) {
	var limits []string
	says := "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		limits = append(limits, string(body["max_tokens"])+"/"+string(body["max_completion_tokens"]))
		if body["max_tokens"] != nil {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"`+says+`","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`)
			return
		}
		w.Header().Set("Content-Type", stream)
		_, _ = io.WriteString(w, replies["chat"])
	}))
	defer s.Close()
	req := hello()
	req.MaxOutput = 5
	m := open("chat", s.URL)
	for range 2 {
		if reply, err := m.Generate(t.Context(), req); err != nil || reply.Text() != "Hi" {
			t.Errorf("%q, %v", reply.Text(), err)
		}
	}
	says = "max_tokens or max_completion_tokens is too large"
	if _, err := open("chat", s.URL).Generate(t.Context(), req); err == nil {
		t.Error("another rejection is not an error")
	}
	if got := strings.Join(limits, " "); got != "5/ /5 /5 5/" {
		t.Errorf("limits: %s", got)
	}
}

// What servers send, in words of our own after public reports, and what becomes of it. See
// the table of signs in model for the reports.
func TestServersFaults(t *testing.T) {
	message := func(text, code string) string {
		return `{"error":{"message":"` + text + `","type":"","code":"` + code + `"}}`
	}
	for _, test := range []struct {
		server string
		status int
		body   string
		want   model.Kind
	}{
		{"xAI", 400, message("The maximum prompt length of this model is 1000, the request has 2000 tokens.", ""), model.TooLong},
		{"Moonshot", 400, message("Your request exceeded model token limit: 1000 (requested: 2000)", "invalid_request_error"), model.TooLong},
		{"Qwen", 400, message("<400> Range of input length should be [1, 1000]", "invalid_parameter_error"), model.TooLong},
		{"Copilot", 400, message("prompt token count of 2000 exceeds the limit of 1000", "model_max_prompt_tokens_exceeded"), model.TooLong},
		{"Zhipu", 400, message("Prompt 超长", "1261"), model.TooLong},
		{"Together", 422, message("The input (9000 tokens) is longer than the model's context length (8192 tokens).", ""), model.TooLong},
		{"Mistral", 400, `{"object":"error","message":"Prompt contains 9000 tokens, too large for model with 8192 maximum context length","type":"invalid_request_prompt"}`, model.TooLong},
		{"Cohere", 400, `{"message":"total tokens exceeds the model's max of 4096"}`, model.TooLong},
		{"TGI", 422, `{"error":"Input validation error: inputs must have less than 1024 tokens. Given: 2000","error_type":"validation"}`, model.TooLong},
		{"LM Studio", 400, message("Trying to keep the first 9000 tokens, but the model is loaded with only 4096", ""), model.TooLong},
		{"llama.cpp", 500, message("the request exceeds the available context size", "exceed_context_size_error"), model.TooLong},
		{"Anthropic", 400, message("input length and max_tokens exceed context limit: 198000 + 8192 > 200000", ""), model.TooLong},
		{"Groq, more than in a minute", 413, message("Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 9000", "rate_limit_exceeded"), model.TooLong},
		{"LiteLLM", 503, message("litellm.ServiceUnavailableError: Requested token count exceeds the model's maximum context length of 131072 tokens", ""), model.TooLong},
		{"OpenRouter, of the provider behind", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"maximum context length is 100 tokens\"}}"}}}`, model.TooLong},
		{"DeepSeek, almost full", 400, message("maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion)", ""), model.TooLong},

		{"vLLM", 400, message("'max_tokens' is too large: 16384. maximum context length is 8192 tokens and your request has 1500 input tokens", ""), model.OutputLimit},
		{"OpenAI", 400, message("max_tokens is too large: 16384. This model supports at most 4096 completion tokens", "invalid_value"), model.OutputLimit},
		{"DeepSeek", 400, message("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "invalid_request_error"), model.OutputLimit},
		{"Groq", 400, message("`max_completion_tokens` must be less than or equal to `8192`, less than the `context_window`", ""), model.OutputLimit},
		{"Qwen", 400, message("Range of max_tokens should be [1, 8192]", ""), model.OutputLimit},
		{"Zhipu", 400, message("max_tokens 参数非法", "1214"), model.OutputLimit},
		{"TGI", 422, `{"error":"inputs tokens + max_new_tokens must be <= 4096. Given: 1500 inputs tokens and 16384 max_new_tokens"}`, model.OutputLimit},
		{"OpenRouter", 400, message("maximum context length is 262144 tokens. However, you requested about 284283 tokens (8963 of text input, 262144 in the output)", ""), model.OutputLimit},
		{"FastAPI", 422, `{"detail":[{"loc":["body","max_tokens"],"msg":"max_tokens must be less than or equal to 4096"}]}`, model.OutputLimit},

		{"Moonshot", 429, message("Your account is suspended due to insufficient balance, please recharge", "exceeded_current_quota_error"), model.Quota},
		{"Zhipu", 429, message("余额不足或无可用资源包,请充值。", "1113"), model.Quota},
		{"xAI", 403, message("Your team has used all available credits or reached its spending limit", "permission-denied"), model.Quota},
		{"OpenRouter", 402, message("requires more credits, or fewer max_tokens. You can only afford 3919", "402"), model.Quota},
		{"DeepSeek", 402, message("Insufficient Balance", ""), model.Quota},
		{"Qwen", 400, message("Access denied, please make sure your account is in good standing.", "Arrearage"), model.Quota},
		{"Fireworks", 412, message("Account x is suspended, possibly due to reaching the monthly spending limit", "PRECONDITION_FAILED"), model.Quota},
		{"LiteLLM", 400, message("Budget has been exceeded! Current cost: 0.4, Max budget: 0.35", "400"), model.Quota},
		{"one-api", 403, message("user quota is not enough", "insufficient_user_quota"), model.Quota},
		{"MiniMax", 200, `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, model.Quota},
		{"a gateway", 200, `{"error":{"message":"no credit is left","code":402}}`, model.Quota},

		{"Bedrock", 400, `{"message":"Too many tokens, please wait before trying again.","__type":"ThrottlingException"}`, model.RateLimited},
		{"Azure", 429, message("exceeded token rate limit of your current pricing tier. Please retry after 6 seconds.", "429"), model.RateLimited},
		{"Gemini", 429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details","status":"RESOURCE_EXHAUSTED"}}`, model.RateLimited},
		{"a gateway", 200, `{"error":{"message":"Rate limit reached","code":429}}`, model.RateLimited},

		{"OpenRouter", 400, message("x/y is not a valid model ID", "400"), model.NoModel},
		{"DeepSeek", 400, message("Model Not Exist", "invalid_request_error"), model.NoModel},
		{"Ollama 0.17 (seen)", 404, message("model 'nosuch' not found", "not_found_error"), model.NoModel},
		{"LiteLLM", 400, message("Invalid model name passed in model=x", "400"), model.NoModel},
		{"Groq", 400, message("The model x has been decommissioned", "model_decommissioned"), model.NoModel},
		{"Copilot", 400, message("The requested model is not supported.", "model_not_supported"), model.NoModel},
		{"Azure", 404, message("The API deployment for this resource does not exist.", "DeploymentNotFound"), model.NoModel},
		{"new-api", 503, message("No available channel for model x under group default", "model_not_found"), model.NoModel},
		{"Zhipu", 400, message("模型不存在，请检查模型代码", "1211"), model.NoModel},

		{"Azure", 400, `{"error":{"message":"Filtered.","type":null,"code":"400","innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true}}}}}`, model.Blocked},
		{"Groq", 400, `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=read>"}}`, model.Malformed},
		{"Groq, in words", 200, message("Failed to call a function.", ""), model.Malformed},

		{"FastAPI", 200, `{"detail":"Not authenticated"}`, model.Auth},
		{"FastAPI", 200, `{"detail":"Forbidden"}`, model.Auth},
		{"a gateway", 200, `{"message":"Invalid token"}`, model.Auth},
		{"a gateway", 200, `{"error":"Access denied"}`, model.Auth},
		{"a gateway", 200, "Unauthorized\n", model.Auth},
		{"a gateway", 200, "insufficient balance", model.Quota},
		{"a gateway", 200, "Too many requests", model.RateLimited},
		{"a gateway", 200, `{"success":false,"message":"insufficient balance"}`, model.Quota},
		{"part of a reply", 200, `{"choices":[{"message":{"content":"no api key: Unauthorized`, model.Garbage},
		{"a long text", 200, "Unauthorized " + strings.Repeat("words ", 100), model.Garbage},
		{"a page", 200, "<html>Unauthorized</html>", model.Garbage},
		{"a word", 200, "OK", model.Garbage},

		{"OpenRouter", 401, message("No auth credentials found", "401"), model.Auth},
		{"a gateway", 200, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`, model.Auth},
		{"Gemini", 400, message("API key not valid. Please pass a valid API key.", ""), model.Auth},

		{"Ollama 0.17 (seen)", 400, message("tiny does not support thinking", "invalid_request_error"), model.Invalid},
		{"OpenAI", 400, message("Unsupported parameter: 'max_tokens' is not supported with this model.", "unsupported_parameter"), model.Invalid},
		{"a gateway", 200, `{"error":{"message":"upstream failed","code":502}}`, model.Overloaded},
		{"DeepSeek", 503, message("Service is too busy", ""), model.Overloaded},
	} {
		for wire := range replies {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			_, err := open(wire, s.URL).Generate(t.Context(), hello())
			s.Close()
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != test.want {
				t.Errorf("%s, %s, status %d: %v, want %q", wire, test.server, test.status, err, test.want)
				continue
			}
			if e.Kind == model.OutputLimit && !strings.Contains(e.Hint, "max-output") {
				t.Errorf("%s: the hint %q does not name max-output", test.server, e.Hint)
			}
			if test.status == 200 && e.Rejected() != (test.want != model.Overloaded && test.want != model.Garbage) {
				t.Errorf("%s, %s: an error that is the whole body releases the reserve: %t", wire, test.server, e.Rejected())
			}
		}
	}
}
