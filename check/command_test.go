//go:build unix

package check

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"hone/sandbox/wall"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
)

// runner does not wait long for processes that ignore a signal to stop.
var runner = wall.None{Grace: 50 * time.Millisecond}

func ask(t *testing.T, f Func) []Finding {
	t.Helper()
	found, err := f(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func command(t *testing.T, cmd string) CommandConfig {
	t.Helper()
	return CommandConfig{Command: cmd, Program: Program{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute}}
}

func TestCommand(t *testing.T) {
	for name, c := range map[string]struct {
		command, text string
		broken        bool
	}{
		"success":               {command: "echo fine; true"},
		"a bad word and then 0": {command: "no-such-program; true"},
		"failure": {command: "echo out; echo err >&2; echo more; exit 7",
			text: "The check command failed: exit status 7.\n\n    echo out; echo err >&2; echo more; exit 7\n\nIts output:\n\nout\nerr\nmore\n"},
		"no output": {command: "exit 1",
			text: "The check command failed: exit status 1.\n\n    exit 1\n\nIts output: (empty)\n"},
		"several lines": {command: "true\nfalse\n",
			text: "The check command failed: exit status 1.\n\n    true\n    false\n\nIts output: (empty)\n"},
		"not UTF-8": {command: `printf 'a\377b\n'; exit 1`,
			text: "The check command failed: exit status 1.\n\n    printf 'a\\377b\\n'; exit 1\n\nIts output:\n\na\uFFFDb\n"},
		"a signal": {command: "kill -9 $$",
			text: "The check command failed: it was killed by a signal (killed).\n\n    kill -9 $$\n\nIts output: (empty)\n"},
		"no such program": {command: "no-such-program 2>/dev/null", broken: true,
			text: "The check command could not run: exit status 127 means that the program does not exist or is not executable.\n\n    no-such-program 2>/dev/null\n\nIts output: (empty)\n"},
		"no program": {command: "/ 2>/dev/null", broken: true,
			text: "The check command could not run: exit status 126 means that the program does not exist or is not executable.\n\n    / 2>/dev/null\n\nIts output: (empty)\n"},
		"the shell's own words": {command: "echo a\nif", text: "yntax error", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			found := ask(t, Command(runner, command(t, c.command)))
			if name == "the shell's own words" {
				if len(found) != 1 || !found[0].Broken || !strings.Contains(found[0].Text, "yntax error") {
					t.Errorf("%+v", found)
				}
				return
			}
			var want []Finding
			if c.text != "" {
				want = []Finding{{Source: "check", Text: c.text, Broken: c.broken}}
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the shell cannot parse is not the tree's fault; what a script says is.
func TestCommandSyntax(t *testing.T) {
	for line, broken := range map[string]bool{
		"if": true, `echo "a`: true, "for x in; done done": true, "echo a; )": true,
		`printf 'if\n' >script; sh script`: false, `echo "a.c:1: syntax error"; exit 2`: false, `echo "unexpected EOF"; exit 2`: false,
	} {
		found := ask(t, Command(runner, command(t, line)))
		if len(found) != 1 || found[0].Broken != broken || strings.Contains(found[0].Text, "cannot read it") != broken {
			t.Errorf("%s: %+v", line, found)
		}
	}
}

func TestCommandTimeout(t *testing.T) {
	c := command(t, "echo begun; sleep 1000 & wait")
	c.Timeout = 5 * time.Second
	found := ask(t, Command(runner, c))
	if len(found) != 1 || found[0].Broken || !strings.Contains(found[0].Text, "it did not finish within 5s and was stopped.\n") {
		t.Errorf("%+v", found)
	}
	c = command(t, "sleep 1000")
	c.Timeout = 100 * time.Millisecond
	if found := ask(t, Command(runner, c)); len(found) != 1 || !strings.Contains(found[0].Text, "was stopped. It printed nothing: it may hang, or it may still have been compiling. ") {
		t.Errorf("%+v", found)
	}
}

func TestCommandNotStarted(t *testing.T) {
	c := command(t, "echo $KEY")
	c.Env = []string{"PATH=/nowhere"}
	c.Redact = hide("$KEY")
	found := ask(t, Command(runner, c))
	want := []Finding{{Source: "check", Broken: true,
		Text: "The check command could not be started: start sh: it is not on the PATH of the command's environment\n\n    echo ***\n"}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func hide(secret string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, secret, "***") }
}

func TestCommandRedacts(t *testing.T) {
	var seen bytes.Buffer
	c := command(t, `printf 'a sec'; sleep 0.1; printf 'ret b\nlast secret'; exit 1`)
	c.Redact, c.Live = hide("secret"), &seen
	found := ask(t, Command(runner, c))
	if len(found) != 1 || strings.Contains(found[0].Text, "secret") || !strings.HasSuffix(found[0].Text, "\n\na *** b\nlast ***\n") {
		t.Errorf("%+v", found)
	}
	if seen.String() != "a *** b\nlast ***" {
		t.Errorf("shown: %q", seen.String())
	}
}

func TestCommandCutsAfterRedacting(t *testing.T) {
	c := command(t, `i=0; while [ $i -lt 9000 ]; do i=$((i+1)); echo "line $i secret"; done; exit 1`)
	c.Redact = hide("secret")
	text := ask(t, Command(runner, c))[0].Text
	if len(text) > MaxText+500 || strings.Contains(text, "ecret") ||
		!strings.Contains(text, "\n\nline 1 ***\nline 2 ***\n") || !strings.HasSuffix(text, "\nline 8999 ***\nline 9000 ***\n") ||
		!strings.Contains(text, " ***\n[... ") || !strings.Contains(text, " bytes omitted ...]\nline ") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestCommandSaysWhatWasLost(t *testing.T) {
	text := command(t, "make").Begin()(sandbox.Result{Exit: 1, Stdout: []byte(strings.Repeat("x", 1000)), Discarded: 4000})[0].Text
	if !strings.HasSuffix(text, strings.Repeat("x", 1000)+"\n\n[... 4000 more bytes followed and were discarded ...]\n") {
		t.Error(text)
	}
}

func TestCancel(t *testing.T) {
	for name, f := range map[string]func(cancel func()) Func{
		"command": func(cancel func()) Func {
			c := command(t, "echo begun; sleep 1000")
			c.Live = onWrite(cancel)
			return Command(runner, c)
		},
		"checker": func(cancel func()) Func {
			c := checker(t, "echo begun >&2; sleep 1000")
			c.Live = onWrite(cancel)
			return Bork(runner, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			found, err := f(cancel)(ctx)
			if found != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// onWrite is a writer that calls a function.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestAll(t *testing.T) {
	says := func(text string) Func {
		return func(context.Context) ([]Finding, error) { return []Finding{{Text: text}}, nil }
	}
	fails := func(context.Context) ([]Finding, error) { return nil, os.ErrClosed }
	nothing := func(context.Context) ([]Finding, error) { return nil, nil }
	if diff := cmp.Diff([]Finding{{Text: "a"}, {Text: "b"}}, ask(t, All(says("a"), nil, nothing, says("b")))); diff != "" {
		t.Error(diff)
	}
	if All() != nil || All(nil, nil) != nil {
		t.Error("there is a check of no checks")
	}
	if found, err := All(says("a"), fails, says("b"))(context.Background()); !errors.Is(err, os.ErrClosed) || found != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestBlocking(t *testing.T) {
	for _, c := range []struct {
		findings []Finding
		want     bool
	}{
		{nil, false},
		{[]Finding{{Advisory: true}}, false},
		{[]Finding{{Advisory: true}, {}}, true},
		{[]Finding{{Broken: true}}, true},
		{[]Finding{{Blocker: true}}, true},
		{[]Finding{{Blocker: true, Advisory: true}}, false},
	} {
		if got := Blocking(c.findings); got != c.want {
			t.Errorf("Blocking(%+v) = %v", c.findings, got)
		}
	}
}
