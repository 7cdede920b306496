package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/tool/allow"
)

// canned is a runner that records the command and returns a fixed result.
type canned struct {
	got    sandbox.Command
	result sandbox.Result
	err    error
}

func (c *canned) Run(_ context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	c.got = cmd
	return c.result, c.err
}

func bashInput(t *testing.T, command string, seconds int) Input {
	t.Helper()
	args := map[string]any{"command": command}
	if seconds != 0 {
		args["timeout"] = seconds
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Args: text}
}

func callBash(t *testing.T, r sandbox.Runner, c BashConfig, command string, seconds int) Result {
	t.Helper()
	got, err := Bash(r, c).Run(t.Context(), bashInput(t, command, seconds))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func listConfig(dir string) BashConfig {
	return BashConfig{Lines: allow.Lines{Programs: append(allow.ExecutionPrograms(), "sleep"), Dir: dir}, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}}
}

func TestBashRuns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "sub/x.go"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, shell := range []string{"bash", "sh"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		c := listConfig(dir)
		c.Shell = shell
		for command, want := range map[string]string{
			"echo hello":                         "exit_code: 0\nSTDOUT:\nhello",
			"echo hello | wc -l | grep -c 1":     "exit_code: 0\nSTDOUT:\n1",
			"cd sub && ls *.go && pwd >&2":       "exit_code: 0\nSTDOUT:\nx.go\nSTDERR:\n" + dir + "/sub",
			"test -f none":                       "exit_code: 1",
			"for f in *.go go.*; do ls $f; done": "Error: not allowed: ",
			"wc -l":                              "exit_code: 0\nSTDOUT:\n0", // no standard input
			"id":                                 "Error: command not allowed: 'id' (allowed: ",
		} {
			got := callBash(t, wall.None{}, c, command, 0)
			text := strings.ReplaceAll(got.Text, unlinked(t, dir), dir)
			refused := strings.HasPrefix(want, "Error: ")
			if refused != got.Failed || refused && !strings.HasPrefix(text, want) || !refused && text != want || refused != (got.Exit == nil) {
				t.Errorf("%s: %q: got %+v", shell, command, got)
			}
		}
	}
}

func unlinked(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBashTimesOut(t *testing.T) {
	dir := t.TempDir()
	got := callBash(t, wall.None{Grace: time.Millisecond}, listConfig(dir), "echo before; sleep 600", 5)
	want := "Error: the command timed out after 5s; it and all processes that it started were killed.\nexit_code: -1\nSTDOUT:\nbefore"
	if got.Text != want || !got.Failed {
		t.Errorf("got %q", got.Text)
	}
	got = callBash(t, wall.None{Grace: time.Millisecond}, listConfig(dir), "sleep 600", 1)
	if !strings.Contains(got.Text, "\nNOTE: the command printed nothing. It may hang, or it may still have been compiling: ") {
		t.Errorf("got %q", got.Text)
	}
}

func TestBashCommand(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  BashConfig
		seconds int
		want    time.Duration
	}{
		{"default", BashConfig{}, 0, 2 * time.Minute},
		{"less", BashConfig{}, 5, 5 * time.Second},
		{"more than the maximum", BashConfig{}, 600, 2 * time.Minute},
		{"up to the maximum", BashConfig{MaxTimeout: time.Hour}, 600, 10 * time.Minute},
		{"overflow", BashConfig{MaxTimeout: time.Hour}, 1 << 40, time.Hour},
		{"maximum below the default", BashConfig{Timeout: time.Hour, MaxTimeout: time.Minute}, 0, time.Minute},
	} {
		r := &canned{}
		tt.config.Lines, tt.config.Env, tt.config.Shell = allow.Lines{Dir: "/srv/x"}, []string{"A=b"}, "bash"
		callBash(t, r, tt.config, "-x && $(any)", tt.seconds)
		want := sandbox.Command{Argv: []string{"bash", "-c", "--", "-x && $(any)"}, Dir: "/srv/x", Env: []string{"A=b"}, Timeout: tt.want, MaxOutput: 1 << 20}
		if diff := cmp.Diff(want, r.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBashResult(t *testing.T) {
	redact := func(text string) string { return strings.ReplaceAll(text, "k3y", "[redacted]") }
	const head = "exit_code: 1\nSTDERR:\n"
	for _, tt := range []struct {
		name   string
		config BashConfig
		result sandbox.Result
		want   string
	}{
		{"odd bytes and a key", BashConfig{Redact: redact}, sandbox.Result{Stdout: []byte("a\xffk3y"), Stderr: []byte("k3y")},
			"exit_code: 0\nSTDOUT:\na\uFFFD[redacted]\nSTDERR:\n[redacted]"},
		{"network", BashConfig{}, sandbox.Result{Exit: 1, Stderr: []byte("could not resolve host")},
			head + "could not resolve host\nNOTE: commands have no network access, and only the user can enable it. Work without it, or say in your answer what needs it."},
		{"network open", BashConfig{Net: true}, sandbox.Result{Exit: 1, Stderr: []byte("could not resolve host")}, head + "could not resolve host"},
		{"network, but fine", BashConfig{}, sandbox.Result{Stdout: []byte("dial udp")}, "exit_code: 0\nSTDOUT:\ndial udp"},
		{"limit", BashConfig{}, sandbox.Result{Exit: -1, Signal: "killed", OverLimit: "memory"},
			"exit_code: -1\nNOTE: the command was killed because it exceeded its limit of memory."},
		{"signal", BashConfig{}, sandbox.Result{Exit: -1, Signal: "killed"}, "exit_code: -1\nNOTE: the command was killed by a signal: killed."},
		{"lost", BashConfig{}, sandbox.Result{Exit: 1, Discarded: 7}, "exit_code: 1\nNOTE: 7 more bytes of output followed and were discarded; print less."},
		{"restored", BashConfig{Redact: redact}, sandbox.Result{Exit: 1, Restored: []sandbox.Restored{{Path: "/w/.git/config"}, {Path: "/w/k3y", NotRestored: "it is gone"}}},
			"exit_code: 1\nNOTE: /w/.git/config is protected: the command's change to it was undone." +
				"\nNOTE: /w/[redacted] is protected, and the command changed it: it is gone"},
	} {
		got := callBash(t, &canned{result: tt.result}, tt.config, "x", 0)
		if diff := cmp.Diff(tt.want, got.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if got.Failed || got.Exit == nil || *got.Exit != tt.result.Exit {
			t.Errorf("%s: failed %v, exit %v", tt.name, got.Failed, got.Exit)
		}
	}
}

func TestBashFaults(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user left")
	cancel(gone)
	tool := Bash(&canned{}, BashConfig{})
	if _, err := tool.Run(ctx, bashInput(t, "x", 0)); !errors.Is(err, gone) {
		t.Errorf("canceled: %v", err)
	}
	broken := errors.New("no shell")
	if _, err := Bash(&canned{err: broken}, BashConfig{}).Run(t.Context(), bashInput(t, "x", 0)); !errors.Is(err, broken) {
		t.Errorf("not started: %v", err)
	}
	got, err := tool.Run(t.Context(), Input{Args: json.RawMessage(`{`)})
	if err != nil || !got.Failed {
		t.Errorf("bad arguments: %+v, %v", got, err)
	}
}

// What a check means comes first. If it says all, it and the notes are the head of the text.
func TestBashVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		says       string
		all        bool
		out        string
		head, rest string
	}{
		"understood":     {"the check passes", true, "fine\n", "exit_code: -1; the check passes\nNOTE: the command was killed by a signal: killed.", "\nSTDOUT:\nfine"},
		"no output":      {"the check passes", true, "", "exit_code: -1; the check passes\nNOTE: the command was killed by a signal: killed.", ""},
		"not understood": {"the check fails", false, "odd\n", "", "exit_code: -1; the check fails\nSTDOUT:\nodd\nNOTE: the command was killed by a signal: killed."},
	} {
		c := BashConfig{Lines: allow.Lines{Programs: []string{}, Always: []string{"make check"}},
			Verdict: func(string) func(sandbox.Result) Verdict {
				return func(sandbox.Result) Verdict { return Verdict{Text: tt.says, All: tt.all} }
			}}
		got := callBash(t, &canned{result: sandbox.Result{Exit: -1, Signal: "killed", Stdout: []byte(tt.out)}}, c, "make check", 0)
		if head, rest := got.Parts(); head != tt.head || rest != tt.rest {
			t.Errorf("%s: %q, %q", name, head, rest)
		}
		if got := callBash(t, &canned{result: sandbox.Result{Discarded: 7}}, c, "make check", 0); !strings.Contains(got.Text, "NOTE: 7 more bytes of output followed and were discarded.") {
			t.Errorf("%s, discarded: %q", name, got.Text)
		}
		got.Add("\n[more]")
		head, rest := got.Parts()
		if tt.all && (head != tt.head+"\n[more]" || rest != tt.rest) || !tt.all && head+rest != tt.rest+"\n[more]" {
			t.Errorf("%s, with more: %q, %q", name, head, rest)
		}
	}
}

// A call may ask to end the session with a check that passes. Only a line with a verdict can.
func TestBashLast(t *testing.T) {
	run := func(args string, v *Verdict) Result {
		c := BashConfig{}
		if v != nil {
			c.Lines.Always = []string{"make check"}
			c.Verdict = func(string) func(sandbox.Result) Verdict { return func(sandbox.Result) Verdict { return *v } }
		}
		got, err := Bash(&canned{}, c).Run(t.Context(), Input{Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const last = `{"command": "make check", "last": true}`
	passed, fails := &Verdict{Text: "the check passes", Passed: true}, &Verdict{Text: "the check passes with the changes to a_test.go"}
	if !run(last, passed).Ends {
		t.Error("a check that passes did not end the session")
	}
	for args, v := range map[string]*Verdict{`{"command": "make check"}`: passed, last: fails, `{"command": "ls", "last": true}`: passed} {
		if got := run(args, v); got.Ends || got.Failed || strings.Contains(args, "last") != strings.Contains(got.Text, "\nNOTE: the session goes on: ") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run(last, nil); !got.Failed || !strings.Contains(got.Text, "last") {
		t.Errorf("without a check: %+v", got)
	}
}

func TestBashDescription(t *testing.T) {
	free := Bash(&canned{}, BashConfig{})
	held := Bash(&canned{}, BashConfig{Lines: allow.Lines{Programs: allow.ReviewPrograms(), Always: []string{"make check"}, ReadOnly: true}})
	if strings.Contains(free.Description, "Allowed programs") || !strings.Contains(free.Description, "(default 120, maximum 120)") {
		t.Errorf("without a list:\n%s", free.Description)
	}
	if !strings.Contains(held.Description, "ls, stat, pwd, find, grep, head, tail, which, env, rg.") || !strings.Contains(held.Description, "/dev/null") ||
		!strings.Contains(held.Description, "exact line is always allowed, without additions: `make check`.") {
		t.Errorf("review:\n%s", held.Description)
	}
	if !held.RunsCommands || held.ReadOnly || held.Name != "bash" || !json.Valid(held.Schema) {
		t.Errorf("spec: %+v", held)
	}
	for check, want := range map[string]string{
		"cd x && go vet ./...":          "Also `rm FILE`, `go doc`, `go list -m`. ",
		"python3 -m pytest && npm test": "Also `rm FILE`, `npm ls`, `pip show`. ",
		"make cargo":                    "Also `rm FILE`. ",
	} {
		of := Bash(&canned{}, BashConfig{Lines: allow.Lines{Programs: []string{"ls"}, Always: []string{check}, Walled: true}})
		if !strings.Contains(of.Description, "Allowed programs: ls. "+want) {
			t.Errorf("%s: %q is not in\n%s", check, want, of.Description)
		}
	}
	refused := callBash(t, wall.None{}, BashConfig{Lines: allow.Lines{Programs: []string{"ls"}, Always: []string{"make check"}}}, "make -v check", 0)
	if want := "). No part of the line was run. This exact line is always allowed, without additions: `make check`."; !strings.HasSuffix(refused.Text, want) {
		t.Errorf("%q does not end with %q", refused.Text, want)
	}
}
