package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tidwall/gjson"

	"hone/model"
	"hone/sandbox/wall"
)

// The usage paths of the configurations in docs/agents.md.
var (
	geminiUsage = Usage{
		Input:     "[#.stats.models.@values.#.tokens.prompt,#.stats.models.@values.#.tokens.tool]",
		Output:    "[#.stats.models.@values.#.tokens.candidates,#.stats.models.@values.#.tokens.thoughts]",
		CacheRead: "#.stats.models.@values.#.tokens.cached", Reasoning: "#.stats.models.@values.#.tokens.thoughts", CachedInInput: true,
	}
	codexUsage = Usage{
		Input: "@reverse.#(usage).usage.input_tokens", Output: "@reverse.#(usage).usage.output_tokens", CacheRead: "@reverse.#(usage).usage.cached_input_tokens",
		Reasoning: "@reverse.#(usage).usage.reasoning_output_tokens", CachedInInput: true,
	}
	claudeUsage = Usage{
		Input: "#.modelUsage.@values.#.inputTokens", Output: "#.modelUsage.@values.#.outputTokens",
		CacheRead: "#.modelUsage.@values.#.cacheReadInputTokens", CacheWrite: "#.modelUsage.@values.#.cacheCreationInputTokens",
	}
	opencodeUsage = Usage{
		Input: "#.part.tokens.input", Output: "[#.part.tokens.output,#.part.tokens.reasoning]", CacheRead: "#.part.tokens.cache.read",
		CacheWrite: "#.part.tokens.cache.write", Reasoning: "#.part.tokens.reasoning",
	}
	qwenUsage = Usage{
		Input: `#(type=="result")#.usage.input_tokens`, Output: `#(type=="result")#.usage.output_tokens`,
		CacheRead: `#(type=="result")#.usage.cache_read_input_tokens`, CachedInInput: true,
	}
)

const (
	codexAnswer    = `#(item.type=="agent_message")#.item.text`
	claudeAnswer   = "#(is_error==false)#.result"
	opencodeAnswer = `#(part.type=="text")#.part.text`
)

const geminiOut = `Loaded cached credentials.
[WARN] Skipping unreadable directory: /root
{
  "session_id": "3f",
  "response": "All contracts hold.",
  "stats": {
    "models": {
      "gemini-2.5-pro": {
        "api": {"totalRequests": 2, "totalErrors": 0, "totalLatencyMs": 5053},
        "tokens": {"input": 3676, "prompt": 24939, "candidates": 20, "total": 25113, "cached": 21263, "thoughts": 154, "tool": 0},
        "roles": {"main": {"tokens": {"prompt": 24939}}}
      },
      "gemini-2.5-flash": {
        "api": {"totalRequests": 1},
        "tokens": {"prompt": 1000, "candidates": 10, "total": 1017, "cached": 0, "thoughts": 0, "tool": 7}
      }
    },
    "tools": {"totalCalls": 1, "byName": {"write_file": {"count": 1}}}
  }
}
`

const codexOut = `{"type":"thread.started","thread_id":"0199"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"**Looking**"}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"I shall look."}}
{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"It is done."}}
{"type":"item.completed","item":{"id":"item_4","type":"reasoning","text":"**Done**"}}
{"type":"turn.completed","usage":{"input_tokens":26549,"cached_input_tokens":22272,"output_tokens":1590,"reasoning_output_tokens":1152}}
`

const claudeOut = `{"type":"result","subtype":"success","is_error":false,"duration_ms":5230,"num_turns":3,"result":"It is done.","session_id":"a","total_cost_usd":0.01,` +
	`"usage":{"input_tokens":4,"cache_creation_input_tokens":900,"cache_read_input_tokens":3000,"output_tokens":50},` +
	`"modelUsage":{"claude-sonnet-4-5":{"inputTokens":4,"outputTokens":50,"cacheReadInputTokens":3000,"cacheCreationInputTokens":900},` +
	`"claude-haiku-4-5":{"inputTokens":100,"outputTokens":5,"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}}` + "\n"

const claudeFailed = `{"type":"result","subtype":"success","is_error":true,"result":"There is an issue with the selected model.","modelUsage":{}}` + "\n"

const opencodeOut = `{"type":"step_start","timestamp":1,"sessionID":"s","part":{"type":"step-start"}}
{"type":"text","timestamp":2,"sessionID":"s","part":{"type":"text","text":"I shall look."}}
{"type":"tool_use","timestamp":3,"sessionID":"s","part":{"type":"tool","tool":"read","state":{"status":"completed","output":"text"}}}
{"type":"step_finish","timestamp":4,"sessionID":"s","part":{"type":"step-finish","reason":"tool-calls","cost":0,"tokens":{"input":671,"output":8,"reasoning":40,"cache":{"read":21415,"write":12}}}}
{"type":"text","timestamp":5,"sessionID":"s","part":{"type":"text","text":"It is done."}}
{"type":"step_finish","timestamp":6,"sessionID":"s","part":{"type":"step-finish","reason":"stop","cost":0,"tokens":{"input":9,"output":3,"reasoning":0,"cache":{"read":22000,"write":0}}}}
`

const qwenOut = `[{"type":"system","subtype":"session_start","uuid":"u","session_id":"s","model":"qwen3-coder-plus"},
{"type":"assistant","uuid":"v","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"It is done."}],"usage":{"input_tokens":100,"output_tokens":9}}},
{"type":"result","subtype":"success","is_error":false,"duration_ms":1234,"result":"It is done.","usage":{"input_tokens":100,"output_tokens":9,"cache_read_input_tokens":60,"total_tokens":109}}]`

// outputParser returns an agent of which a test only uses the parser.
func outputParser(t *testing.T, answer string, usage Usage) *Agent {
	t.Helper()
	a, err := New(wall.None{}, Config{Name: "x", Argv: []string{"x"}, Answer: answer, Usage: usage})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// section is the part of a [commands.NAME] section that this package uses.
type section struct {
	Argv   []string `toml:"argv"`
	Model  string   `toml:"model"`
	Answer string   `toml:"answer"`
	Usage  struct {
		Input         string `toml:"input"`
		Output        string `toml:"output"`
		CacheRead     string `toml:"cache-read"`
		CacheWrite    string `toml:"cache-write"`
		Reasoning     string `toml:"reasoning"`
		CachedInInput bool   `toml:"cached-in-input"`
	} `toml:"usage"`
}

// documentedSections returns the sections in docs/agents.md.
func documentedSections(t *testing.T) map[string]section {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]section{}
	blocks := strings.Split(string(page), "```toml\n")
	for _, block := range blocks[1:] {
		text, _, _ := strings.Cut(block, "```")
		var file struct {
			Commands map[string]section `toml:"commands"`
		}
		if err := toml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for name, s := range file.Commands {
			all[name] = s
		}
	}
	return all
}

// The documented sections are valid and use the paths that are tested here.
func TestDocumentedAgents(t *testing.T) {
	usages := map[string]Usage{"gemini": geminiUsage, "codex": codexUsage, "claude": claudeUsage, "opencode": opencodeUsage, "qwen": qwenUsage, "aider": {}, "mine": {}}
	answers := map[string]string{"gemini": "#.response", "codex": codexAnswer, "claude": claudeAnswer, "opencode": opencodeAnswer, "qwen": claudeAnswer}
	sections := documentedSections(t)
	if len(sections) != len(usages) {
		t.Errorf("%d sections, want %d", len(sections), len(usages))
	}
	for name, s := range sections {
		t.Run(name, func(t *testing.T) {
			if _, err := New(wall.None{}, Config{Name: name, Argv: s.Argv, Model: s.Model, Answer: s.Answer, Usage: Usage(s.Usage)}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(usages[name], Usage(s.Usage)); diff != "" {
				t.Error(diff)
			}
			if s.Answer != answers[name] {
				t.Errorf("answer = %q, want %q", s.Answer, answers[name])
			}
		})
	}
}

func TestOutputOfAgents(t *testing.T) {
	const done = "It is done."
	for name, c := range map[string]struct {
		answer string
		usage  Usage
		out    string
		want   output
	}{
		"gemini": {"#.response", geminiUsage, geminiOut,
			output{"All contracts hold.", true, &model.Usage{Input: 24939 - 21263 + 1000 + 7, Output: 184, Reasoning: 154, CacheRead: 21263}}},
		"gemini failed": {"#.response", geminiUsage, `{"session_id":"3f","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns","code":53}}`, output{}},
		"codex":         {codexAnswer, codexUsage, codexOut, output{done, true, &model.Usage{Input: 4277, Output: 1590, Reasoning: 1152, CacheRead: 22272}}},
		"codex of an older version": {codexAnswer, codexUsage, strings.ReplaceAll(codexOut, `,"reasoning_output_tokens":1152`, ""),
			output{done, true, &model.Usage{Input: 4277, Output: 1590, CacheRead: 22272}}},
		"codex cut":                {codexAnswer, codexUsage, codexOut[:len(codexOut)-80], output{answer: done, found: true}},
		"claude":                   {claudeAnswer, claudeUsage, claudeOut, output{done, true, &model.Usage{Input: 104, Output: 55, CacheRead: 3000, CacheWrite: 900}}},
		"claude verbose":           {claudeAnswer, claudeUsage, `[{"type":"system"},` + claudeOut + `]`, output{done, true, &model.Usage{Input: 104, Output: 55, CacheRead: 3000, CacheWrite: 900}}},
		"claude failed":            {claudeAnswer, claudeUsage, claudeFailed, output{}},
		"opencode":                 {opencodeAnswer, opencodeUsage, opencodeOut, output{done, true, &model.Usage{Input: 680, Output: 51, Reasoning: 40, CacheRead: 43415, CacheWrite: 12}}},
		"qwen":                     {claudeAnswer, qwenUsage, qwenOut, output{done, true, &model.Usage{Input: 40, Output: 9, CacheRead: 60}}},
		"all of standard output":   {"", Usage{}, "\x1b[32mIt is\x1b[0m done.\r\n", output{answer: done, found: true}},
		"empty":                    {"", Usage{}, "", output{found: true}},
		"an empty answer":          {"#.response", Usage{}, `{"response":""}`, output{found: true}},
		"an answer of other kind":  {"#.response", Usage{}, `{"response":{"text":"x"}}`, output{}},
		"usage beside plain words": {"", codexUsage, "x\n" + `{"usage":{"input_tokens":1,"output_tokens":2}}`, output{"x\n" + `{"usage":{"input_tokens":1,"output_tokens":2}}`, true, &model.Usage{Input: 1, Output: 2}}},
		"more cached than read":    {"", codexUsage, `{"usage":{"input_tokens":1,"output_tokens":2,"cached_input_tokens":5,"reasoning_output_tokens":9}}`, output{`{"usage":{"input_tokens":1,"output_tokens":2,"cached_input_tokens":5,"reasoning_output_tokens":9}}`, true, &model.Usage{Output: 2, Reasoning: 2, CacheRead: 5}}},
		"half of the usage":        {"#.response", codexUsage, `{"response":"x","usage":{"input_tokens":1}}`, output{answer: "x", found: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := outputParser(t, c.answer, c.usage).parse([]byte(c.out), true)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(output{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Counts that cannot be read leave the usage unknown.
func TestUnreadableUsage(t *testing.T) {
	paths := Usage{Input: "#.in", Output: "#.out", CacheRead: "#.cached", Reasoning: "#.details.hidden"}
	const good = `{"in":7,"out":3}`
	for _, bad := range []string{
		`{"in":"12","out":3}`, `{"in":1e400,"out":3}`, `{"in":1.5,"out":3}`, `{"in":-1,"out":3}`, `{"in":true,"out":3}`,
		`{"in":9223372036854775808,"out":3}`, `{"in":2000000000000,"out":3}`, `{"in":{},"out":3}`, `{"in":7,"out":"3"}`,
		`{"in":7,"out":3,"cached":"2"}`, `{"in":7,"out":3,"cached":-2}`, `{"in":7,"out":3,"details":{"hidden":1e400}}`, `{"in":"7","out":"3"}`,
	} {
		for _, out := range []string{good + "\n" + bad, bad + "\n" + good, bad} {
			if got := outputParser(t, "", paths).parse([]byte(out), true); got.usage != nil {
				t.Errorf("%s: usage %+v", out, got.usage)
			}
		}
	}
	for _, none := range []string{`{"in":null,"out":null}`, `{}`, `{"details":5}`, `[]`, `{"cached":null,"details":{"hidden":null}}`} {
		if got := outputParser(t, "", paths).parse([]byte(none), true); got.usage != nil {
			t.Errorf("%s: usage %+v", none, got.usage)
		}
		got := outputParser(t, "", paths).parse([]byte(good+"\n"+none), true)
		if diff := cmp.Diff(&model.Usage{Input: 7, Output: 3}, got.usage); diff != "" {
			t.Errorf("%s reports no usage (-want +got):\n%s", none, diff)
		}
	}
}

// The end of truncated output counts, but not its usage, of which a part may be lost.
func TestTruncatedOutput(t *testing.T) {
	if got := outputParser(t, codexAnswer, codexUsage).parse([]byte("half\":1}\n"+codexOut), false); !got.found || got.usage != nil {
		t.Errorf("codex: %+v", got)
	}
	if got := outputParser(t, "", Usage{}).parse([]byte("the end"), false); got.found || got.answer != "" {
		t.Errorf("plain output: %+v", got)
	}
}

func FuzzOutput(f *testing.F) {
	for _, out := range []string{geminiOut, codexOut, claudeOut, claudeFailed, opencodeOut, qwenOut, "[\n[\n", "{\"a\":\n", "\xff\x00"} {
		f.Add([]byte(out), true)
	}
	c := Config{Name: "x", Argv: []string{"x"}, Answer: "@flatten.#.text", Usage: Usage{Input: "[#.n,#.@values.#.n]", Output: "#.n", CacheRead: "#.n", Reasoning: "#(n>1)#.n", CachedInInput: true}}
	a, err := New(wall.None{}, c)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, out []byte, complete bool) {
		got := a.parse(out, complete)
		if !got.found && got.answer != "" {
			t.Errorf("an answer that was not found: %q", got.answer)
		}
		if strings.ContainsFunc(got.answer, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
			t.Errorf("control characters in %q", got.answer)
		}
		if u := got.usage; u != nil && (u.Input < 0 || u.Output < u.Reasoning || u.CacheRead < 0 || u.Reasoning < 0) {
			t.Errorf("usage %+v", *u)
		}
		// A preceding line that is not a document changes nothing.
		withNote := a.parse(append([]byte("note\n"), out...), true)
		if diff := cmp.Diff(a.parse(out, true), withNote, cmp.AllowUnexported(output{})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDocuments(t *testing.T) {
	for name, c := range map[string]struct{ out, want string }{
		"nothing":                 {"", `[]`},
		"words":                   {"Loading.\nDone.\n", `[]`},
		"one":                     {`{"a":1}`, `[{"a":1}]`},
		"lines":                   {"{\"a\":1}\r\n{\"a\":2}\r\n", `[{"a":1},{"a":2}]`},
		"a list":                  {`[{"a":1},{"a":2}]`, `[{"a":1},{"a":2}]`},
		"of several lines":        {"{\n  \"a\": [\n    1\n  ]\n}\n", "[{\n  \"a\": [\n    1\n  ]\n}]"},
		"words around":            {"warning: x\n[WARN] {y}\n{\n \"a\": 1\n}\nDeprecated {\n{\"a\":2} bye\nend", "[{\n \"a\": 1\n},{\"a\":2}]"},
		"a cut line":              {"{\"a\":\n{\"a\":2}\n", `[{"a":2}]`},
		"a cut string":            {"{\"a\":\"x\n{\"a\":2}\n", `[{"a":2}]`},
		"cut at the end":          {"{\"a\":1}\n{\n  \"a\": {\n    \"b\":", `[{"a":1}]`},
		"an inner object stays":   {"{ broken\n  {\"a\":2}\n", `[]`},
		"NUL in a string":         {"{\"a\":\"\x00\"}\n{\"a\":2}", `[{"a":2}]`},
		"NUL between":             {"\x00{\"a\":1}\n{\"a\":2}\x00\n{\"a\":3}", `[{"a":2},{"a":3}]`},
		"not UTF-8":               {"\xff\n{\"a\":\"\xff\"}", "[{\"a\":\"\xff\"}]"},
		"a number of many digits": {`{"a":12345678901234567890}`, `[{"a":12345678901234567890}]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := documents([]byte(c.out)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Hostile output is read to its end, with the document after it.
func TestHostileDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: megabytes in one goroutine")
	}
	const last = "\n{\"last\":true}\n"
	for name, out := range map[string]string{
		"deep nesting":            strings.Repeat("[", 1<<20) + last,
		"deep nesting that ends":  strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + last,
		"a million lines":         strings.Repeat("{\"a\":1}\n", 1_000_000) + last,
		"many broken lines":       strings.Repeat("{\"a\":\n", 200_000) + last,
		"lists that never end":    strings.Repeat("[\n", 9000) + strings.Repeat("1,\n", 1<<20) + last,
		"a string that never end": `{"a":"` + strings.Repeat("x", 8<<20) + last,
		"very many values":        "[" + strings.Repeat("[],", 4<<20) + "0]" + last,
		"very many members":       "{" + strings.Repeat(`"a":{},`, 2<<20) + `"b":0}` + last,
	} {
		t.Run(name, func(t *testing.T) {
			if got := gjson.Get(documents([]byte(out)), "@reverse.0").Raw; got != `{"last":true}` {
				t.Errorf("last document = %.100s", got)
			}
		})
	}
}
