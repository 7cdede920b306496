package harness

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hone/loop"
)

// TestProbeAsksForTheModels runs a server of each kind. It checks where the
// server is asked for its models, with which key, and what its response means.
func TestProbeAsksForTheModels(t *testing.T) {
	for _, test := range []struct {
		model, path, header, value string
		status                     int
		want                       string // empty: the provider is there
	}{
		{"openai/m", "/v1/models", "Authorization", "Bearer the-key", 200, ""},
		{"openai/m", "/v1/models", "Authorization", "Bearer the-key", 401, "auth (HTTP 401)"},
		{"openai/m", "/v1/models", "Authorization", "Bearer the-key", 404, ""},
		{"openai/m", "/v1/models", "Authorization", "Bearer the-key", 503, "overloaded (HTTP 503)"},
		{"openai/m", "/v1/models", "Authorization", "Bearer the-key", 302, "invalid: the server redirects"},
		{"ollama/m", "/v1/models", "Authorization", "", 200, ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != test.path || r.Header.Get(test.header) != test.value {
				t.Errorf("%s: asked for %s with %s: %q", test.model, r.URL.Path, test.header, r.Header.Get(test.header))
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte("{}"))
		}))
		env := map[string]string{"OPENAI_API_KEY": "the-key",
			"OPENAI_BASE_URL": s.URL + "/v1", "OLLAMA_HOST": strings.TrimPrefix(s.URL, "http://")}
		p, err := (Host{Getenv: func(k string) string { return env[k] }}).Prober(loop.Model{Name: test.model})
		if err != nil {
			t.Fatal(err)
		}
		switch err := p.Probe(t.Context()); {
		case test.want == "" && err != nil:
			t.Errorf("%s, HTTP %d: %v", test.model, test.status, err)
		case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)):
			t.Errorf("%s, HTTP %d: %v, want %s", test.model, test.status, err, test.want)
		}
		s.Close()
	}
}

// An address without a server is unreachable, and the error does not contain
// its password.
func TestProbeOfNobody(t *testing.T) {
	env := map[string]string{"OPENAI_BASE_URL": "http://me:a-password@127.0.0.1:1/v1"}
	p, err := (Host{Getenv: func(k string) string { return env[k] }}).Prober(loop.Model{Name: "openai/m"})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Probe(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "unreachable: ") || strings.Contains(err.Error(), "a-password") {
		t.Errorf("got %v", err)
	}
	if p, err := (Host{Getenv: func(string) string { return "" }}).Prober(loop.Model{Name: "script/probe_test.go"}); err == nil || p != nil {
		t.Errorf("a file that is no script: %v, %v", p, err)
	}
}
