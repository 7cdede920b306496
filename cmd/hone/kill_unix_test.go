//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"hone/journal"
	"hone/model"
	"hone/model/modeltest"
)

// TestKillAtEveryPoint kills the real process, as kill -9 does, before or after
// some events of a run of two rounds with an approval and a refusal, and resumes
// it. With HONE_TEST_ALL set it does so before and after each event. The tree and the exit status must be those of a run that was not killed,
// every step must be recorded once, and no recorded reply may be paid for again.
// Only a kill between a request and its record costs one more request.
func TestKillAtEveryPoint(t *testing.T) {
	skipRace(t)
	t.Parallel()
	template := killedRepository(t)
	whole := newVictim(t, template)
	if exit, out := whole.hone(t, "", reconcileArgs...); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	tree, facts := whole.tree(t), whole.facts(t)
	if whole.requests() != 2 || facts.replies != 2 {
		t.Fatalf("the run is not the one that is meant: %d requests, %+v", whole.requests(), facts)
	}
	points := 2 * facts.events
	for n := range points {
		if !crashtest.IsSampled(n, points) {
			continue // each takes two processes; the loop's crash tests need none
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, template)
			if exit, out := v.hone(t, fmt.Sprint(n), reconcileArgs...); exit != -1 {
				t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
			}
			killed := v.facts(t)
			lost := v.requests() - killed.replies
			if lost != 0 && lost != 1 {
				t.Fatalf("%d requests were made for %d replies on record", v.requests(), killed.replies)
			}
			args := []string{"resume", "last"}
			if killed.events == 0 {
				args = reconcileArgs
			}
			if exit, out := v.hone(t, "", args...); exit != 0 {
				t.Fatalf("%s: exit status %d\n%s", args[0], exit, out)
			}
			if diff := cmp.Diff(tree, v.tree(t)); diff != "" {
				t.Errorf("the tree differs (-want +got):\n%s", diff)
			}
			if got := v.requests(); got != 2+lost {
				t.Errorf("%d requests, want %d", got, 2+lost)
			}
			got := v.facts(t)
			got.events = facts.events
			if got != facts {
				t.Errorf("recorded %+v, want %+v", got, facts)
			}
		})
	}
	v := newVictim(t, template)
	if exit, out := v.hone(t, fmt.Sprint(points), reconcileArgs...); exit != 0 {
		t.Errorf("there are points behind the last: exit status %d\n%s", exit, out)
	}
}

var reconcileArgs = []string{"reconcile", "-m", "openai/x", "--approve", "all", "--check", "grep -q two made"}

// killedRepository returns the repository that each victim starts with.
func killedRepository(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{"specs/s.md": "Old.\n", "old": "old\n", "made": "zero\n"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", "--template="}, {"add", "-A"},
		{"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"}} {
		c := exec.Command("git", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, out)
		}
	}
	return dir
}

// victim is a repository with its own server.
type victim struct {
	dir, url string
	asked    *atomic.Int64
}

// newVictim returns a victim whose server replies by the content of a request
// and not by its number: a lost request that is sent again has the same reply.
func newVictim(t *testing.T, template string) victim {
	v := victim{dir: t.TempDir(), asked: new(atomic.Int64)}
	if err := os.CopyFS(v.dir, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	use := &model.Usage{Input: 10, Output: 10}
	first := modeltest.NewServer(t, modeltest.Turn{Usage: use,
		Text: `{"create-or-update": {"specs/s.md": "New.\n", "made": "one\n", ".git/config": "mine\n"}}`})
	second := modeltest.NewServer(t, modeltest.Turn{Usage: use,
		Text: `{"create-or-update": {"made": "two\n"}, "delete": ["old"]}`})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("The check command failed")) {
			second.ServeHTTP(w, r)
		} else {
			first.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	v.url = s.URL
	return v
}

func (v victim) requests() int { return int(v.asked.Load()) }

// hone runs the program, and kills it at a point unless point is empty. The exit
// status of a killed program is -1.
func (v victim) hone(t *testing.T, point string, args ...string) (exit int, output string) {
	t.Helper()
	c := exec.Command("hone", args...)
	c.Dir = v.dir
	c.Env = append(os.Environ(), "HONE_TEST_KILL="+point, "OPENAI_BASE_URL="+v.url+"/v1", "GIT_CONFIG_GLOBAL="+os.DevNull, promptExit)
	out, err := c.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// tree returns the working tree without the files of git and hone.
func (v victim) tree(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" || d.Name() == ".hone":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		b, err := os.ReadFile(path)
		info, statErr := d.Info()
		if err = errors.Join(err, statErr); err == nil {
			files[strings.TrimPrefix(path, v.dir)] = info.Mode().String() + " " + string(b)
		}
		return err
	})
	config, readErr := os.ReadFile(filepath.Join(v.dir, ".git", "config"))
	if err = errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	files["/.git/config"] = string(config)
	return files
}

// lastEvents returns the events of the newest run of a directory.
func lastEvents(t *testing.T, dir string) []journal.Event {
	t.Helper()
	home, err := journal.FindHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	run, err := home.FindRun("last")
	if err != nil {
		t.Fatal(err)
	}
	events, err := home.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// facts counts the events that a journal must contain an exact number of times.
type facts struct {
	events, replies, approvals, applies, checks, changes, refusals, rounds, ends int
}

// facts reads the newest run; zero if the kill came before its start.
func (v victim) facts(t *testing.T) (f facts) {
	t.Helper()
	home, err := journal.FindHome(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	run, err := home.FindRun("last")
	var none *journal.NotFoundError
	if errors.As(err, &none) {
		return f
	}
	events, err := home.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	f.events = len(events)
	for _, e := range events {
		var c struct{ Verdict string }
		switch {
		case e.Type == "reply":
			f.replies++
		case e.Type == "round":
			f.rounds++
		case e.Type == "end":
			f.ends++
		case e.Type == "change":
			f.changes++
			if err := e.Decode(&c); err != nil {
				t.Fatal(err)
			}
			if c.Verdict == "deny" {
				f.refusals++
			}
		case e.Phase != journal.Record:
		case e.Type == "approval":
			f.approvals++
		case e.Type == "apply":
			f.applies++
		case e.Type == "check":
			f.checks++
		}
	}
	return f
}
