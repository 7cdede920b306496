package task

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"hone"
)

// hasProvider knows some providers.
func hasProvider(name string) bool {
	provider, _, ok := strings.Cut(name, "/")
	return ok && strings.Contains(" openai ollama script oaic ", " "+provider+" ")
}

func TestCodescribeModel(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("openai-local", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{ // empty: refused
		"openai-gpt-4.1":          "openai/gpt-4.1",
		"anthropic-claude-opus-4": "anthropic/claude-opus-4",
		"oaic-meta/llama-3":       "oaic/meta/llama-3",
		"openai/gpt-5":            "openai/gpt-5",
		"ollama/qwen3-coder":      "ollama/qwen3-coder",
		"script/./replies":        "script/./replies",
		"openai-":                 "openai-",
		"gpt-5":                   "gpt-5",
		"argo-gpt4o":              "",
		"openai-local":            "",
		"/models/llama":           "",
		"../llama":                "",
		"~/llama":                 "",
	} {
		got, err := codescribeModel(name, hasProvider)
		var wrong *hone.UsageError
		switch {
		case want == "" && (!errors.As(err, &wrong) || wrong.Next.First == ""):
			t.Errorf("%s: %q, %v; want it refused with a hint", name, got, err)
		case want != "" && (err != nil || got != want):
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

// back decodes one encoded string.
func back(t testing.TB, s string) string {
	t.Helper()
	text := table{"first", 1, "s", s, "last", true}.lines()
	var doc struct {
		First int
		S     string
		Last  bool
	}
	if err := toml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%q is written as %q: %v", s, text, err)
	}
	if doc.First != 1 || !doc.Last {
		t.Fatalf("%q is written as %q, which hides its neighbours", s, text)
	}
	return doc.S
}

// TestStringsComeBack: the log stays readable whatever a tool printed.
func TestStringsComeBack(t *testing.T) {
	for _, s := range []string{
		"", "a", `"`, `\`, "'", "'''", "a\nb", "\na", "a\n", "\n", "\n\n", "a\n'", "a\n''", "a\n'''b", "it's\na",
		"\x1b[31mred\x1b[0m\nplain", "a\x00b", "a\rb", "a\r\nb\r\n", "\x7f\n", "tab\there\n", "\u0085\u2028\n", "a = 1\n[[event]]\n",
		"''' \n\"\"\"", strings.Repeat("x", 1<<20), strings.Repeat("x\n", 1<<19), "ünï\U0001F600",
	} {
		if got := back(t, s); got != s {
			t.Errorf("%.60q comes back as %.60q", s, got)
		}
	}
	if got := back(t, "a\xff\xfeb\n\xc3"); got != "a\uFFFDb\n\uFFFD" {
		t.Errorf("%q", got)
	}
}

// TestArguments: the arguments of a call are a table, whatever is in them.
func TestArguments(t *testing.T) {
	args := `{"a b": "x\ny", "n": 3, "f": 1.5, "big": 123456789012345678901, "far": 1e999, "none": null, "list": [{"k": true}, "'''"], "": {}, "long": "` + strings.Repeat("ä", 501) + `"}`
	var doc struct{ Args map[string]any }
	text := table{"args", object(args), "other", object("no JSON")}.lines()
	if err := toml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want := map[string]any{"a b": "x\ny", "n": int64(3), "f": 1.5, "big": 1.2345678901234568e20, "far": "1e999", "none": "", "list": []any{map[string]any{"k": true}, "'''"}, "": map[string]any{},
		"long": strings.Repeat("ä", 500) + "... [truncated, 501 chars total]"}
	if diff := cmp.Diff(want, doc.Args); diff != "" {
		t.Error(diff)
	}
}

func FuzzStringsComeBack(f *testing.F) {
	f.Add("a\n'''\x1b\r\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := back(t, s), strings.ToValidUTF8(s, "\uFFFD"); got != want {
			t.Errorf("%q comes back as %q", s, got)
		}
	})
}

func TestShort(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"ääää", 3, "äää"}, {"ääää", 4, "ääää"}, {"", 3, ""}} {
		if got := short(tt.text, tt.most); got != tt.want {
			t.Errorf("%q, %d: %q", tt.text, tt.most, got)
		}
	}
}

func Example_table() {
	fmt.Print(table{"loop_index", 2, "phase", "review", "output_preview", "exit_code: 0\nSTDOUT:\n"}.lines())
	// Output:
	// loop_index = 2
	// phase = "review"
	// output_preview = '''
	// exit_code: 0
	// STDOUT:
	// '''
}
