//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hone/cmd/hone/report"
	"hone/harness/runs"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/model/modeltest"
)

// tokensPerReply is what the server of a contest reports for each reply.
const tokensPerReply = 5000

// contest is a directory in which attempts at implement work, with a server that knows
// each model: it makes the check pass in the round that passes names, and never if that is
// 0. It replies by the contents of a request, so that a lost one gets the same reply.
type contest struct {
	dir, url string
	passes   map[string]int
	trust    string // HONE_TRUST; empty means that of the tests

	mu       sync.Mutex
	requests map[string]int            // by the model
	before   func(model string, n int) // is called before the server replies to request n of a model; nil does nothing
}

func newContest(t *testing.T, passes map[string]int) *contest {
	c := &contest{dir: filepath.Join(t.TempDir(), "project"), passes: passes, requests: map[string]int{}}
	err := os.Mkdir(c.dir, 0o755)
	for name, text := range map[string]string{"a.txt": "bad\n", "b.txt": "mine\n", ".gitignore": ".cache\n"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", "--template="}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"}} {
		git := exec.Command("git", args...)
		git.Dir = c.dir
		err = errors.Join(err, git.Run())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.reply(t, w, r) }))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	c.url = s.URL
	return c
}

func (c *contest) reply(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var asked struct{ Model string }
	if err := json.Unmarshal(body, &asked); err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	c.requests[asked.Model]++
	n := c.requests[asked.Model]
	c.mu.Unlock()
	if c.before != nil {
		c.before(asked.Model, n)
	}
	round := 1 + bytes.Count(body, []byte("When the file replacements were made"))
	word := "bad"
	if round == c.passes[asked.Model] {
		word = "good"
	}
	text := fmt.Sprintf("^^^ a.txt\n%s %s %d\n^^^ end\n", word, asked.Model, round)
	r.Body = io.NopCloser(bytes.NewReader(body))
	modeltest.NewServer(t, modeltest.Turn{Text: text, Usage: &model.Usage{Input: tokensPerReply - 500, Output: 500}}).ServeHTTP(w, r)
}

func (c *contest) served() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.requests {
		n += one
	}
	return n
}

// command returns a hone in the directory.
func (c *contest) command(args ...string) *exec.Cmd {
	cmd := exec.Command("hone", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+c.url+"/v1", "OPENAI_API_KEY=k", "GIT_CONFIG_GLOBAL="+os.DevNull, promptExit,
		"XDG_CACHE_HOME="+filepath.Join(filepath.Dir(c.dir), "cache"))
	if c.trust != "" {
		cmd.Env = append(cmd.Env, "HONE_TRUST="+c.trust)
	}
	return cmd
}

// hone runs the program.
func (c *contest) hone(t *testing.T, args ...string) (exit int, output string) {
	t.Helper()
	cmd := c.command(args...)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// args starts an attempt for each model.
func contestArgs(models string, more ...string) []string {
	args := []string{"implement", "say good", "--sandbox", "none", "--check", "grep -q good a.txt", "--attempts", fmt.Sprint(len(models))}
	for _, m := range models {
		args = append(args, "-m", "openai/"+string(m))
	}
	return append(args, more...)
}

// past returns what the run of the attempts recorded.
func (c *contest) past(t *testing.T) *history.Past { return readPast(t, c.dir, "last") }

func readPast(t *testing.T, dir, run string) *history.Past {
	t.Helper()
	home, err := journal.FindHomeAt(dir, runs.HomePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	id, err := home.FindRun(run)
	if err != nil {
		t.Fatal(err)
	}
	events, err := home.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	return history.Read(events)
}

// checkLedger checks that the run's ledger is the sum of those of its attempts, that
// nothing is lent, and that neither it nor the server's own count exceeds a limit. It
// returns the replies that the attempts recorded.
func (c *contest) checkLedger(t *testing.T, limit int64) (replies int) {
	t.Helper()
	past := c.past(t)
	spent := past.Facts().Ledger
	var sum history.Ledger
	for _, a := range past.Attempts() {
		if a.Run == "" && a.Tokens == 0 {
			continue // another one won before its run began
		}
		of := readPast(t, a.Dir, a.Run)
		l := of.Facts().Ledger
		sum.Tokens, sum.Assumed, sum.Known = sum.Tokens+l.Tokens, sum.Assumed+l.Assumed, sum.Known.Add(l.Known)
		replies += of.Facts().Replies
		if a.Tokens != l.Tokens {
			t.Errorf("attempt %d is said to have used %d tokens, and has %d", a.Number, a.Tokens, l.Tokens)
		}
	}
	if spent.Tokens != sum.Tokens || spent.Assumed != sum.Assumed || spent.Known != sum.Known || len(past.Reserved()) > 0 {
		t.Errorf("the ledger is %+v, and the attempts used %+v; lent: %v", spent, sum, past.Reserved())
	}
	counted := int64(c.served() * tokensPerReply)
	if spent.Tokens > limit || counted > limit || spent.Tokens < counted {
		t.Errorf("the ledger has %d tokens, the server counted %d, and the limit is %d", spent.Tokens, counted, limit)
	}
	return replies
}

func (c *contest) a(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAttemptsShareABudget: attempts that have used up their parts borrow what others
// return, and all together never exceed the budget. A higher one lets them go on.
func TestAttemptsShareABudget(t *testing.T) {
	skipShort(t)
	t.Parallel()
	c := newContest(t, map[string]int{"y": 7})
	const limit = 73_500 // a part pays for four replies, and what is left of the three for two more
	exit, out := c.hone(t, contestArgs("xyz", "--max-tokens", fmt.Sprint(limit))...)
	if exit != 3 || c.a(t) != "bad\n" {
		t.Fatalf("exit status %d, a.txt %q\n%s", exit, c.a(t), out)
	}
	replies := c.checkLedger(t, limit)
	if spent := c.past(t).Facts().Ledger; replies != 14 || c.served() != 14 || spent.Tokens != 14*tokensPerReply {
		t.Errorf("%d replies were recorded of %d, and %+v was charged\n%s", replies, c.served(), spent, out)
	}
	if !strings.Contains(out, "hone resume last --max-tokens 181000") {
		t.Errorf("%s", out)
	}
	exit, out = c.hone(t, "resume", "last", "--max-tokens", "300000")
	if exit != 0 || c.a(t) != "good y 7\n" {
		t.Fatalf("exit status %d, a.txt %q\n%s", exit, c.a(t), out)
	}
	c.checkLedger(t, 300_000)
	if exit, out := c.hone(t, "undo", "last"); exit != 0 || c.a(t) != "bad\n" {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	if exit, out := c.hone(t, "replay", "last"); exit != 0 {
		t.Errorf("exit status %d\n%s", exit, out)
	}
}

// TestAttemptsKilled kills the run of the attempts at several requests. Its attempts end
// with it, and a resumed run pays for no recorded reply again.
func TestAttemptsKilled(t *testing.T) {
	skipShort(t)
	skipRace(t)
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprintf("%v at request %d", signal, at), func(t *testing.T) {
				t.Parallel()
				c := newContest(t, map[string]int{"x": 4})
				victim := c.command(contestArgs("xy", "--max-tokens", "500000")...)
				var out bytes.Buffer
				victim.Stdout, victim.Stderr = &out, &out
				c.before = func(model string, n int) {
					if model == "x" && n == at {
						_ = victim.Process.Signal(signal)
					}
				}
				_ = victim.Run()
				if exit := victim.ProcessState.ExitCode(); signal == syscall.SIGINT && exit != 130 || signal == syscall.SIGKILL && exit != -1 {
					t.Fatalf("exit status %d\n%s", exit, out.String())
				}
				_, text := c.hone(t, "runs", "--json")
				var died report.Summary
				if err := json.NewDecoder(strings.NewReader(text)).Decode(&died); err != nil || died.Tokens >= 100_000 {
					t.Errorf("%d tokens (%v) are more than the attempts' journals say: a loan\n%s", died.Tokens, err, text)
				}
				exit, text := c.hone(t, "resume", "last")
				if exit != 0 || c.a(t) != "good x 4\n" {
					t.Fatalf("exit status %d, a.txt %q\n%s\nafter\n%s", exit, c.a(t), text, out.String())
				}
				replies := c.checkLedger(t, 500_000)
				if lost := c.served() - replies; lost < 0 || lost > 3 { // two by the signal, one when the winner stops the other
					t.Errorf("%d requests for %d replies\n%s", c.served(), replies, text)
				}
				if c.requests["x"] > 5 {
					t.Errorf("%d requests of 4 rounds", c.requests["x"])
				}
			})
		}
	}
}

// TestAttemptsOutlive: an attempt may end after the process that runs the attempts was killed;
// the next one knows all that it did.
func TestAttemptsOutlive(t *testing.T) {
	skipShort(t)
	t.Parallel()
	c := newContest(t, map[string]int{"x": 4})
	victim := c.command(contestArgs("xy", "--max-tokens", "500000")...)
	c.before = func(model string, n int) {
		if model == "x" && n == 2 {
			_ = victim.Process.Kill()
		}
	}
	_ = victim.Run()
	for _, a := range c.past(t).Attempts() {
		if a.Number == 1 {
			if exit, out := c.hone(t, "resume", a.Run, "-C", a.Dir); exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, out)
			}
		}
	}
	if exit, out := c.hone(t, "resume", "last"); exit != 0 || c.a(t) != "good x 4\n" {
		t.Fatalf("exit status %d, a.txt %q\n%s", exit, c.a(t), out)
	}
	c.checkLedger(t, 500_000)
}

// TestAttemptsUserEdits: what the user changes meanwhile is never overwritten, and other
// files are left alone.
func TestAttemptsUserEdits(t *testing.T) {
	skipShort(t)
	t.Parallel()
	c := newContest(t, map[string]int{"x": 2})
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	c.before = func(_ string, n int) {
		if n == 2 {
			write("a.txt", "the user's\n")
			write("b.txt", "the user's\n")
		}
	}
	exit, out := c.hone(t, contestArgs("xy")...)
	if exit != 4 || c.a(t) != "the user's\n" || !strings.Contains(out, "these files are not as the attempts found them") || !strings.Contains(out, "| a.txt\n") {
		t.Fatalf("exit status %d, a.txt %q\n%s", exit, c.a(t), out)
	}
	served := c.served()
	write("a.txt", "bad\n")
	if exit, out := c.hone(t, "resume", "last"); exit != 0 || c.a(t) != "good x 2\n" || c.served() != served {
		t.Fatalf("exit status %d, a.txt %q, %d requests after %d\n%s", exit, c.a(t), c.served(), served, out)
	}
	if b, err := os.ReadFile(filepath.Join(c.dir, "b.txt")); err != nil || string(b) != "the user's\n" {
		t.Errorf("b.txt: %q, %v", b, err)
	}
	if all, _ := filepath.Glob(filepath.Join(filepath.Dir(c.dir), "cache", "hone", "attempts", "*", "*", "project", "a.txt")); len(all) != 2 {
		t.Errorf("%v", all)
	}
	if found := c.past(t).Attempts(); len(found) != 2 || !found[0].Applied || found[1].Applied {
		t.Errorf("%+v", found)
	}
}

// TestAttemptsForgedJournal: a journal in a copy that something else than hone wrote is
// not believed. Restored, the attempts go on with more rounds.
func TestAttemptsForgedJournal(t *testing.T) {
	skipShort(t)
	t.Parallel()
	c := newContest(t, map[string]int{})
	exit, out := c.hone(t, contestArgs("yy", "--rounds", "1")...)
	if exit != 1 || c.a(t) != "bad\n" {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	past := c.past(t)
	journals, err := filepath.Glob(filepath.Join(past.Attempts()[0].Dir, ".hone", "runs", "*.jsonl"))
	if err != nil || len(journals) != 1 {
		t.Fatal(journals, err)
	}
	text, err := os.ReadFile(journals[0])
	if err == nil {
		err = os.WriteFile(journals[0], bytes.Replace(text, []byte(`"result":"rounds"`), []byte(`"result":"done"`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if exit, out := c.hone(t, "resume", "last", "--rounds", "3"); exit != 5 || c.a(t) != "bad\n" {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	if err := os.WriteFile(journals[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.passes["y"] = 3
	c.mu.Unlock()
	if exit, out := c.hone(t, "resume", "last", "--rounds", "3"); exit != 0 || c.a(t) != "good y 3\n" {
		t.Fatalf("exit status %d, a.txt %q\n%s", exit, c.a(t), out)
	}
	c.checkLedger(t, 5_000_000)
}

// TestAttemptsShareACost is TestAttemptsShareABudget for a limit in USD. A reply costs
// five cents.
func TestAttemptsShareACost(t *testing.T) {
	skipShort(t)
	t.Parallel()
	c := newContest(t, map[string]int{})
	config := ""
	for _, m := range "xyz" {
		config += fmt.Sprintf("[prices.\"openai/%c\"]\ninput = 10\noutput = 10\n", m)
	}
	err := os.Mkdir(filepath.Join(c.dir, ".config"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, ".config", "hone.toml"), []byte(config), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, trust := c.hone(t, "trust")
	_, digest, ok := strings.Cut(trust, "HONE_TRUST=")
	if !ok {
		t.Fatal(trust)
	}
	c.trust = strings.Fields(digest)[0]
	exit, out := c.hone(t, contestArgs("xyz", "--max-cost", "0.735")...)
	spent := c.past(t).Facts().Ledger
	if exit != 3 || c.served() != 14 || spent.Unpriced > 0 || spent.Cost < 0.6999 || spent.Cost > 0.7001 {
		t.Fatalf("exit status %d, %d requests, %+v\n%s", exit, c.served(), spent, out)
	}
	c.checkLedger(t, 5_000_000)
	if !strings.Contains(out, "70 000 tokens, $0.7000)") || !strings.Contains(out, "hone resume last --max-cost 1.81") || !strings.Contains(out, "of the limit of $0.335 is left") {
		t.Error(out)
	}
}

// TestAttemptsAtAnotherAddress: the server that was typed refuses all requests, and the
// user resumes the run with another one.
func TestAttemptsAtAnotherAddress(t *testing.T) {
	skipShort(t)
	t.Parallel()
	wrong, c := httptest.NewServer(http.NotFoundHandler()), newContest(t, map[string]int{"x": 1})
	defer wrong.Close()
	exit, out := c.hone(t, contestArgs("xy", "--base-url", wrong.URL+"/v1")...)
	if exit != 5 || c.served() > 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	if exit, out := c.hone(t, "resume", "last", "--base-url", c.url+"/v1"); exit != 0 || c.a(t) != "good x 1\n" {
		t.Fatalf("exit status %d, a.txt %q\n%s", exit, c.a(t), out)
	}
}
