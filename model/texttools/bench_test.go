package texttools

import (
	"strings"
	"testing"
)

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
