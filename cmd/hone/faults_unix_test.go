//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/internal/crashtest"
	"hone/journal"
)

// TestFaultKill kills the real process, as kill -9 does, at random moments, and
// resumes the run, to be killed again. The result must equal that of a run that
// was not killed, and each kill may cost at most one more model call.
func TestFaultKill(t *testing.T) {
	skipRace(t)
	t.Parallel()
	template := killedRepository(t)
	t.Run("reconcile", func(t *testing.T) {
		compareKilledRuns(t, 12, func(t *testing.T) killableRun {
			v := newVictim(t, template)
			return killableRun{args: reconcileArgs, run: v.command, state: v.tree, paid: v.requests}
		})
	})
	t.Run("implement", func(t *testing.T) {
		compareKilledRuns(t, 12, func(t *testing.T) killableRun {
			b := newBuilder(t)
			return killableRun{args: []string{"implement", "--base-url", b.url}, run: b.command, state: b.files, paid: b.requests}
		})
	})
	t.Run("task", func(t *testing.T) {
		compareKilledRuns(t, 12, func(t *testing.T) killableRun {
			_, _, w := runTask(t, "0") // killed before anything is recorded
			return killableRun{args: w.args, run: w.command, state: w.files, paid: func() int { return w.count(t, "reserve", "") }}
		})
	})
}

// compareKilledRuns compares the results of killed runs of a scene with a run
// that was not killed.
func compareKilledRuns(t *testing.T, runs int, scene func(t *testing.T) killableRun) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	whole, began := scene(t), time.Now()
	if out, err := whole.run(whole.args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took, want, paid := time.Since(began), whole.state(t), whole.paid()
	if !crashtest.All() {
		runs = (runs + 2) / 3 // the loops' crash tests kill at known points, in one process
	}
	for life := range runs {
		t.Run(fmt.Sprint(life), func(t *testing.T) {
			t.Parallel()
			m := scene(t)
			kills := m.runKilled(t, rand.New(rand.NewPCG(seed, uint64(life))), took)
			if diff := cmp.Diff(want, m.state(t)); diff != "" {
				t.Errorf("after %d kills it came to something else (-want +got):\n%s", kills, diff)
			}
			if got := m.paid(); got > paid+kills {
				t.Errorf("%d model calls were paid after %d kills, and %d are enough", got, kills, paid)
			}
		})
	}
}

// killableRun is a run that can be killed and resumed.
type killableRun struct {
	args  []string
	run   func(args ...string) *exec.Cmd // the program on its workspace
	state func(t *testing.T) map[string]string
	paid  func() int         // model calls
	after func(t *testing.T) // inspects the state after a kill; may be nil
}

// runKilled runs and resumes the run until it is done, and kills it up to three
// times. took is how long the run takes without a kill.
func (m killableRun) runKilled(t *testing.T, r *rand.Rand, took time.Duration) (kills int) {
	t.Helper()
	for {
		args := m.args
		if hasStarted(t, m.run().Dir) {
			args = []string{"resume", "last"}
		}
		c := m.run(args...)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var timer *time.Timer
		if kills < 3 {
			timer = time.AfterFunc(time.Duration(r.Int64N(int64(took))), func() { _ = c.Process.Kill() })
		}
		err := c.Wait()
		if timer != nil {
			timer.Stop()
		}
		if err == nil {
			return kills
		}
		if c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s after %d kills: %v\n%s", args[0], kills, err, out.String())
		}
		kills++
		if m.after != nil {
			m.after(t)
		}
	}
}

// hasStarted reports whether a run has started in dir.
func hasStarted(t *testing.T, dir string) bool {
	t.Helper()
	home, err := journal.FindHome(dir)
	if err != nil {
		return false
	}
	defer home.Close()
	run, err := home.FindRun("last")
	if err != nil {
		return false
	}
	events, err := home.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	return len(events) > 0
}

// command returns a command that runs hone in the victim's directory.
func (v victim) command(args ...string) *exec.Cmd {
	c := exec.Command("hone", args...)
	c.Dir = v.dir
	c.Env = append(os.Environ(), "HONE_TEST_KILL=", "OPENAI_BASE_URL="+v.url+"/v1", "GOOGLE_GEMINI_BASE_URL="+v.url, "GIT_CONFIG_GLOBAL="+os.DevNull, promptExit)
	return c
}

// command returns a command that runs hone in the task's directory.
func (w taskRun) command(args ...string) *exec.Cmd {
	return victim{dir: w.dir}.command(args...)
}

// TestFaultTrickle: if a provider sends its response in small pieces, the run
// does not wait longer than the limit for a complete response.
func TestFaultTrickle(t *testing.T) {
	t.Parallel()
	v := victim{dir: t.TempDir(), asked: new(atomic.Int64)}
	if err := errors.Join(os.CopyFS(v.dir, os.DirFS(killedRepository(t))), os.Mkdir(filepath.Join(v.dir, ".config"), 0o755),
		os.WriteFile(filepath.Join(v.dir, ".config", "hone.toml"), []byte("[model]\nattempts = 1\nidle-timeout = \"1m\"\ntotal-timeout = \"5s\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := w.Write([]byte(": still thinking\n")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}))
	defer func() { s.CloseClientConnections(); s.Close() }()
	v.url = s.URL
	exit, out := v.hone(t, "", reconcileArgs...)
	if exit != 5 || !strings.Contains(out, "failed: openai/x did not answer: ") || !strings.Contains(out, "the response was not complete after 5s") ||
		!strings.Contains(out, "hone resume last") || v.requests() != 1 {
		t.Errorf("exit status %d after %d requests\n%s", exit, v.requests(), out)
	}
}

// TestFaultSize: large files, replies and check output are handled in bounded
// memory, and hone reports what it omits.
func TestFaultSize(t *testing.T) {
	skipRace(t)
	if testing.Short() {
		t.Skip("SKIPPED: it takes half a minute")
	}
	thousands, most := 30, int64(160)
	if crashtest.All() {
		thousands, most = 100, 300
	}
	for _, c := range []struct {
		name    string
		furnish string // run in the repository by a shell
		args    []string
		exit    int
		says    string
		most    int64 // memory in MB
	}{
		{"a file of 400 MB", `truncate -s 400M big`, []string{"reconcile", "--check", "true"}, 0, `(?m)^done: true passes`, 100},
		{fmt.Sprintf("%d 000 files", thousands), fmt.Sprintf(`mkdir -p m/1; cd m; (cd 1; seq 1000 | xargs touch); for d in $(seq 2 %d); do cp -al 1 $d 2>/dev/null || cp -R 1 $d; done`, thousands),
			[]string{"reconcile", "--check", "true", "--max-tokens", "100000000"}, 0, `(?m)^done: true passes`, most},
		{"a check that prints 400 MB", "true",
			[]string{"reconcile", "--rounds", "1", "--check", "yes 0123456789abcdef0123456789abcdef0123456789abcdef | head -c 400000000; exit 1"}, 1,
			`(?m)… \d+ more lines: hone show last --full$`, 350},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := victim{dir: t.TempDir()}
			replies := filepath.Join(t.TempDir(), "replies")
			err := errors.Join(os.CopyFS(v.dir, os.DirFS(killedRepository(t))),
				os.WriteFile(replies, []byte("=== reply ===\n{\"create-or-update\": {\"made\": \"one\\n\"}}\n"), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			furnish := exec.Command("sh", "-c", c.furnish)
			furnish.Dir = v.dir
			if out, err := furnish.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			run := v.command(append(c.args, "-m", "script/"+replies)...)
			out, _ := run.CombinedOutput()
			if got := run.ProcessState.ExitCode(); got != c.exit || !regexp.MustCompile(c.says).Match(out) {
				t.Errorf("exit status %d\n%s", got, last(out, 2000))
			}
			if most := memory(run.ProcessState); most > c.most<<20 {
				t.Errorf("it took %d MB of memory", most>>20)
			}
			if made, err := os.ReadFile(filepath.Join(v.dir, "made")); err != nil || string(made) != "one\n" {
				t.Errorf("made: %q, %v", made, err)
			}
		})
	}
}

// memory returns the peak memory of a process in bytes. It is at least what the tests themselves had when they started
// the process, so tests that call it do not run beside those that are parallel.
func memory(s *os.ProcessState) int64 {
	most := int64(s.SysUsage().(*syscall.Rusage).Maxrss)
	if runtime.GOOS == "darwin" {
		return most
	}
	return most << 10
}

func last(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
