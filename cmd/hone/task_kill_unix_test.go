//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/internal/crashtest"
	"hone/journal"
)

// TestKillTask kills the real process, as kill -9 does, before or after some
// events of a task of two loops with edits, commands and a review, and resumes it.
// With HONE_TEST_ALL set it does so before and after each event. The tree and the
// exit status must be those of a run that was not killed, no reply may be paid for
// twice, and a command that was cut off is not run again.
func TestKillTask(t *testing.T) {
	skipRace(t)
	t.Parallel()
	exit, out, whole := runTask(t, "")
	if exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	want := whole.files(t)
	if want["a.txt"] != "three\n" || want["b.txt"] != "new\n" {
		t.Fatalf("the run is not the one that is meant: %v\n%s", want, out)
	}
	replies, points := whole.count(t, "reply", "record"), 2*whole.count(t, "", "")
	if replies != 9 {
		t.Fatalf("%d replies\n%s", replies, out)
	}
	for n := range points {
		if !crashtest.IsSampled(n, points) {
			continue // each takes two processes; the loop's crash tests need none
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			exit, out, w := runTask(t, fmt.Sprint(n))
			if exit != -1 {
				t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
			}
			again := []string{"resume", "last"}
			if n < 2 { // nothing is recorded
				again = w.args
			}
			if exit, out := honeIn(t, w.dir, nil, again...); exit != 0 {
				t.Fatalf("%s: exit status %d\n%s", again[0], exit, out)
			}
			if diff := cmp.Diff(want, w.files(t)); diff != "" {
				t.Errorf("the tree differs (-want +got):\n%s", diff)
			}
			if got := w.count(t, "reply", "record"); got != replies {
				t.Errorf("%d replies on record, want %d", got, replies)
			}
			if got := w.count(t, "reserve", ""); got > replies+1 {
				t.Errorf("%d calls were made for %d replies", got, replies)
			}
			log, _ := os.ReadFile(filepath.Join(w.dir, "ran.log"))
			if runs := strings.Count(string(log), "ran\n"); runs > 1 {
				t.Errorf("the command ran %d times", runs)
			}
		})
	}
}

// TestKillTaskAgent kills the real process right before and right after an
// agent's session is recorded. After a kill before the record, the agent starts
// a second session, whose prompt mentions the first. In both cases the facts
// contain what all sessions did.
func TestKillTaskAgent(t *testing.T) {
	skipRace(t)
	t.Parallel()
	exit, out, whole := runAgentTask(t, "")
	if exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	record := whole.first(t, "reply")
	for _, c := range []struct{ name, point, ran, told string }{
		{"before", fmt.Sprint(2 * record), "ran\nran\n", "interrupted, because the program that ran it stopped; it is not known how far it got"},
		{"after", fmt.Sprint(2*record + 1), "ran\n", "Loop 1 of 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exit, out, w := runAgentTask(t, c.point)
			if exit != -1 {
				t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
			}
			if exit, out := honeIn(t, w.dir, nil, "resume", "last"); exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, out)
			}
			files := w.files(t)
			if files["made.txt"] != c.ran || !strings.Contains(files["told"], c.told) {
				t.Errorf("made.txt: %q\n%s", files["made.txt"], files["told"])
			}
			if _, shown := honeIn(t, w.dir, nil, "show", "last", "--full"); !strings.Contains(shown, "\nFiles created: made.txt, told\n") {
				t.Errorf("the reviewer was not told what was made:\n%s", shown)
			}
			if got := w.count(t, "reply", "record"); got != 3 {
				t.Errorf("%d replies on record", got)
			}
		})
	}
}

// runAgentTask runs a task whose executor is an agent, and kills it at a point
// unless point is empty.
func runAgentTask(t *testing.T, point string) (exit int, out string, w taskRun) {
	t.Helper()
	w.dir = t.TempDir()
	replies := filepath.Join(t.TempDir(), "replies")
	err := errors.Join(
		os.Mkdir(filepath.Join(w.dir, ".config"), 0o755),
		os.WriteFile(filepath.Join(w.dir, ".config", "hone.toml"), []byte("[commands.worker]\nargv = [\"sh\", \"-c\", \"cat >told; echo ran >>made.txt; echo STATUS: INCOMPLETE\"]\n"), 0o644),
		os.WriteFile(replies, []byte("=== reply ===\n(the agent's)\n=== reply ===\n=== call write ===\n"+
			`{"path": ".codescribe/loop/review_output.toml", "content": "loop = 1\nblocker = \"\"\n"}`+
			"\n=== reply ===\n<final_answer>Reviewed.</final_answer>\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	trustAll(t, w.dir)
	w.args = []string{"task", "make it", "-m", "command/worker", "--reviewer-model", "script/" + replies, "--sandbox", "none"}
	exit, out = honeIn(t, w.dir, []string{"HONE_TEST_KILL=" + point}, w.args...)
	return exit, out, w
}

// first returns the index of the run's first event of a type.
func (w taskRun) first(t *testing.T, kind journal.Type) int {
	t.Helper()
	for i, e := range lastEvents(t, w.dir) {
		if e.Type == kind {
			return i
		}
	}
	t.Fatalf("there is no %s", kind)
	return 0
}

// taskRun is a directory that a task runs in.
type taskRun struct {
	dir  string
	args []string
}

// runTask runs a task, and kills it at a point unless point is empty.
func runTask(t *testing.T, point string) (exit int, out string, w taskRun) {
	t.Helper()
	w.dir = t.TempDir()
	replies := filepath.Join(t.TempDir(), "replies")
	for name, text := range map[string]string{
		"a.txt": "one\n", "run.sh": "#!/bin/sh\necho ran >>ran.log\n",
		"TASK.toml": "[tools]\nbash = [\"sh\"]\n\n[[chat.user]]\ncontent = 'Make a.txt say three.'\n",
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(replies, []byte(workReplies), 0o644); err != nil {
		t.Fatal(err)
	}
	w.args = []string{"task", "TASK.toml", "-m", "script/" + replies, "--sandbox", "none", "--check", "grep -q three a.txt"}
	exit, out = honeIn(t, w.dir, []string{"HONE_TEST_KILL=" + point}, w.args...)
	return exit, out, w
}

const workReplies = `=== reply ===
=== call read ===
{"path": "a.txt"}
=== call glob ===
{"pattern": "*"}
=== reply ===
=== call edit ===
{"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}
=== call write ===
{"path": "b.txt", "content": "new\n"}
=== call bash ===
{"command": "sh run.sh"}
=== reply ===
<final_answer>
STATUS: INCOMPLETE
NEXT STEPS:
- say three
</final_answer>
=== reply ===
=== call bash ===
{"command": "grep -c two a.txt"}
=== call write ===
{"path": ".codescribe/loop/review_output.toml", "content": "loop = 1\nsummary = \"two\"\nblocker = \"\"\n\n[[pending]]\nitem = \"say three\"\n"}
=== reply ===
<final_answer>Reviewed.</final_answer>
=== reply ===
=== call read ===
{"path": "a.txt"}
=== reply ===
=== call edit ===
{"path": "a.txt", "edits": [{"oldText": "two", "newText": "three"}]}
=== reply ===
Nearly.
=== reply ===
<final_answer>
STATUS: COMPLETE
</final_answer>
`

// files returns the tree without the files of hone and the loop, whose times and
// ids differ, and without files that only some of the runs create.
func (w taskRun) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || e.Name() == "ran.log" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

// count returns the number of events of a type and a phase; an empty phase
// counts all.
func (w taskRun) count(t *testing.T, kind journal.Type, phase journal.Phase) (n int) {
	t.Helper()
	for _, e := range lastEvents(t, w.dir) {
		if kind == "" || e.Type == kind && (phase == "" || e.Phase == phase) {
			n++
		}
	}
	return n
}
