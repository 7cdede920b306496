package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/sandbox"
)

func TestCodescribeArgs(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"task T.toml -nloop 3 -niter 4", "task T.toml --agent-loops 3 --agent-iterations 4"},
		{"task -nloop=3 T.toml -niter=4", "task --agent-loops=3 T.toml --agent-iterations=4"},
		{"task -nloop= T.toml", "task --agent-loops= T.toml"},
		{"task -nloop=a=b", "task --agent-loops=a=b"},
		{"task -- -nloop 3", "task -- -nloop 3"},
		{"task -niter 4 -- -nloop=3", "task --agent-iterations 4 -- -nloop=3"},
		{"task -nloops 3 --nloop -n -m=x", "task -nloops 3 --nloop -n -m=x"},
		{"reconcile -nloop 3", "reconcile -nloop 3"},
		{"prompt task -nloop 3", "prompt task -nloop 3"},
		{"", ""},
	} {
		args := strings.Fields(test.args)
		if diff := cmp.Diff(strings.Fields(test.want), codescribeArgs(args)); diff != "" {
			t.Errorf("%s: %s", test.args, diff)
		}
		if strings.Join(args, " ") != test.args {
			t.Errorf("%s was changed to %q", test.args, args)
		}
	}
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
		got, err := codescribeModel(name)
		var wrong *hone.UsageError
		switch {
		case want == "" && (!errors.As(err, &wrong) || wrong.Hint == ""):
			t.Errorf("%s: %q, %v; want it refused with a hint", name, got, err)
		case want != "" && (err != nil || got != want):
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestTaskModelPrecedence(t *testing.T) {
	env := map[string]string{}
	a := &app{env: func(name string) string { return env[name] }}
	want := func(flag, want string) {
		t.Helper()
		if got, err := a.taskModel(flag); got != want || err != nil {
			t.Errorf("%q and %v: %q, %v; want %q", flag, env, got, err, want)
		}
	}
	want("", "")
	env["CODESCRIBE_MODEL"] = "openai-a"
	want("", "openai/a")
	env["HONE_MODEL"] = "openai/b"
	want("", "openai/b")
	want("openai-c", "openai/c")
}

// TestNoWalls: without walls to be had, a person is told how to go without.
func TestNoWalls(t *testing.T) {
	var stop *hone.Stop
	err := noWalls(t.Context(), &sandbox.WallError{Wall: sandbox.Auto, Reason: "none", Next: "hone doctor"})
	if !errors.As(err, &stop) || stop.Kind != hone.KindFailed || !strings.Contains(stop.Next.Or, "--sandbox none") {
		t.Errorf("%+v", err)
	}
	err = noWalls(t.Context(), &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: "none", Next: "install it"})
	if !errors.As(err, &stop) || stop.Next.First != "install it" {
		t.Errorf("%+v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := noWalls(cancelled, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestReadOnly(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	link := filepath.Join(outside, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(root, "in"), 0o755), os.Symlink(filepath.Join(root, "in"), link)); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	p := sandbox.Policy{Write: []string{root, filepath.Join(root, "in"), link, outside, root + "-beside"}, Read: []string{"/usr"}}
	readOnly(&p, root)
	if diff := cmp.Diff(sandbox.Policy{Write: []string{outside, root + "-beside"}, Read: []string{"/usr", root}}, p); diff != "" {
		t.Error(diff)
	}
}

func TestInFolder(t *testing.T) {
	root := t.TempDir()
	for at, want := range map[string]bool{
		".codescribe": true, ".codescribe/loop/run.toml": true, "./.codescribe": true, "a/../.codescribe/x": true, ".CodeScribe/x": true,
		filepath.Join(root, ".codescribe", "x"): true, "../.codescribe": true,
		"": false, ".": false, "a": false, "a/.codescribe": false, ".codescribed": false, filepath.Join(root, "a"): false,
	} {
		if got := inFolder(root, taskFolder, at); got != want {
			t.Errorf("%q: %v", at, got)
		}
	}
}

// TestTreeWithout: agents do not find the loop's own files, in a repository or
// out of one.
func TestTreeWithout(t *testing.T) {
	plain, repo := t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	for _, dir := range []string{plain, repo} {
		for _, name := range []string{".codescribe/loop/run.toml", "sub/.codescribe/x", "sub/a", ".hone/runs/x"} {
			if err := put(dir, name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := treeWithout(dir, taskFolder)
		if err != nil {
			t.Fatal(err)
		}
		files, err := tree.Files(t.Context())
		tree.Close()
		var names []string
		for _, f := range files {
			names = append(names, f.Path)
		}
		if err != nil || slices.Contains(names, ".codescribe/loop/run.toml") || !slices.Contains(names, "sub/a") || !slices.Contains(names, "sub/.codescribe/x") {
			t.Errorf("%s: %q, %v", dir, names, err)
		}
	}
}
