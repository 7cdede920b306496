//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/history"
	"hone/internal/crashtest"
	"hone/model"
	"hone/model/modeltest"
)

// TestKillAroundFailover kills the real process, as kill -9 does, before or after events
// of a run whose first provider refuses all connections after its first reply, and
// resumes it. The other provider must go on, no recorded reply may be paid for again,
// and the budget must hold.
func TestKillAroundFailover(t *testing.T) {
	t.Parallel()
	template := killedRepository(t)
	config := filepath.Join(template, ".config", "hone.toml")
	if err := os.Mkdir(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[model]\nattempts = 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	whole := newFailing(t, template)
	if exit, out := whole.hone(t, "", failoverArgs...); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	tree, facts := whole.tree(t), whole.facts(t)
	if whole.requests() != 2 || facts.replies != 2 {
		t.Fatalf("the run is not the one that is meant: %d requests, %+v", whole.requests(), facts)
	}
	points := 2 * facts.events
	for n := range points {
		if !crashtest.IsSampled(n, 2*points) {
			continue // each waits a second between two attempts
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			v := newFailing(t, template)
			if exit, out := v.hone(t, fmt.Sprint(n), failoverArgs...); exit != -1 {
				t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
			}
			killed := v.facts(t)
			lost := v.requests() - killed.replies
			args := []string{"resume", "last"}
			if killed.events == 0 {
				args = failoverArgs
			}
			if exit, out := v.hone(t, "", args...); exit != 0 {
				t.Fatalf("%s: exit status %d\n%s", args[0], exit, out)
			}
			if diff := cmp.Diff(tree, v.tree(t)); diff != "" {
				t.Errorf("the tree differs (-want +got):\n%s", diff)
			}
			got := v.facts(t)
			got.events = facts.events
			if got != facts || v.requests() != 2+lost || lost < 0 || lost > 1 {
				t.Errorf("%d requests, want %d; recorded %+v, want %+v", v.requests(), 2+lost, got, facts)
			}
			v.checkFailover(t)
			if exit, out := v.hone(t, "", "replay", "last"); exit != 0 {
				t.Errorf("replay: exit status %d\n%s", exit, out)
			}
		})
	}
}

var failoverArgs = []string{"reconcile", "-m", "anthropic/x,openai/x", "--approve", "all", "--check", "grep -q two made", "--max-tokens", "60000"}

// failing is a victim whose first provider refuses connections after its first reply.
type failing struct {
	victim
	first string // its address
}

func newFailing(t *testing.T, template string) failing {
	v := failing{victim: newVictim(t, template)}
	reply := modeltest.NewServer(t, modeltest.Turn{Usage: &model.Usage{Input: 10, Output: 10},
		Text: `{"create-or-update": {"specs/s.md": "New.\n", "made": "one\n", ".git/config": "mine\n"}}`})
	var s *httptest.Server
	var asked atomic.Bool
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || asked.Swap(true) {
			return
		}
		v.asked.Add(1)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.Listener.Close()
		w.Header().Set("Connection", "close")
		reply.ServeHTTP(w, r)
	}))
	s.Start()
	t.Cleanup(s.Close)
	v.first = s.URL
	return v
}

// hone is victim.hone with the first provider.
func (v failing) hone(t *testing.T, point string, args ...string) (exit int, output string) {
	t.Helper()
	c := exec.Command("hone", args...)
	c.Dir = v.dir
	c.Env = append(os.Environ(), "HONE_TEST_KILL="+point, "ANTHROPIC_BASE_URL="+v.first, "OPENAI_BASE_URL="+v.url+"/v1", "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k",
		"GIT_CONFIG_GLOBAL="+os.DevNull, promptExit)
	out, _ := c.CombinedOutput()
	return c.ProcessState.ExitCode(), string(out)
}

// checkFailover checks that the newest run records one failover, asked the failed model
// no more after it, and kept its budget.
func (v failing) checkFailover(t *testing.T) {
	t.Helper()
	events := lastEvents(t, v.dir)
	past, failovers := history.Read(events), 0
	for _, e := range past.Events() {
		switch p := e.Payload.(type) {
		case history.FailedOver:
			failovers++
		case history.Reserve:
			if failovers > 0 && p.Model != "openai/x" {
				t.Errorf("%s was asked after it had failed", p.Model)
			}
		}
	}
	if spent := past.Facts().Ledger; failovers != 1 || spent.Tokens > past.Facts().Limits.Tokens {
		t.Errorf("%d failovers; %d of %d tokens", failovers, spent.Tokens, past.Facts().Limits.Tokens)
	}
}
