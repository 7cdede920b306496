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
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/internal/crashtest"
	"hone/model"
	"hone/model/modeltest"
)

// TestImplementKilledAtEveryPoint is TestKillAtEveryPoint for a run of implement
// with a void reply, a failing build and a passing build. It also compares
// thoughts and logs.
func TestImplementKilledAtEveryPoint(t *testing.T) {
	skipRace(t)
	t.Parallel()
	whole := newBuilder(t)
	if exit, out := whole.hone(t, "", "implement"); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	tree, facts := whole.files(t), whole.facts(t)
	if whole.requests() != 3 || facts.replies != 3 || facts.checks != 2 || !strings.HasSuffix(tree["/llm-user-output.txt"], " one\n---\ntwo\n---\n") {
		t.Fatalf("the run is not the one that is meant: %d requests, %+v\n%v", whole.requests(), facts, tree)
	}
	points := 2 * facts.events
	for n := range points {
		if !crashtest.IsSampled(n, points) {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			v := newBuilder(t)
			if exit, out := v.hone(t, fmt.Sprint(n), "implement"); exit != -1 {
				t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
			}
			killed := v.facts(t)
			lost := v.requests() - killed.replies
			args := []string{"resume", "last"}
			if killed.events == 0 {
				args = []string{"implement"}
			}
			if exit, out := v.hone(t, "", args...); exit != 0 {
				t.Fatalf("%s: exit status %d\n%s", args[0], exit, out)
			}
			if diff := cmp.Diff(tree, v.files(t)); diff != "" {
				t.Errorf("the tree differs (-want +got):\n%s", diff)
			}
			if got := v.requests(); lost < 0 || lost > 1 || got != 3+lost {
				t.Errorf("%d requests, of which %d were lost", got, lost)
			}
			got := v.facts(t)
			got.events = facts.events
			if got != facts {
				t.Errorf("recorded %+v, want %+v", got, facts)
			}
		})
	}
}

// builder is a directory that is set up for implement, with its own server.
type builder struct{ victim }

func newBuilder(t *testing.T) builder {
	b := builder{victim{dir: t.TempDir(), asked: new(atomic.Int64)}}
	for name, text := range map[string]string{
		"query.txt": "Say done.\n", "gemini-key.txt": "the-key-of-this-folder\n", "a": "zero\n",
		"build.sh": "echo \"a says $(cat a)\"\ngrep -q done a\n",
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	trustAll(t, b.dir)
	// Nothing is committed: an untracked file is not a change from outside.
	c := exec.Command("git", "init", "-q", "-b", "main", "--template=")
	c.Dir = b.dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, out)
	}
	b.url = newCoder(t, b.asked)
	return b
}

// newCoder starts a server that replies by the content of a request, as
// newVictim does, and returns its address.
func newCoder(t *testing.T, asked *atomic.Int64) string {
	use := &model.Usage{Input: 10, Output: 10}
	void := modeltest.NewServer(t, modeltest.Turn{Usage: use, Text: "&&&start\none\n&&&end\n^^^build.sh\ntrue\n^^^end\n^^^a\nno\n^^^end\n"})
	fails := modeltest.NewServer(t, modeltest.Turn{Usage: use, Text: "&&&start\ntwo\n&&&end\n^^^a\ntwo\n^^^end\n"})
	passes := modeltest.NewServer(t, modeltest.Turn{Usage: use, Text: "^^^a\ndone\n^^^end\n^^^sub/b\nbee\n^^^end\n"})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte("a says two")):
			passes.ServeHTTP(w, r)
		case bytes.Contains(body, []byte("could not be used")):
			fails.ServeHTTP(w, r)
		default:
			void.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// hone runs the program against the server, as victim.hone does.
func (b builder) hone(t *testing.T, point string, args ...string) (exit int, output string) {
	t.Helper()
	return b.victim.hone(t, point, append(args, "--base-url", b.url)...)
}

// files returns the tree. It removes the time from the name of the log
// directory.
func (b builder) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, text := range b.tree(t) {
		if rest, ok := strings.CutPrefix(name, "/logs/"); ok {
			_, file, _ := strings.Cut(rest, "/")
			name = "/logs/" + file
		}
		if _, twice := files[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		files[name] = text
	}
	return files
}
