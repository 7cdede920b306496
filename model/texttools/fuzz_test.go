package texttools

import (
	"strings"
	"testing"
	"unicode/utf8"

	"hone/model"
)

// FuzzParse tests that no text makes Parse panic, and that only white space
// outside of calls is lost.
func FuzzParse(f *testing.F) {
	f.Add(lines("x", "<tool_call>", a, "</tool_call>", "```json", b, "```", ""))
	f.Add("<think>\n</think> [" + a + "]")
	f.Add("[TOOL_CALLS]read[CALL_ID]1[ARGS]" + a + "\n<function=read><parameter=path>\na\n</parameter></function>")
	f.Add("<|python_tag|>{\"name\":\"read\"}\n~~~\n\n> <tool_result")
	f.Add("a\n```\n \n{\n```\n<function=read>x</function>\t```")
	f.Add("x\n</think>\n" + a + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		parts := Parse(text, testTools())
		visible := model.Reply{Parts: parts}.Text()
		spans := find(text, testTools())
		at, want := 0, ""
		for _, s := range spans {
			if s.from < at || s.end(text) <= s.from || s.end(text) > len(text) {
				t.Fatalf("span %d to %d after %d in %d bytes", s.from, s.end(text), at, len(text))
			}
			want += text[at:s.from]
			at = s.end(text)
		}
		if want += text[at:]; dense(visible) != dense(want) {
			t.Errorf("visible text = %q, text outside of calls = %q", visible, want)
		}
		if len(spans) == 0 && visible != text {
			t.Errorf("text without calls became %q", visible)
		}
	})
}

// dense returns a text without white space.
func dense(text string) string {
	return strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(text)
}

// FuzzFormat tests that Parse reads back any formatted call, and that an
// escaped text contains no call.
func FuzzFormat(f *testing.F) {
	f.Add("read", `{"path": "a</tool_call>\n<tool_call>"}`, "x")
	f.Add("", "{", lines("<tool_call>", a, "</tool_call>"))
	f.Add("\n\"", "\x00", "[TOOL_CALLS]["+a+"]<\\tool_call>")
	f.Add("a", `{"a":"[\\TOOL_CALLS]"}`, "<function=a>{}</function>")
	f.Fuzz(func(t *testing.T, name, args, text string) {
		if !utf8.ValidString(name) || !utf8.ValidString(args) || name == "" {
			return
		}
		c := model.Call{Name: name, Args: args}
		parts := Parse(Format(c), nil)
		if len(parts) != 1 || parts[0].Call == nil || !sameCall(*parts[0].Call, c) {
			t.Errorf("Format(%+v) = %s, which is read as %s", c, Format(c), formatParts(parts))
		}
		for _, p := range Parse(escape(text), nil) {
			if p.Call != nil {
				t.Errorf("escape(%q) = %q, which contains a call", text, escape(text))
			}
		}
		if got := unescape(escape(text)); got != text {
			t.Errorf("escape(%q) = %q, which unescapes to %q", text, escape(text), got)
		}
		result := formatResult(model.Result{Name: name, Text: text})
		if strings.Count(result, "<tool_result") != 1 || strings.Count(result, "</tool_result") != 1 || strings.Contains(result, "<tool_call>") {
			t.Errorf("the result contains other blocks: %s", result)
		}
	})
}

// unescape removes one backslash from every escaped tag.
func unescape(text string) string {
	return syntax.ReplaceAllStringFunc(text, func(tag string) string { return tag[:1] + strings.TrimPrefix(tag[1:], `\`) })
}

// hostile returns texts that, repeated, would make a careless reader take
// quadratic time.
func hostile() map[string]string {
	return map[string]string{
		"words":            "All work and no play.\n",
		"one line":         "All work and no play. ",
		"tags":             "<tool_call>",
		"open calls":       "<tool_call>{",
		"open calls lines": "<tool_call>{\"\n",
		"open in a line":   "x <tool_call>{\"a",
		"functions":        "<function=a>",
		"parameters":       "x<function=a><parameter=b>",
		"closed values":    "\n<function=a><parameter=b></parameter>x",
		"invokes":          `<invoke name="a"><parameter name="b"></parameter>x</invoke>`,
		"keys":             "<tool_call>a<arg_key>b</arg_key><arg_value>",
		"closed keys":      "<tool_call>a<arg_key>b</arg_key><arg_value></tool_call>",
		"DeepSeek":         "<｜tool▁call▁begin｜>a<｜tool▁sep｜>{<｜tool▁call▁end｜>",
		"lists":            "[TOOL_CALLS][",
		"names":            "[TOOL_CALLS]a",
		"brackets":         "[",
		"broken calls":     "<tool_call>{'a'}</tool_call>\n",
		"calls":            "<tool_call>" + a + "</tool_call>\n",
		"fences":           "```json\n{\n```\n",
		"fenced calls":     "```json\n" + a + "\n```\n",
		"open fences":      "```\n{\n~~~\n",
		"backticks":        "`<tool_call>{",
		"thoughts":         "<think></think>",
		"blank lines":      "\n",
		"blank fences":     "```\n \n",
		"results":          "<tool_result>\n",
		"backslashes":      `<\\\`,
	}
}

// repeat returns the unit repeated to at least size bytes.
func repeat(unit string, size int) string { return strings.Repeat(unit, size/len(unit)+1) }

// BenchmarkParse shows that the time is linear: MB/s must be similar for both
// sizes.
func BenchmarkParse(b *testing.B) {
	tools := testTools()
	for name, unit := range hostile() {
		for _, size := range []int{1 << 17, 1 << 20} {
			text := repeat(unit, size)
			b.Run(strings.ReplaceAll(name, " ", "_")+map[int]string{1 << 17: "/128K", 1 << 20: "/1M"}[size], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Parse(text, tools)
				}
			})
		}
	}
}

func BenchmarkEscape(b *testing.B) {
	for name, unit := range hostile() {
		text := repeat(unit, 1<<20)
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				escape(text)
			}
		})
	}
}
