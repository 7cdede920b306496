package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hone"
)

func TestRaised(t *testing.T) {
	had := hone.Limits{Rounds: 5, Tokens: 1000, Time: time.Hour}
	for _, test := range []struct {
		name string
		ask  limitFlags
		want hone.Limits // zero: refused
	}{
		{"nothing is asked for", limitFlags{}, had},
		{"the same", limitFlags{rounds: 5, maxTokens: 1000, maxTime: time.Hour}, had},
		{"one is raised", limitFlags{rounds: 6}, hone.Limits{Rounds: 6, Tokens: 1000, Time: time.Hour}},
		{"all are raised", limitFlags{rounds: 6, maxTokens: 1001, maxTime: 2 * time.Hour}, hone.Limits{Rounds: 6, Tokens: 1001, Time: 2 * time.Hour}},
		{"rounds are lowered", limitFlags{rounds: 4, maxTokens: 2000}, hone.Limits{}},
		{"tokens are lowered", limitFlags{maxTokens: 999}, hone.Limits{}},
		{"time is lowered", limitFlags{maxTime: time.Minute}, hone.Limits{}},
		{"a cost limit where there was none", limitFlags{maxCost: 100}, hone.Limits{}},
	} {
		got, err := raised(had, test.ask)
		var wrong *hone.UsageError
		switch {
		case test.want == hone.Limits{}:
			if !errors.As(err, &wrong) || got != had {
				t.Errorf("%s: %+v, %v; want it refused", test.name, got, err)
			}
		case err != nil || got != test.want:
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	costly, err := raised(hone.Limits{Rounds: 1, Cost: 1.5}, limitFlags{maxCost: 2})
	if err != nil || costly.Cost != 2 {
		t.Errorf("a cost limit is raised: %+v, %v", costly, err)
	}
}

func TestAddress(t *testing.T) {
	ollama, openai := provider{name: "ollama"}, provider{name: "openai"}
	for _, test := range []struct {
		p          provider
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
		got, err := address(test.p, test.text)
		var wrong *hone.UsageError
		switch {
		case test.want == "":
			if !errors.As(err, &wrong) {
				t.Errorf("%s, %q: %q, %v; want it refused", test.p.name, test.text, got, err)
			}
		case err != nil || got != test.want:
			t.Errorf("%s, %q: %q, %v; want %q", test.p.name, test.text, got, err, test.want)
		}
	}
	if _, err := address(openai, "ftp://me:a-password@box"); err == nil || strings.Contains(err.Error(), "a-password") {
		t.Errorf("the password of a refused address: %v", err)
	}
}

func TestComplete(t *testing.T) {
	for _, test := range []struct {
		name            string
		context, output int64
	}{
		{"gemini/gemini-2.5-pro", 1_048_576, 65_536},
		{"gemini/gemini-1.0", 0, 8_192},
		{"openai/gpt-5.4", 400_000, 128_000},
		{"openai/gpt-4o-mini", 128_000, 16_384},
		{"openai/qwen3", 0, 16_384},
		{"anthropic/claude-opus-4-1-20250805", 200_000, 32_000},
		{"anthropic/claude-sonnet-5", 200_000, 64_000},
		{"ollama/gpt-5", 0, 16_384},
	} {
		m := modelSettings{Name: test.name}
		m.complete()
		if m.Context != test.context || m.MaxOutput != test.output {
			t.Errorf("%s: context %d, output %d; want %d, %d", test.name, m.Context, m.MaxOutput, test.context, test.output)
		}
	}
	m := modelSettings{Name: "openai/gpt-5.4", Context: 7, MaxOutput: 3}
	m.complete()
	if m.Context != 7 || m.MaxOutput != 3 {
		t.Errorf("what the configuration says was overwritten: %+v", m)
	}
}

// TestFamiliesGoFromSpecialToGeneral holds that no entry hides a later one.
func TestFamiliesGoFromSpecialToGeneral(t *testing.T) {
	all := families()
	for i, f := range all {
		for _, later := range all[i+1:] {
			if strings.HasPrefix(later.prefix, f.prefix) {
				t.Errorf("%q stands before %q and hides it", f.prefix, later.prefix)
			}
		}
	}
}

func TestRedactor(t *testing.T) {
	const key = `sk-"a/b+c é`
	clean := redactor([]string{key, "sk-plain-key", "sk-plain-key-longer"})
	for _, test := range []struct{ text, want string }{
		{"nothing in it", "nothing in it"},
		{"Bearer " + key + ".", "Bearer [key]."},
		{`{"key": "sk-\"a/b+c é"}`, `{"key": "[key]"}`},
		{"?key=sk-%22a%2Fb%2Bc+%C3%A9&x", "?key=[key]&x"},
		{"/sk-%22a%2Fb+c%20%C3%A9/x", "/[key]/x"},
		{"sk-plain-keysk-plain-key", "[key][key]"},
		{"sk-plain-key-longer", "[key]"},
		{"sk-plain-ke", "sk-plain-ke"},
	} {
		got := clean(test.text)
		if got != test.want {
			t.Errorf("%q became %q, want %q", test.text, got, test.want)
		}
		if again := clean(got); again != got {
			t.Errorf("%q redacted twice is %q", got, again)
		}
	}
	if redactor(nil) != nil {
		t.Error("without keys there is a redactor")
	}
}

func TestKnownKeys(t *testing.T) {
	env := map[string]string{"GEMINI_API_KEY": "the-gemini-key", "GOOGLE_API_KEY": "the-google-key", "OPENAI_API_KEY": "short",
		"ANTHROPIC_BASE_URL": "https://me:its-password@gate"}
	got := strings.Join(knownKeys(func(k string) string { return env[k] }, "http://u:another-password@box"), " ")
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
	if got := strings.Join(without(names, []string{"B", "D"}), ""); got != "AC" || names[1] != "B" {
		t.Errorf("got %s, and %v is left of the names", got, names)
	}
}
