//go:build unix

package agent

import (
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

	"hone/internal/crashtest/waittest"
	"hone/model"
	"hone/sandbox"
	"hone/sandbox/wall"
)

// agent returns an agent that runs a script with sh; $1 is the prompt and $2
// the model.
func agent(t *testing.T, script string, change func(*Config)) *Agent {
	t.Helper()
	c := Config{Name: "sh", Argv: []string{"sh", "-c", script, "sh", "{prompt}", "{model}"}, Model: "m", Dir: t.TempDir(),
		Timeout: time.Minute}
	if change != nil {
		change(&c)
	}
	none := wall.None{Grace: 100 * time.Millisecond}
	a, err := New(runner(func(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
		c.Env = []string{"PATH=" + os.Getenv("PATH")}
		return none.Run(ctx, c)
	}), c)
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
		"all on stdin":       {`cat`, func(c *Config) { c.Argv = c.Argv[:4] }, "be\n\nspec\n\ndo"},
		"nothing on stdin":   {`cat; echo "$1/$2"`, func(c *Config) { c.Argv = append(c.Argv[:4:4], "{context}", "{prompt}") }, "be\n\nspec/do"},
		"prompt on stdin":    {`cat; echo "/$1"`, func(c *Config) { c.Argv = append(c.Argv[:4:4], "{context}") }, "do/be\n\nspec"},
		"stderr is ignored":  {`echo noise >&2; echo it`, nil, "it"},
		"another exit":       {`echo it; exit 3`, func(c *Config) { c.Exits = []int{0, 3} }, "it"},
		"no answer":          {`:`, nil, ""},
		"colors":             {`printf '\033[1mit\033[0m\r\n\033]0;title\007\000'`, nil, "it"},
		"a daemon":           {`(sleep 1000 &) ; sleep 1000 & echo it`, nil, "it"},
	} {
		t.Run(name, func(t *testing.T) {
			var streamed string
			req := request("be", "spec", "do")
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
		"gemini":   {geminiOut, "#.response", geminiUsage, "All contracts hold.", 26130},
		"codex":    {codexOut, codexAnswer, codexUsage, "It is done.", 28139},
		"claude":   {claudeOut, claudeAnswer, claudeUsage, "It is done.", 4059},
		"opencode": {opencodeOut, opencodeAnswer, opencodeUsage, "It is done.", 44158},
		"qwen":     {qwenOut, claudeAnswer, qwenUsage, "It is done.", 109},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, `cat out`, func(c2 *Config) { c2.Answer, c2.Usage = c.answer, c.usage })
			if err := os.WriteFile(filepath.Join(a.config.Dir, "out"), []byte(c.out), 0o644); err != nil {
				t.Fatal(err)
			}
			reply := session(t, a, request("", "do"))
			if reply.Text() != c.want || reply.Finish != model.Stop || reply.Usage == nil || reply.Usage.Total() != c.total {
				t.Errorf("reply %+v, usage %+v", reply, reply.Usage)
			}
		})
	}
}

// A successful session without an answer is unreadable.
func TestNoAnswerInTheOutput(t *testing.T) {
	a := agent(t, `echo '{"error":"quota"}'; echo sorry >&2`, func(c *Config) { c.Answer = "#.response" })
	reply := session(t, a, request("", "do"))
	const want = `its output has no answer at "#.response"; its stderr ends with: sorry; its stdout ends with: {"error":"quota"}`
	if reply.Finish != model.Other || reply.Finish.Normal() || reply.Parts != nil || reply.Detail != want {
		t.Errorf("reply %+v", reply)
	}
}

func TestFailedSession(t *testing.T) {
	const json = `echo '{"response":"half","usage":{"input_tokens":7,"output_tokens":3}}'; `
	for name, c := range map[string]struct {
		script string
		change func(*Config)
		want   []string
		or     string
	}{
		"an exit status": {json + `echo 'bad	key' >&2; exit 42`, nil, []string{"it failed with exit status 42; ", "its stderr ends with: bad key; ", "its stdout ends with: {"}, "exits in [commands.sh]"},
		"0 is a failure": {json, func(c *Config) { c.Exits = []int{1} }, []string{"failed with exit status 0"}, "exits in [commands.sh]"},
		"a signal":       {json + `kill -SEGV $$`, nil, []string{"it was killed by a signal (segmentation fault"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, c.script, func(config *Config) {
				config.Answer, config.Usage = "#.response", Usage{Input: "#.usage.input_tokens", Output: "#.usage.output_tokens"}
				if c.change != nil {
					c.change(config)
				}
			})
			_, err := a.Generate(t.Context(), request("", "do"))
			e := fault(t, err)
			for _, want := range c.want {
				if !strings.Contains(e.Message, want) {
					t.Errorf("no %q in %s", want, e.Message)
				}
			}
			if !strings.Contains(e.Alternative, c.or) {
				t.Errorf("Or = %q, want %q", e.Alternative, c.or)
			}
			if e.Usage == nil || *e.Usage != (model.Usage{Input: 7, Output: 3}) {
				t.Errorf("usage = %+v", e.Usage)
			}
		})
	}
}

// What a session that times out has printed before is charged. A loaded machine may need longer than the limit
// to start it.
func TestSessionThatTimesOut(t *testing.T) {
	for limit := 300 * time.Millisecond; ; limit *= 4 {
		a := agent(t, `echo '{"usage":{"input_tokens":7,"output_tokens":3}}'; sleep 1000`, func(c *Config) {
			c.Timeout, c.Usage = limit, Usage{Input: "#.usage.input_tokens", Output: "#.usage.output_tokens"}
		})
		_, err := a.Generate(t.Context(), request("", "do"))
		e := fault(t, err)
		if want := "it timed out after " + limit.String(); !strings.Contains(e.Message, want) || !strings.Contains(e.Alternative, "increase timeout in [commands.sh]") {
			t.Fatalf("%q, or %q; want %q", e.Message, e.Alternative, want)
		}
		if e.Usage != nil && *e.Usage == (model.Usage{Input: 7, Output: 3}) {
			return
		}
		if limit > time.Minute {
			t.Fatalf("usage = %+v", e.Usage)
		}
	}
}

func TestUsageOfAFailureIsNotGuessed(t *testing.T) {
	a := agent(t, "exit 1", func(c *Config) { c.Usage = codexUsage })
	_, err := a.Generate(t.Context(), request("", "do"))
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
			_, err := agent(t, "", change).Generate(t.Context(), request("", "do"))
			e := fault(t, err)
			if !strings.Contains(e.Alternative, "[commands.sh]") || e.Usage == nil || e.Usage.Total() != 0 {
				t.Errorf("%v; or: %s; usage %+v", e, e.Alternative, e.Usage)
			}
		})
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := agent(t, "echo >up; sleep 1000", nil)
	go func() {
		waittest.Until(func() bool {
			_, err := os.Stat(filepath.Join(a.config.Dir, "up"))
			return err == nil
		})
		cancel()
	}()
	_, err := a.Generate(ctx, request("", "do"))
	var e *model.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &e) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	if _, err := a.Generate(ctx, request("", "do")); !errors.Is(err, context.Canceled) {
		t.Errorf("before the start: error = %v, want context.Canceled", err)
	}
}

func TestTimeoutEndsChildren(t *testing.T) {
	a := agent(t, `sleep 1000 & echo $! >pid; wait`, func(c *Config) { c.Timeout = 5 * time.Second })
	if _, err := a.Generate(t.Context(), request("", "do")); err == nil {
		t.Fatal("the session did not time out")
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
		t.Errorf("the child %d still runs: %v", pid, err)
	}
}

// The input is larger than a pipe's buffer, and the agent does not read it.
func TestUnreadStdin(t *testing.T) {
	reply := session(t, agent(t, "echo it", nil), request(strings.Repeat("context\n", 1<<20), "do"))
	if reply.Text() != "it" {
		t.Errorf("reply %+v", reply)
	}
}

func TestHugeOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 1 GB through a pipe")
	}
	const flood = `head -c 1073741824 /dev/zero; `
	reply := session(t, agent(t, flood+`printf '\n{"response":"it"}\n'`, func(c *Config) { c.Answer = "#.response" }), request("", "do"))
	if reply.Text() != "it" || reply.Finish != model.Stop {
		t.Errorf("the answer after 1 GB: %+v", reply)
	}
	reply = session(t, agent(t, `head -c 40000000 /dev/zero | tr '\0' x`, nil), request("", "do"))
	if reply.Parts != nil || reply.Finish != model.Other || !strings.Contains(reply.Detail, "16777216 bytes") {
		t.Errorf("an answer of 40 MB: finish %s, %s", reply.Finish, reply.Detail)
	}
}

func TestStreamStoresItsEnd(t *testing.T) {
	s := &stream{limit: 10}
	var all string
	for i := range 40 {
		piece := strings.Repeat(fmt.Sprint(i%10), i%14)
		all += piece
		_, _ = s.Write([]byte(piece))
		end, complete := s.tail()
		if want := all[max(0, len(all)-10):]; string(end) != want || complete != (len(all) <= 10) {
			t.Fatalf("after %q: tail = %q, %v", all, end, complete)
		}
	}
}

// No answer and no error contains a key, even if it arrives in pieces or a limit
// would split it.
func TestSecrets(t *testing.T) {
	const key = "sk-secret-0123456789"
	for name, script := range map[string]string{
		"answer": `printf 'sk-secret'; sleep 0.05; printf -- '-0123456789 x'`,
		"error":  `printf 'sk-\033[1msecret-0123456789\n' >&2; echo sk-secret-0123456789; exit 1`,
		"cut":    `for i in $(seq 300); do printf 'sk-secret-0123456789 ' >&2; done; exit 1`,
		"detail": `echo '{"no":"sk-secret-0123456789"}'; exit 4`,
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, script, func(c *Config) {
				c.Redact = func(s string) string { return strings.ReplaceAll(s, key, "[redacted]") }
				if name == "detail" {
					c.Answer, c.Exits = "#.response", []int{4}
				}
			})
			reply, err := a.Generate(t.Context(), request("", "do"))
			result := fmt.Sprint(reply.Text(), reply.Detail, err)
			if strings.Contains(result, "secret") || !strings.Contains(result, "redacted]") {
				t.Errorf("result: %s", result)
			}
		})
	}
}

func TestConcurrentSessions(t *testing.T) {
	a := agent(t, `echo "$1"; cat`, nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			text := fmt.Sprint(i)
			reply, err := a.Generate(context.Background(), request("context "+text, text))
			if want := text + "\ncontext " + text; err != nil || reply.Text() != want {
				t.Errorf("%v, %q", err, reply.Text())
			}
		})
	}
	all.Wait()
}
