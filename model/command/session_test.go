//go:build unix

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hone/model"
	"hone/sandbox"
)

// agent is one that sh plays; the prompt is its $1 and the model its $2.
func agent(t *testing.T, script string, change func(*Config)) *Agent {
	t.Helper()
	c := Config{Name: "sh", Argv: []string{"sh", "-c", script, "sh", "{prompt}", "{model}"}, Model: "m", Dir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute}
	if change != nil {
		change(&c)
	}
	a, err := New(sandbox.None{Grace: 100 * time.Millisecond}, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func session(t *testing.T, a *Agent, req model.Request) model.Reply {
	t.Helper()
	reply, err := a.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestSession(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		change func(*Config)
		want   string
	}{
		"prompt and context": {`echo "$2: $1"; cat`, nil, "m: do\nbe\n\nspec"},
		"all on stdin":       {`cat`, func(c *Config) { c.Argv, c.Stdin = c.Argv[:4], StdinAll }, "be\n\nspec\n\ndo"},
		"nothing on stdin":   {`cat; echo "$1/$2"`, func(c *Config) { c.Argv = append(c.Argv[:4:4], "{context}", "{prompt}") }, "be\n\nspec/do"},
		"stderr is no part":  {`echo noise >&2; echo it`, nil, "it"},
		"another exit":       {`echo it; exit 3`, func(c *Config) { c.Exits = []int{0, 3} }, "it"},
		"no answer":          {`:`, nil, ""},
		"coloured":           {`printf '\033[1mit\033[0m\r\n\033]0;title\007\000'`, nil, "it"},
		"a daemon":           {`(sleep 1000 &) ; sleep 1000 & echo it`, nil, "it"},
	} {
		t.Run(name, func(t *testing.T) {
			var streamed string
			req := asking("be", "spec", "do")
			req.Stream = func(text string) { streamed += text }
			reply := session(t, agent(t, c.script, c.change), req)
			if reply.Text() != c.want || streamed != c.want || reply.Finish != model.Stop || reply.Usage != nil {
				t.Errorf("reply %+v, streamed %q", reply, streamed)
			}
		})
	}
}

func TestSessionOfAgents(t *testing.T) {
	for name, c := range map[string]struct {
		out, answer string
		usage       Usage
		want        string
		total       int64
	}{
		"gemini":   {geminiOut, "response", geminiUsage, "All contracts hold.", 26130},
		"codex":    {codexOut, codexAnswer, codexUsage, "It is done.", 28139},
		"claude":   {claudeOut, claudeAnswer, claudeUsage, "It is done.", 4059},
		"opencode": {opencodeOut, "part.text", opencodeUsage, "It is done.", 44158},
		"qwen":     {qwenOut, claudeAnswer, qwenUsage, "It is done.", 109},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, `cat out`, func(c2 *Config) { c2.Answer, c2.Usage = c.answer, c.usage })
			if err := os.WriteFile(filepath.Join(a.config.Dir, "out"), []byte(c.out), 0o644); err != nil {
				t.Fatal(err)
			}
			reply := session(t, a, asking("", "do"))
			if reply.Text() != c.want || reply.Finish != model.Stop || reply.Usage == nil || reply.Usage.Total() != c.total {
				t.Errorf("reply %+v, usage %+v", reply, reply.Usage)
			}
		})
	}
}

// An agent that ends normally without an answer is unreadable, not a pass.
func TestNoAnswerInTheOutput(t *testing.T) {
	a := agent(t, `echo '{"error":"quota"}'; echo sorry >&2`, func(c *Config) { c.Answer = "response" })
	reply := session(t, a, asking("", "do"))
	const want = `no answer stands at "response" in its output; its standard error ends: sorry; its standard output ends: {"error":"quota"}`
	if reply.Finish != model.Other || reply.Finish.Normal() || reply.Parts != nil || reply.Detail != want {
		t.Errorf("reply %+v", reply)
	}
}

func TestSessionThatFails(t *testing.T) {
	const json = `echo '{"response":"half","usage":{"input_tokens":7,"output_tokens":3}}'; `
	for name, c := range map[string]struct {
		script string
		change func(*Config)
		want   []string
		or     string
	}{
		"an exit status":  {json + `echo 'bad	key' >&2; exit 42`, nil, []string{"it ended with exit status 42; ", "its standard error ends: bad key; ", "its standard output ends: {"}, "exits in [commands.sh]"},
		"0 is not normal": {json, func(c *Config) { c.Exits = []int{1} }, []string{"exit status 0"}, "exits in [commands.sh]"},
		"a signal":        {json + `kill -SEGV $$`, nil, []string{"a signal ended it (segmentation fault"}, ""},
		"time":            {json + `sleep 1000`, func(c *Config) { c.Timeout = 300 * time.Millisecond }, []string{"it had not ended after 300ms, and was ended"}, "raise timeout in [commands.sh]"},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, c.script, func(config *Config) {
				config.Answer, config.Usage = "response", Usage{Input: "usage.input_tokens", Output: "usage.output_tokens"}
				if c.change != nil {
					c.change(config)
				}
			})
			_, err := a.Generate(t.Context(), asking("", "do"))
			e := fault(t, err)
			for _, want := range c.want {
				if !strings.Contains(e.Message, want) {
					t.Errorf("no %q in %s", want, e.Message)
				}
			}
			if !strings.Contains(e.Or, c.or) {
				t.Errorf("it can be done instead: %q", e.Or)
			}
			if e.Usage == nil || *e.Usage != (model.Usage{Input: 7, Output: 3}) {
				t.Errorf("the usage is %+v", e.Usage)
			}
		})
	}
}

func TestUsageOfAFailureIsNotGuessed(t *testing.T) {
	a := agent(t, "exit 1", func(c *Config) { c.Usage = codexUsage })
	_, err := a.Generate(t.Context(), asking("", "do"))
	if e := fault(t, err); e.Usage != nil || !strings.HasSuffix(e.Message, "; it printed nothing") {
		t.Errorf("%v, usage %+v", e, e.Usage)
	}
}

func TestNotStarted(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no such program": func(c *Config) { c.Argv[0] = "no-such-agent" },
		"no such folder":  func(c *Config) { c.Dir = filepath.Join(c.Dir, "gone") },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := agent(t, "", change).Generate(t.Context(), asking("", "do"))
			e := fault(t, err)
			if !strings.Contains(e.Or, "[commands.sh]") || e.Usage == nil || e.Usage.Total() != 0 {
				t.Errorf("%v; or: %s; usage %+v", e, e.Or, e.Usage)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := agent(t, "echo up; sleep 1000", func(c *Config) { c.Live = writer(func(p []byte) { cancel() }) })
	_, err := a.Generate(ctx, asking("", "do"))
	var e *model.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &e) {
		t.Errorf("the error is %v", err)
	}
	if _, err := a.Generate(ctx, asking("", "do")); !errors.Is(err, context.Canceled) {
		t.Errorf("the error of one that never began is %v", err)
	}
}

// writer is a writer that is one function.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestTimeoutEndsChildren(t *testing.T) {
	a := agent(t, `sleep 1000 & echo $! >pid; wait`, func(c *Config) { c.Timeout = 500 * time.Millisecond })
	if _, err := a.Generate(t.Context(), asking("", "do")); err == nil {
		t.Fatal("it ended")
	}
	text, err := os.ReadFile(filepath.Join(a.config.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child %d lives: %v", pid, err)
	}
}

// More is to be read than a pipe holds, and nobody reads it.
func TestNobodyReadsStdin(t *testing.T) {
	reply := session(t, agent(t, "echo it", nil), asking(strings.Repeat("context\n", 1<<20), "do"))
	if reply.Text() != "it" {
		t.Errorf("reply %+v", reply)
	}
}

func TestVeryMuchOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("1 GB goes through a pipe")
	}
	const flood = `head -c 1073741824 /dev/zero; `
	reply := session(t, agent(t, flood+`printf '\n{"response":"it"}\n'`, func(c *Config) { c.Answer = "response" }), asking("", "do"))
	if reply.Text() != "it" || reply.Finish != model.Stop {
		t.Errorf("the answer after 1 GB: %+v", reply)
	}
	reply = session(t, agent(t, `head -c 40000000 /dev/zero | tr '\0' x`, nil), asking("", "do"))
	if reply.Parts != nil || reply.Finish != model.Other || !strings.Contains(reply.Detail, "16777216 bytes") {
		t.Errorf("an answer of 40 MB: finish %s, %s", reply.Finish, reply.Detail)
	}
}

func TestStreamKeepsItsEnd(t *testing.T) {
	s := &stream{most: 10}
	var all string
	for i := range 40 {
		piece := strings.Repeat(fmt.Sprint(i%10), i%14)
		all += piece
		_, _ = s.Write([]byte(piece))
		end, whole := s.kept()
		if want := all[max(0, len(all)-10):]; string(end) != want || whole != (len(all) <= 10) {
			t.Fatalf("after %q it has %q, %v", all, end, whole)
		}
	}
}

// A key is in no answer, no error and nothing that is shown, also where it
// comes in pieces and where more than is kept stands before it.
func TestSecrets(t *testing.T) {
	const key = "sk-secret-0123456789"
	var live bytes.Buffer
	change := func(c *Config) {
		c.Redact = func(s string) string { return strings.ReplaceAll(s, key, "[redacted]") }
		c.Live = &live
	}
	for name, script := range map[string]string{
		"answer": `printf 'sk-secret'; sleep 0.05; printf -- '-0123456789 x'`,
		"error":  `printf 'sk-\033[1msecret-0123456789\n' >&2; echo sk-secret-0123456789; exit 1`,
		"cut":    `for i in $(seq 300); do printf 'sk-secret-0123456789 ' >&2; done; exit 1`,
		"detail": `echo '{"no":"sk-secret-0123456789"}'; exit 4`,
	} {
		t.Run(name, func(t *testing.T) {
			live.Reset()
			a := agent(t, script, func(c *Config) {
				change(c)
				if name == "detail" {
					c.Answer, c.Exits = "response", []int{4}
				}
			})
			reply, err := a.Generate(t.Context(), asking("", "do"))
			said := fmt.Sprint(reply.Text(), reply.Detail, err)
			if strings.Contains(said, "secret") || !strings.Contains(said, "redacted]") {
				t.Errorf("said %s", said)
			}
			if strings.Contains(live.String(), "secret") || !strings.Contains(live.String(), "[redacted]") {
				t.Errorf("shown %s", live.String())
			}
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	a := agent(t, `echo "$1"; cat`, nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			text := fmt.Sprint(i)
			reply, err := a.Generate(context.Background(), asking("context "+text, text))
			if want := text + "\ncontext " + text; err != nil || reply.Text() != want {
				t.Errorf("%v, %q", err, reply.Text())
			}
		})
	}
	all.Wait()
}
