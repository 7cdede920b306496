package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox/wall"
)

const (
	broken = "package p\n\nimport \"fmt\"\n\nfunc hello() { fmt.Printf(\"%d\\n\", \"hello\") }\n"
	token  = "ghp" + "_Zq3mP7xK9vB2nR5tW8yL4cD6fH1jS0gAuEiQ"
)

const replies = `=== reply when="wrong type" ===
=== call read ===
{"path": "p.go"}
=== call edit ===
{"path": "p.go", "edits": [{"oldText": "%d", "newText": "%s"}]}
=== reply ===
The verb was wrong.
`

// TestFixlint lets the program fix a module, with replies of a script in a model's place.
func TestFixlint(t *testing.T) {
	dir := module(t)
	write(t, dir, "replies", replies)
	write(t, dir, ".config/hone.toml", "[sandbox]\nwall = \"none\"\n")
	trusted := sha256.Sum256([]byte(`.config/hone.toml: sandbox.wall = "none"`))
	fix(t, dir, "HONE_MODEL=script/"+filepath.Join(dir, "replies"), fmt.Sprintf("HONE_TRUST=%x", trusted))
}

// TestWalls lets a model of a server read what it must not see. The program has no line
// that prevents it.
func TestWalls(t *testing.T) {
	if len(wall.Kinds()) == 0 {
		t.Skip("SKIPPED: this system has no walls")
	}
	dir, outside := module(t), t.TempDir()
	write(t, dir, ".env", "API_TOKEN="+token+"\n")
	write(t, outside, "private.txt", "private words\n")
	server := &model{replies: []string{
		call("bash", map[string]any{"command": "cat " + filepath.Join(outside, "private.txt") + "; cat .env; echo ran"}),
		call("read", map[string]any{"path": ".env"}),
		call("read", map[string]any{"path": "p.go"}),
		call("edit", map[string]any{"path": "p.go", "edits": []any{map[string]string{"oldText": "%d", "newText": "%s"}}}),
		`{"content": "The verb was wrong."}`,
	}}
	listening := httptest.NewServer(server)
	defer listening.Close()
	fix(t, dir, "HONE_MODEL=openai/any", "OPENAI_BASE_URL="+listening.URL, "OPENAI_API_KEY=")
	requests := strings.Join(server.requests, "\n")
	if len(server.requests) != len(server.replies) {
		t.Errorf("%d requests, want %d, and none of the second run", len(server.requests), len(server.replies))
	}
	for _, hidden := range []string{token, "private words"} {
		if strings.Contains(requests, hidden) {
			t.Errorf("a request contains %q", hidden)
		}
	}
	if !strings.Contains(requests, `STDOUT:\nran\n`) {
		t.Errorf("the command did not run:\n%s", requests)
	}
}

// fix builds the program and runs it twice in a module. The second run has nothing to fix.
func fix(t *testing.T, dir string, environ ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "fixlint")
	// The settings of make build, whose packages are compiled already.
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	state := t.TempDir()
	for _, want := range []string{"The verb was wrong.\ndone: the check passes\n", "done: the check already passes\n"} {
		run := exec.Command(program)
		run.Dir, run.Env = dir, append(append(os.Environ(), "XDG_STATE_HOME="+state), environ...)
		if out, err := run.CombinedOutput(); err != nil || string(out) != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, out, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "p.go")); err != nil || string(text) != strings.Replace(broken, "%d", "%s", 1) {
		t.Fatalf("%v\n%s", err, text)
	}
}

// module returns the directory of a module that go vet complains about.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module p\n")
	write(t, dir, "p.go", broken)
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// model is a server with OpenAI's wire format. It gives its replies in order, and keeps
// the requests.
type model struct{ replies, requests []string }

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := io.ReadAll(r.Body)
	if err != nil || len(m.requests) == len(m.replies) {
		http.Error(w, "one request too many", http.StatusBadRequest)
		return
	}
	reply, finish := m.replies[len(m.requests)], "stop"
	if strings.Contains(reply, "tool_calls") {
		finish = "tool_calls"
	}
	m.requests = append(m.requests, string(request))
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\": [{\"index\": 0, \"delta\": %s, \"finish_reason\": %q}]}\n\ndata: [DONE]\n\n", reply, finish)
}

// call returns a reply that calls a tool.
func call(tool string, arguments map[string]any) string {
	text, _ := json.Marshal(arguments)
	return fmt.Sprintf(`{"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": {"name": %q, "arguments": %q}}]}`, tool, text)
}
