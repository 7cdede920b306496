package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"hone/model/openai"
)

// patch returns the body that is sent if limit is granted.
func patch(k kind, base, body string, limit int64) (string, request, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", request{}, err
	}
	f := &Forward{config: Config{Hosted: true}, base: u}
	q, err := f.parseRequest(target{kind: k}, []byte(body))
	if err != nil {
		return "", q, err
	}
	return string(q.withLimit(limit)), q, nil
}

func TestLimits(t *testing.T) {
	const own = "https://api.openai.com/v1"
	for _, test := range []struct {
		kind       kind
		base       string
		body, want string // of a limit of 40; no want is an error
		wants      int64
	}{
		{messages, "", `{"model":"m","max_tokens":500}`, `{"model":"m","max_tokens":40}`, 500},
		{messages, "", `{ "max_tokens" : 500 , "model":"m" }`, `{"max_tokens":40,"model":"m"}`, 500},
		{messages, "", `{"model":"m","max_tokens":30}`, `{"model":"m","max_tokens":30}`, 30},
		{messages, "", `{"model":"m","max_tokens":5e2}`, `{"model":"m","max_tokens":40}`, 500},
		{messages, "", `{"model":"m","max_tokens":40.0}`, `{"model":"m","max_tokens":40.0}`, 40},
		{messages, "", `{"model":"m","max\u005ftokens":500}`, `{"model":"m","max_tokens":40}`, 500},
		{messages, "", "{\"model\":\"m\"\n}", `{"model":"m","max_tokens":40}`, 0},
		{messages, "", `{"model":"m","max_tokens":null,"x":1.50e+3}`, `{"model":"m","max_tokens":40,"x":1.50e+3}`, 0},
		{messages, "", `{"model":"m","max_tokens":"500"}`, "", 0},
		{messages, "", `{"model":"m","max_tokens":-1}`, "", 0},
		{messages, "", `{"model":"m","max_tokens":0}`, "", 0},
		{messages, "", `{"model":"m","max_tokens":1.5}`, "", 0},
		{messages, "", `{"model":"m","max_tokens":1e30}`, "", 0},
		{messages, "", `{"model":"m","max_tokens":5,"max_tokens":500}`, "", 0},
		{messages, "", `{"model":"m","max_tokens":5,"MAX_TOKENS":500}`, "", 0},
		{messages, "", `{"model":"m","max_toKens":500}`, "", 0},
		{messages, "", `{"model":"m","maxTokens":500}`, "", 0},
		{messages, "", `{"model":"m","model":"n"}`, "", 0},
		{messages, "", `{"model":""}`, "", 0},
		{messages, "", `{"max_tokens":5}`, "", 0},
		{messages, "", `{"model":["m"]}`, "", 0},

		{chat, "http://x/v1", `{"model":"m"}`, `{"model":"m","max_tokens":40}`, 0},
		{chat, own, `{"model":"m"}`, `{"model":"m","max_completion_tokens":40}`, 0},
		{chat, own, `{"model":"m","max_tokens":500}`, `{"model":"m","max_tokens":40}`, 500},
		{chat, own, `{"model":"m","max_tokens":500,"max_completion_tokens":60}`, `{"model":"m","max_tokens":40,"max_completion_tokens":40}`, 60},
		{chat, own, `{"model":"m","max_tokens":20,"max_completion_tokens":60}`, `{"model":"m","max_tokens":20,"max_completion_tokens":40}`, 20},
		{chat, own, `{"model":"m","max_tokens":500,"n":3}`, `{"model":"m","max_tokens":40,"n":3}`, 1500},
		{chat, own, `{"model":"m","max_tokens":500,"n":0}`, "", 0},
		{chat, own, `{"model":"m","max_tokens":500,"n":1000}`, "", 0},
		{chat, own, `{"model":"m","max_tokens":500,"N":3}`, "", 0},
		{chat, own, `{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":40}`, 0},
		{chat, own, `{"model":"m","max_tokens":9,"stream":true,"stream_options":{}}`, `{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}`, 9},
		{chat, own, `{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":false,"x":1}}`, `{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true,"x":1}}`, 9},
		{chat, own, `{"model":"m","max_tokens":9,"stream":true,"stream_options":null}`, `{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}`, 9},
		{chat, own, `{"model":"m","max_tokens":9,"stream":"yes"}`, "", 0},

		{responses, own, `{"model":"m"}`, `{"model":"m","max_output_tokens":40}`, 0},
		{responses, own, `{"model":"m","max_output_tokens":500}`, `{"model":"m","max_output_tokens":40}`, 500},

		{generate, "", `{}`, `{"generationConfig":{"maxOutputTokens":40}}`, 0},
		{generate, "", `{"a":1}`, `{"a":1,"generationConfig":{"maxOutputTokens":40}}`, 0},
		{generate, "", `{"generationConfig":null}`, `{"generationConfig":{"maxOutputTokens":40}}`, 0},
		{generate, "", `{"generation_config":{}}`, `{"generation_config":{"maxOutputTokens":40}}`, 0},
		{generate, "", `{"generationConfig":{"topK":4},"b":2}`, `{"generationConfig":{"topK":4,"maxOutputTokens":40},"b":2}`, 0},
		{generate, "", `{"generation_config":{"max_output_tokens":500,"candidate_count":2}}`, `{"generation_config":{"max_output_tokens":40,"candidate_count":2}}`, 1000},
		{generate, "", `{"generationConfig":{"maxOutputTokens":5,"max_output_tokens":500}}`, "", 0},
		{generate, "", `{"generationConfig":{},"generation_config":{"maxOutputTokens":500}}`, "", 0},
		{generate, "", `{"generationConfig":{"maxOutputTokens":"500"}}`, "", 0},
		{generate, "", `{"generationConfig":[]}`, "", 0},
		{generate, "", `[]`, "", 0},
		{generate, "", `{} {}`, "", 0},
	} {
		got, q, err := patch(test.kind, test.base, test.body, 40)
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s\nbecomes %s, %v\nwant    %s", test.body, got, err, test.want)
		}
		if err == nil && q.maxOutput() != test.wants {
			t.Errorf("%s wants %d, want %d", test.body, q.maxOutput(), test.wants)
		}
	}
}

func FuzzLimits(f *testing.F) {
	for _, s := range simples() {
		f.Add(s.body, int64(40))
	}
	f.Add(`{"model":"m","stream":true,"stream_options":{"include_usage":false}}`, int64(1))
	f.Add(`{"generation_config" : { } , "x":[1e400,"\ud800"]}`, int64(7))
	f.Add(`{"max_completion_tokens":9,"max_tokens":null,"n":2,"model":"m"}`, int64(5))
	f.Fuzz(func(t *testing.T, body string, limit int64) {
		limit = max(1, min(limit, maxTokens))
		for k := generate; k <= responses; k++ {
			got, q, err := patch(k, "http://x", body, limit)
			if err != nil {
				continue
			}
			if !json.Valid([]byte(got)) {
				t.Fatalf("%q becomes %q, which is not JSON", body, got)
			}
			again, r, err := patch(k, "http://x", got, limit)
			if err != nil || again != got || r.limit == 0 || r.limit > limit || q.limit > 0 && r.limit != min(limit, q.limit) || r.answers != q.answers {
				t.Fatalf("%q becomes %q (limit %d of %d, %v) and then %q", body, got, r.limit, q.limit, err, again)
			}
			if a, b := without(t, body), without(t, got); !reflect.DeepEqual(a, b) {
				t.Fatalf("%q becomes %q: more than the limit differs", body, got)
			}
		}
	})
}

// without returns a body's members as they are written, except those that an
// edit may change.
func without(t *testing.T, body string) map[string]string {
	t.Helper()
	members := map[string]string{}
	var walk func(prefix string, text []byte)
	walk = func(prefix string, text []byte) {
		o, err := parseObject(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range o.members {
			switch m.name {
			case "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "include_usage":
				continue
			case "generationConfig", "generation_config", "stream_options":
				if string(m.value) != "null" && bytes.HasPrefix(m.value, []byte("{")) {
					walk(m.name+".", m.value)
				}
				continue
			}
			members[fmt.Sprint(prefix, i, m.name)] = string(m.value)
		}
	}
	walk("", []byte(body))
	return members
}

// The key is found however a response is split, and nothing else changes or is
// lost.
func TestRedactsAcrossPieces(t *testing.T) {
	secret := "sk-a/b+sk-a/bc"
	r := newRedactor(secret, "", "short")
	text := `{"a":"sk-a/b+sk-a/b+sk-a/bc","b":"sk-a/b sk-","c":"` + url.QueryEscape(secret) + `","d":"sk-a\/b+sk-a\/bc","short":"sk-a/b+sk-a/b"}sk-a/b`
	want := `{"a":"sk-a/b+[key]","b":"sk-a/b sk-","c":"[key]","d":"[key]","short":"sk-a/b+sk-a/b"}sk-a/b`
	for first := range len(text) + 1 {
		for size := range 5 {
			var out strings.Builder
			g := &gate{r: r}
			out.Write(g.filter([]byte(text[:first])))
			for rest := text[first:]; rest != ""; {
				n := min(len(rest), size+1)
				out.Write(g.filter([]byte(rest[:n])))
				rest = rest[n:]
			}
			out.Write(g.flush())
			if out.String() != want {
				t.Fatalf("cut at %d, then by %d: %s", first, size+1, out.String())
			}
		}
	}
	if got := r.text(text); got != want {
		t.Errorf("in one piece: %s", got)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("abcabcabd", "abcabcab", 3)
	f.Add("\xff\x00aaaaaaaaa", "aaaaaaaa", 1)
	f.Fuzz(func(t *testing.T, text, secret string, cut int) {
		r := newRedactor(secret)
		cut = max(0, min(cut, len(text)))
		g := &gate{r: r}
		got := string(g.filter([]byte(text[:cut]))) + string(g.filter([]byte(text[cut:]))) + string(g.flush())
		if got != r.text(text) {
			t.Fatalf("cut at %d: %q, in one piece: %q", cut, got, r.text(text))
		}
		if len(secret) < minKey && got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// The usage is found in whatever form a stream has (ruling G23).
func TestMeterForms(t *testing.T) {
	const chat = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n"
	for name, text := range map[string]string{
		"LF": chat, "CR": strings.ReplaceAll(chat, "\n", "\r"), "a byte order mark": "\ufeff" + chat, "no blank lines": strings.ReplaceAll(chat, "\n\n", "\n"),
		"comments": ": working\n" + chat, "data that is no JSON": "data: ping\n\n" + chat, "lines of JSON": strings.ReplaceAll(strings.ReplaceAll(chat, "data: [DONE]", ""), "data: ", ""),
	} {
		m := newMeter(openai.NewMeter("/v1/chat/completions"), false)
		m.feed([]byte(text))
		m.end()
		if used := m.result(true); used == nil || used.Input != 3 || used.Output != 4 {
			t.Errorf("%s: %+v", name, used)
		}
	}
}

// Feeding a response in pieces makes no difference.
func FuzzMeter(f *testing.F) {
	f.Add("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":4}}\r\n\r\ndata: {\"type\":\"message_stop\"}\n\n", 9)
	f.Add(`[{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}]`, 5)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = max(0, min(cut, len(text)))
		for _, s := range simples() {
			one, two := newMeter(meters(s.wire)(s.path), false), newMeter(meters(s.wire)(s.path), false)
			one.feed([]byte(text))
			two.feed([]byte(text[:cut]))
			two.feed([]byte(text[cut:]))
			one.end()
			two.end()
			if !reflect.DeepEqual(one.known, two.known) || !reflect.DeepEqual(one.result(true), two.result(true)) {
				t.Fatalf("%q cut at %d: %+v and %+v", text, cut, one.known, two.known)
			}
		}
	})
}
