package harness

import (
	"errors"
	"strings"
	"testing"

	"hone"
	"hone/loop"
)

func TestAddress(t *testing.T) {
	ollama, openai := providerNamed(t, "ollama"), providerNamed(t, "openai")
	for _, test := range []struct {
		p          Provider
		text, want string // want empty: refused
	}{
		{ollama, "127.0.0.1", "http://127.0.0.1:11434/v1"},
		{ollama, "box:8080", "http://box:8080/v1"},
		{ollama, "[::1]", "http://[::1]:11434/v1"},
		{ollama, "https://box/", "https://box:11434/v1"},
		{ollama, "http://box:1/api/v1", "http://box:1/api/v1"},
		{openai, "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"},
		{openai, "https://gate.example", "https://gate.example"},
		{openai, "127.0.0.1:8080", ""},
		{openai, "localhost", ""},
		{openai, "ftp://box/v1", ""},
		{openai, "http://", ""},
		{openai, "file:///etc/passwd", ""},
		{openai, "http://a b/", ""},
	} {
		got, err := test.p.parseAddress(test.text)
		var wrong *hone.UsageError
		switch {
		case test.want == "":
			if !errors.As(err, &wrong) {
				t.Errorf("%s, %q: %q, %v; want it refused", test.p.Name, test.text, got, err)
			}
		case err != nil || got != test.want:
			t.Errorf("%s, %q: %q, %v; want %q", test.p.Name, test.text, got, err, test.want)
		}
	}
	if _, err := openai.parseAddress("ftp://me:a-password@box"); err == nil || strings.Contains(err.Error(), "a-password") {
		t.Errorf("the password of a refused address: %v", err)
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name            string
		context, output int64
	}{
		{"gemini/gemini-2.5-pro", 1_048_576, 65_536},
		{"openai/gpt-5.4", 1_050_000, 128_000},
		{"openai/gpt-4o-mini", 128_000, 16_384},
		{"openai/gpt-5.9", 400_000, 128_000},
		{"openai/qwen3", 0, 16_384},
		{"anthropic/claude-opus-4-1-20250805", 200_000, 32_000},
		{"anthropic/claude-sonnet-5", 1_000_000, 128_000},
		{"ollama/gpt-5", 0, 16_384},
	} {
		m := loop.Model{Name: test.name}
		Host{Getenv: func(string) string { return "" }}.setPrice(&m, nil)
		if m.Context != test.context || m.MaxOutput != test.output {
			t.Errorf("%s: context %d, output %d; want %d, %d", test.name, m.Context, m.MaxOutput, test.context, test.output)
		}
	}
	m := loop.Model{Name: "openai/gpt-5.4", Context: 7, MaxOutput: 3}
	Host{Getenv: func(string) string { return "" }}.setPrice(&m, nil)
	if m.Context != 7 || m.MaxOutput != 3 {
		t.Errorf("what the configuration says was overwritten: %+v", m)
	}
}

// providerNamed returns the entry of a provider.
func providerNamed(t *testing.T, name string) Provider {
	t.Helper()
	for _, p := range Providers() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no provider %s", name)
	return Provider{}
}

// TestNamesWithoutProvider: a name gets the provider that has such a model.
func TestNamesWithoutProvider(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-2.5-flash": "gemini/gemini-2.5-flash", "gpt-5.4": "openai/gpt-5.4", "o3-mini": "openai/o3-mini", "gpt-4o-2024-08-06": "openai/gpt-4o-2024-08-06",
		"claude-sonnet-5": "anthropic/claude-sonnet-5", "mine": "mine", "script/gpt-5": "script/gpt-5",
	} {
		if got, err := modelNames(name); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, %v; want %s", name, got, err, want)
		}
	}
}

// TestProvidersAreComplete: an entry is all that a provider needs. It opens its
// own models.
func TestProvidersAreComplete(t *testing.T) {
	for _, p := range Providers() {
		if p.open == nil {
			t.Errorf("%s cannot be opened", p.Name)
		}
		if p.Address == "" {
			continue
		}
		if got, err := p.parseAddress(p.Address); err != nil || got != p.Address {
			t.Errorf("the default address of %s is %q, %v", p.Name, got, err)
		}
	}
}

// An agent that the settings do not describe is not opened as something else.
func TestConnectUnknownAgent(t *testing.T) {
	_, err := Host{}.connect(loop.Model{Name: "command/codex"})
	if err == nil || err.Error() != `there is no command-line agent "codex"` {
		t.Errorf("got %v", err)
	}
}

func TestKnownKeys(t *testing.T) {
	env := map[string]string{"GEMINI_API_KEY": "the-gemini-key", "GOOGLE_API_KEY": "the-google-key", "OPENAI_API_KEY": "short",
		"ANTHROPIC_BASE_URL": "https://me:its-password@gate"}
	got := strings.Join(KnownKeys(func(k string) string { return env[k] }, "http://u:another-password@box"), " ")
	for _, want := range []string{"the-gemini-key", "the-google-key", "its-password", "another-password"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	if strings.Contains(got, "short") {
		t.Errorf("a value that is too short to be told from a word is among %q", got)
	}
}

func TestWithout(t *testing.T) {
	names := []string{"A", "B", "C"}
	if got := strings.Join(exceptNames(names, []string{"B", "D"}), ""); got != "AC" || names[1] != "B" {
		t.Errorf("got %s, and %v is left of the names", got, names)
	}
}
