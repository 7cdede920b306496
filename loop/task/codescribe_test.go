package task

import (
	"errors"
	"os"
	"strings"
	"testing"

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
