package agent

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// patch returns the body that is sent if limit is granted.
func patch(k kind, base, body string, limit int64) (string, asked, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", asked{}, err
	}
	f := &Forward{config: ForwardConfig{Hosted: true}, wire: &wire{}, base: u}
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
		if (err != nil) != (test.want == "") || err == nil && !sameJSON(got, test.want) {
			t.Errorf("%s\nbecomes %s, %v\nwant    %s", test.body, got, err, test.want)
		}
		if err == nil && q.limit*q.answers != test.wants {
			t.Errorf("%s wants %d, want %d", test.body, q.limit*q.answers, test.wants)
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
	all := map[string]string{}
	var walk func(prefix string, text []byte)
	walk = func(prefix string, text []byte) {
		for name, value := range membersOf(t, text) {
			switch name {
			case "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "include_usage":
				continue
			case "generationConfig", "generation_config", "stream_options":
				walk(name+".", value)
				continue
			}
			var b bytes.Buffer
			if err := json.Compact(&b, value); err != nil {
				t.Fatal(err)
			}
			all[prefix+name] = b.String()
		}
	}
	walk("", []byte(body))
	return all
}

func membersOf(t *testing.T, text []byte) (m map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
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
			out.Write(g.filter([]byte(text[:first]), false))
			for rest := text[first:]; rest != ""; {
				n := min(len(rest), size+1)
				out.Write(g.filter([]byte(rest[:n]), false))
				rest = rest[n:]
			}
			out.Write(g.filter(nil, true))
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
		got := string(g.filter([]byte(text[:cut]), false)) + string(g.filter([]byte(text[cut:]), true))
		if got != r.text(text) {
			t.Fatalf("cut at %d: %q, in one piece: %q", cut, got, r.text(text))
		}
		if len(secret) < minKey && got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
