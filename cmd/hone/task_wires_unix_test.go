//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/model"
	"hone/model/modeltest"
)

// TestTaskOverEachWire: a task on a real Go repository, over each provider's
// protocol with parallel calls. The first session leaves a failing test, the
// reviewer lists it as pending, and the second fixes it.
func TestTaskOverEachWire(t *testing.T) {
	skipShort(t)
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, wire := range providerWires() {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, addReplies()...)
			dir := goRepository(t, strings.TrimSpace(string(cache)))
			args := append([]string{"task", "TASK.toml", "--check", "go test ./...", "--sandbox", "auto"}, wire.flags(s.URL)...)
			exit, out := honeIn(t, dir, []string{"GOCACHE=" + strings.TrimSpace(string(cache))}, args...)
			if exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, out)
			}
			for _, want := range []string{"done: go test ./... passes (2 rounds", "completed 2/5 loop(s)"} {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			received := s.Received()
			if len(received) != len(addReplies()) {
				t.Fatalf("%d requests, want %d", len(received), len(addReplies()))
			}
			for _, r := range received {
				if !strings.Contains(r.Path, wire.path) {
					t.Errorf("a request to %s", r.Path)
				}
			}
			// The model got the results of parallel calls in order and the
			// failing test, and the second session got the reviewer's item.
			checkOrder(t, received[1].Body, "a - b", "want 5", "add.go", "add_test.go")
			checkOrder(t, received[2].Body, "the check reports 1 finding", "add_test.go", "want 5")
			checkOrder(t, received[3].Body, "FAIL")
			checkOrder(t, received[5].Body, "fix Add: it multiplies")
		})
	}
}

// providerWire is how a provider's protocol is selected and recognized.
type providerWire struct{ model, base, wire, path string }

func providerWires() map[string]providerWire {
	return map[string]providerWire{
		"gemini":    {"gemini/gemini-2.5-pro", "", "", ":streamGenerateContent"},
		"anthropic": {"anthropic/claude-sonnet-5", "", "", "/v1/messages"},
		"chat":      {"openai/some-model", "/v1", "chat", "/chat/completions"},
		"responses": {"openai/gpt-5.4", "/v1", "responses", "/responses"},
	}
}

func (w providerWire) flags(url string) []string {
	flags := []string{"-m", w.model, "--base-url", url + w.base}
	if w.wire != "" {
		flags = append(flags, "--wire", w.wire)
	}
	return flags
}

// TestUselessReviewsOverEachWire: a review that is missing, unreadable, from the
// last loop or in another file does not count (ruling S4). The pending items of
// the execution stay, and the next loop does them.
func TestUselessReviewsOverEachWire(t *testing.T) {
	skipShort(t)
	t.Parallel()
	const place = ".codescribe/loop/review_output.toml"
	for what, call := range map[string][2]string{
		"nothing":    {},
		"garbage":    {place, "= {{ not TOML"},
		"old number": {place, "loop = 0\nsummary = \"\"\nblocker = \"\"\n"},
		"elsewhere":  {"a.txt", "loop = 1\nsummary = \"\"\nblocker = \"\"\n"},
	} {
		for name, wire := range providerWires() {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				turns := reviewReplies(call[0], call[1])
				s := modeltest.NewServer(t, turns...)
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				args := append([]string{"task", "Make a.txt say two.", "--check", "grep -q two a.txt", "--sandbox", "none"}, wire.flags(s.URL)...)
				exit, out := honeIn(t, dir, nil, args...)
				if text, _ := os.ReadFile(filepath.Join(dir, "a.txt")); exit != 0 || string(text) != "two\n" {
					t.Fatalf("exit status %d, a.txt says %q\n%s", exit, text, out)
				}
				received := s.Received()
				if len(received) != len(turns) {
					t.Fatalf("%d requests, want %d\n%s", len(received), len(turns), out)
				}
				checkOrder(t, received[len(turns)-3].Body, "Pending next steps", "say two at last")
				if !strings.Contains(out, "loop 1 has no review") {
					t.Errorf("it does not say that there was no review:\n%s", out)
				}
			})
		}
	}
}

// reviewReplies returns the replies of a run whose review is written to a file,
// or nowhere if file is empty.
func reviewReplies(file, content string) []modeltest.Turn {
	use := &model.Usage{Input: 100, Output: 10}
	say := func(text string) modeltest.Turn {
		return modeltest.Turn{Usage: use, Text: "<final_answer>\n" + text + "\n</final_answer>"}
	}
	call := func(name, args string) modeltest.Turn {
		return modeltest.Turn{Usage: use, Calls: []model.Call{{ID: "call_" + name, Name: name, Args: args}}}
	}
	turns := []modeltest.Turn{call("read", `{"path":"a.txt"}`), say("STATUS: INCOMPLETE\nNEXT STEPS:\n- say two at last")}
	if file != "" {
		turns = append(turns, call("write", fmt.Sprintf(`{"path":%q,"content":%q}`, file, content)))
	}
	return append(turns, say("Reviewed."), say("Reviewed."), call("read", `{"path":"a.txt"}`),
		call("edit", `{"path":"a.txt","edits":[{"oldText":"one","newText":"two"}]}`), say("STATUS: COMPLETE"))
}

// checkOrder checks that a request contains these words in this order.
func checkOrder(t *testing.T, body []byte, words ...string) {
	t.Helper()
	rest := body
	for _, w := range words {
		i := bytes.Index(rest, []byte(w))
		if i < 0 {
			t.Errorf("%q is missing, or not in its place, in %d bytes:\n%.3000s", w, len(body), body)
			return
		}
		rest = rest[i:]
	}
}

// goRepository returns a module whose test fails. Commands share the machine's
// build cache, because an empty one takes most of a minute to fill.
func goRepository(t *testing.T, cache string) string {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".config"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".config/hone.toml": fmt.Sprintf("[sandbox]\nwrite = [%q]\nenv = [\"GOCACHE\"]\n", cache),
		"go.mod":            "module sum\n\ngo 1.26\n",
		"add.go":            "package sum\n\n// Add adds.\nfunc Add(a, b int) int { return a - b }\n",
		"add_test.go":       "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(2, 3); got != 5 {\n\t\tt.Errorf(\"got %d, want 5\", got)\n\t}\n}\n",
		"TASK.toml":         "[tools]\nbash = [\"go\"]\n\n[[chat.user]]\ncontent = '''\nMake the tests pass.\n'''\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	trustAll(t, dir)
	c := exec.Command("git", "init", "-q", "-b", "main", "--template=")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, out)
	}
	return dir
}

// addReplies returns the replies of executor and reviewer.
func addReplies() []modeltest.Turn {
	use := &model.Usage{Input: 100, Output: 10}
	n := 0
	call := func(name, args string) model.Call {
		n++
		return model.Call{ID: fmt.Sprintf("call_%d", n), Name: name, Args: args}
	}
	edit := func(from, to string) model.Call {
		return call("edit", fmt.Sprintf(`{"path":"add.go","edits":[{"oldText":%q,"newText":%q}]}`, from, to))
	}
	test := func() model.Call { return call("bash", `{"command":"go test ./..."}`) }
	review := "loop = 1\nsummary = \"the test fails\"\nblocker = \"\"\n\n[[pending]]\nitem = \"fix Add: it multiplies\"\n"
	return []modeltest.Turn{
		{Usage: use, Text: "I look.", Calls: []model.Call{call("read", `{"path":"add.go"}`), call("read", `{"path":"add_test.go"}`), call("glob", `{"pattern":"*.go"}`)}},
		{Usage: use, Calls: []model.Call{edit("a - b", "a * b"), test()}},
		{Usage: use, Text: "<final_answer>\nSTATUS: INCOMPLETE\nThe test says FAIL.\nNEXT STEPS:\n- look again\n</final_answer>"},
		{Usage: use, Calls: []model.Call{call("bash", `{"command":"grep -n return add.go"}`), call("write", fmt.Sprintf(`{"path":".codescribe/loop/review_output.toml","content":%q}`, review))}},
		{Usage: use, Text: "<final_answer>Reviewed.</final_answer>"},
		{Usage: use, Calls: []model.Call{call("read", `{"path":"add.go"}`)}},
		{Usage: use, Calls: []model.Call{edit("a * b", "a + b"), test()}},
		{Usage: use, Text: "<final_answer>\nSTATUS: COMPLETE\nok\n</final_answer>"},
	}
}

// honeIn runs the program in a directory.
func honeIn(t *testing.T, dir string, env []string, args ...string) (exit int, output string) {
	t.Helper()
	c := exec.Command("hone", args...)
	c.Dir = dir
	c.Env = append(append(os.Environ(), env...), "GEMINI_API_KEY=test-key-gemini", "ANTHROPIC_API_KEY=test-key-anthropic", "OPENAI_API_KEY=test-key-openai", promptExit)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}
