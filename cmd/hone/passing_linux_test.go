package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hone/internal/crashtest"
	"hone/internal/crashtest/faulttest"
)

// passing are errors that may pass. The last is one that hone does not know.
var passing = []unix.Errno{unix.EIO, unix.ESTALE, unix.ETIMEDOUT, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOSPC, unix.EAGAIN, unix.EUCLEAN}

// passingFiles is the tree of every scene. No run touches the folder lib.
var passingFiles = map[string]string{
	"specs/s.md": "Two.\n", "src/a.txt": "one\n", "src/b.txt": "keep\n", "old.txt": "old\n", "lib/u.txt": "untouched\n", "lib/deep/v.txt": "untouched\n",
	".gitignore": "*.tmp\n", "x.tmp": "ignored\n", "query.txt": "Say two.\n", "build.sh": "grep -q two src/a.txt\n",
	"TASK.toml": "[[chat.user]]\ncontent = 'Make src/a.txt say two.'\n",
}

const byTools = `=== reply ===
=== call read ===
{"path": "src/a.txt"}
=== call grep ===
{"pattern": "one"}
=== call glob ===
{"pattern": "*"}
=== reply ===
=== call edit ===
{"path": "src/a.txt", "edits": [{"oldText": "one", "newText": "two"}]}
=== call write ===
{"path": "new/n.txt", "content": "new\n"}
=== reply ===
<final_answer>
STATUS: COMPLETE
</final_answer>
=== reply ===
<final_answer>
STATUS: COMPLETE
</final_answer>
`

const byEdits = `=== reply ===
{"create-or-update": {"src/a.txt": "two\n", "new/n.txt": "new\n"}, "delete": ["old.txt"]}
`

const byBlocks = "=== reply ===\n^^^src/a.txt\ntwo\n^^^end\n^^^new/n.txt\nnew\n^^^end\n"

// passingScenes are small runs, each with its model's replies.
var passingScenes = []struct {
	name, replies string
	args          []string
}{
	{"fix", byTools, []string{"fix", "--check", "grep -q two src/a.txt"}},
	{"task", byTools, []string{"task", "TASK.toml", "--check", "grep -q two src/a.txt"}},
	{"implement", byBlocks, []string{"implement"}},
	{"reconcile", byEdits, []string{"reconcile", "--approve", "all", "--check", "grep -q two src/a.txt"}},
}

// passingRun is one run, in a tree of its own.
type passingRun struct {
	victim
	args []string
}

// TestErrorsThatPass makes each look at a file fail once, in a run, a resume and an undo. The
// run is done with the model's change, or it stops with status 5, and then a resume
// reaches the same tree; undo restores the first one (ruling G22). With HONE_TEST_ALL set it
// tries each look with each error, otherwise a few.
func TestErrorsThatPass(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for _, s := range passingScenes {
		template, replies := passingTemplate(t), filepath.Join(t.TempDir(), "replies")
		if err := os.WriteFile(replies, []byte(s.replies), 0o644); err != nil {
			t.Fatal(err)
		}
		args := append(s.args, "-m", "script/"+replies, "--sandbox", "none")
		start := func(t *testing.T) passingRun { return passingRun{victim{dir: template}, args}.copied(t) }
		quiet := start(t)
		before := quiet.state(t)
		if exit, out := quiet.hone(t, "", quiet.args...); exit != 0 {
			t.Fatalf("exit status %d\n%s", exit, out)
		}
		after := quiet.state(t)
		killed := start(t)
		killed.hone(t, "apply", killed.args...)

		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			injectAll(t, func(t *testing.T, fault *fault) {
				r := start(t)
				r.mustSucceed(t, r.faulty(t, fault, r.args...), after, r.args...)
				r.mustSucceed(t, r.outcome(t, "undo", "last"), before)
			})
		})
		t.Run(s.name+" resumed", func(t *testing.T) {
			t.Parallel()
			injectAll(t, func(t *testing.T, fault *fault) {
				r := killed.copied(t)
				r.mustSucceed(t, r.faulty(t, fault, "resume", "last"), after)
				r.mustSucceed(t, r.outcome(t, "undo", "last"), before)
			})
		})
		t.Run(s.name+" undone", func(t *testing.T) {
			t.Parallel()
			injectAll(t, func(t *testing.T, fault *fault) {
				r := quiet.copied(t)
				r.mustSucceed(t, r.faulty(t, fault, "undo", "last"), before, "undo", "last")
			})
		})
	}
}

// copied returns the same run in a copy of its tree.
func (r passingRun) copied(t *testing.T) passingRun {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if out, err := exec.Command("cp", "-a", r.dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	return passingRun{victim{dir: dir}, r.args}
}

// fault is an error for one look of a process.
type fault struct {
	at    int // the look, from 0; less than 0 means none
	errno unix.Errno
	looks int            // so far
	hit   faulttest.Call // the look that failed
}

func (f *fault) fail(c faulttest.Call) unix.Errno {
	f.looks++
	if f.looks-1 != f.at {
		return 0
	}
	f.hit = c
	return f.errno
}

// injectAll plays a scene with a fault at one look after another, and with none first.
func injectAll(t *testing.T, play func(*testing.T, *fault)) {
	none := fault{at: -1}
	play(t, &none)
	if none.looks < 20 {
		t.Fatalf("there are only %d looks", none.looks)
	}
	const most = 12
	for i := range none.looks * len(passing) {
		look := i / len(passing)
		if every := none.looks / most; !crashtest.All() && (look%every != every/2 || i%len(passing) != look/every%len(passing)) {
			continue
		}
		f := fault{at: look, errno: passing[i%len(passing)]}
		t.Run(fmt.Sprintf("%d %s", f.at, unix.ErrnoName(f.errno)), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("%s of %s failed", f.hit.Name, f.hit.Path)
				}
			}()
			play(t, &f)
		})
	}
}

func passingTemplate(t *testing.T) string {
	dir := crashtest.Workspace(t, passingFiles)
	for _, args := range [][]string{{"init", "-q", "-b", "main", "--template="}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"}} {
		c := exec.Command("git", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, out)
		}
	}
	return dir
}

// outcome is how a process ended.
type outcome struct {
	exit   int
	output string
}

func (r passingRun) outcome(t *testing.T, args ...string) outcome {
	exit, out := r.hone(t, "", args...)
	return outcome{exit, out}
}

// faulty runs the program with a fault.
func (r passingRun) faulty(t *testing.T, f *fault, args ...string) outcome {
	t.Helper()
	c := exec.Command("hone", args...)
	c.Dir, c.Env = r.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, promptExit)
	out, err := faulttest.Run(t, c, []string{r.dir, os.Getenv("XDG_STATE_HOME")}, f.fail)
	var failed *exec.ExitError
	switch {
	case err == nil:
		return outcome{0, string(out)}
	case errors.As(err, &failed):
		return outcome{failed.ExitCode(), string(out)}
	}
	t.Fatal(err)
	return outcome{}
}

// mustSucceed requires that a process succeeded with a tree, or that it stopped because of its fault and
// the next does: the arguments again, or a resume if there are none or a run is recorded.
func (r passingRun) mustSucceed(t *testing.T, o outcome, want map[string]string, again ...string) {
	t.Helper()
	first, advised := o, true
	if o.exit == 5 {
		if len(again) == 0 || again[0] != "undo" && r.isRecorded() {
			again = []string{"resume", "last"}
		}
		advised = strings.Contains(o.output, "then run: hone resume") || strings.Contains(o.output, "then try again")
		o = r.outcome(t, again...)
	}
	if got := r.state(t); o.exit != 0 || !advised || !cmp.Equal(want, got) || strings.Contains(first.output+o.output, "outside the run") {
		t.Errorf("exit status %d%s\n%s\n-- then, %d:\n%s", first.exit, cmp.Diff(want, got), first.output, o.exit, o.output)
	}
}

func (r passingRun) isRecorded() bool {
	found, _ := filepath.Glob(filepath.Join(r.dir, ".hone", "runs", "*.jsonl"))
	return slices.ContainsFunc(found, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 0 // an empty one has no recorded start
	})
}

// state returns the tree without what the loops record in it.
func (r passingRun) state(t *testing.T) map[string]string {
	files := r.tree(t)
	for name := range files {
		if strings.HasPrefix(name, "/logs/") || strings.HasPrefix(name, "/.codescribe/") {
			delete(files, name)
		}
	}
	return files
}
