//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP: an agent starts a fix, loses its connection, finds the run again, looks at it and
// undoes it. It can change neither limits nor walls, and can undo no run of the user.
func TestMCP(t *testing.T) {
	dir := t.TempDir()
	replies := filepath.Join(t.TempDir(), "replies")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "a.txt"), "bad\n")
	put(replies, "=== reply ===\n=== call write ===\n{\"path\": \"b.txt\", \"content\": \"good\\n\"}\n=== reply ===\nDone.\n")
	put(replies+"-user", "=== reply ===\n=== call write ===\n{\"path\": \"c.txt\", \"content\": \"good\\n\"}\n=== reply ===\nDone.\n")
	if exit, out := honeIn(t, dir, nil, "fix", "-q", "-m", "script/"+replies+"-user", "--sandbox", "none", "--check", "test -f c.txt"); exit != 0 {
		t.Fatal(out)
	}

	var progress atomic.Int64
	connect := func() *mcp.ClientSession {
		t.Helper()
		server := exec.Command("hone", "mcp", "-C", dir, "--", "-m", "script/"+replies, "--sandbox", "none")
		client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress.Add(1) }})
		session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: server}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	session := connect()
	call := func(tool string, args map[string]any, want string, fails bool) string {
		t.Helper()
		params := &mcp.CallToolParams{Name: tool, Arguments: args}
		params.SetProgressToken(tool)
		r, err := session.CallTool(t.Context(), params)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError != fails || !strings.Contains(text, want) {
			t.Fatalf("%s %v: error %t, want %t and %q:\n%s", tool, args, r.IsError, fails, want, text)
		}
		return text
	}

	call("check", map[string]any{"check": "cat a.txt; exit 1"}, "bad", false)
	call("check", map[string]any{"check": "seq 99; exit 1"}, "    1\n    2\n", false)
	call("check", nil, "there is no check to run", true)
	for _, flag := range []string{"--sandbox=none", "--net", "--trust", "--approve=all", "--max-tokens=9", "--rounds=99", "--attempts=4", "--judge=free", "--flaky=9", "--prove=off", "--check-format=%f", "--reasoning=high", "--allow=curl", "--turns=900", "--model=a/b", "--base-url=http://x"} {
		name, _, _ := strings.Cut(flag, "=")
		call("start", map[string]any{"loop": "fix", "args": []string{flag}}, "only the user can give "+name+",", true)
	}
	call("start", map[string]any{"loop": "fix", "args": []string{"--", "text"}}, `"text" is not a flag`, true)
	call("start", map[string]any{"loop": "phase"}, `"phase" is not a loop`, true)
	call("start", map[string]any{"loop": "fix", "args": []string{"--chek", "x"}}, "unknown flag: --chek", true)

	check := "sleep 1; echo working; test -f b.txt"
	started := call("start", map[string]any{"loop": "fix", "text": "please", "args": []string{"--check", check}}, "has started", false)
	run := regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]+`).FindString(started)
	session.Close()

	session = connect()
	defer session.Close()
	short := run[len(run)-6:]
	call("show", nil, short, false)
	call("wait", map[string]any{"run": run, "seconds": 300}, "b.txt", false)
	if progress.Load() == 0 {
		t.Error("there was no progress")
	}
	call("show", map[string]any{"run": run, "diff": true}, "+good", false)
	call("stop", map[string]any{"run": short}, "has ended already", false)
	for _, line := range strings.Split(call("show", nil, "", false), "\n")[1:] {
		if id, _, _ := strings.Cut(line, " "); id != short && len(id) == len(short) {
			call("undo", map[string]any{"run": id}, "has not started run "+id, true)
			call("stop", map[string]any{"run": id}, "has not started run "+id, true)
		}
	}
	call("undo", map[string]any{"run": short}, "b.txt", false)
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); !os.IsNotExist(err) {
		t.Errorf("b.txt is still there: %v", err)
	}
}
