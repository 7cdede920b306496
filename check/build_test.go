//go:build unix

package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/internal/crashtest/waittest"
)

// builder returns a project whose build.sh is a script, and what StoreOutput
// received.
func builder(t *testing.T, script string) (c BuildConfig, stored *string) {
	t.Helper()
	stored = new(string)
	c = BuildConfig{Script: "build.sh", Program: Program{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute},
		StoreOutput: func(output io.Reader) error {
			b, err := io.ReadAll(output)
			*stored = string(b)
			return err
		}}
	if err := os.WriteFile(filepath.Join(c.Dir, c.Script), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return c, stored
}

func TestBuild(t *testing.T) {
	for name, c := range map[string]struct {
		script, stored string
		passes         bool
	}{
		"success": {script: "#!/bin/sh\necho out; echo err >&2\n", passes: true,
			stored: "STDOUT:\nout\n\n\nSTDERR:\nerr\n\n"},
		"failure": {script: "#!/bin/sh\necho out; echo err >&2; exit 7\n",
			stored: "STDOUT:\nout\n\n\nSTDERR:\nerr\n\n\nbuild.sh: exit status 7\n"},
		"no output": {script: "#!/bin/sh\nexit 1\n",
			stored: "STDOUT:\n\n\nSTDERR:\n\n\nbuild.sh: exit status 1\n"},
		"not UTF-8": {script: "#!/bin/sh\nprintf 'a\\377'; echo err >&2; exit 1\n",
			stored: "STDOUT:\na\uFFFD\n\nSTDERR:\nerr\n\n\nbuild.sh: exit status 1\n"},
		"a signal": {script: "#!/bin/sh\nkill -9 $$\n",
			stored: "STDOUT:\n\n\nSTDERR:\n\n\nbuild.sh: it was killed by a signal (killed)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b, stored := builder(t, c.script)
			found := ask(t, Build(runner, b))
			var want []Finding
			if !c.passes {
				want = []Finding{{Source: SourceBuild, Text: c.stored}}
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.stored, *stored); diff != "" {
				t.Errorf("stored: %s", diff)
			}
		})
	}
}

// TestBuildRunsInItsDirectory: ruling C12, also for a script that is not
// executable.
func TestBuildRunsInItsDirectory(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0o644} {
		b, stored := builder(t, "#!/usr/bin/env bash\n[[ -f build.sh ]] && pwd -P\n")
		if err := os.Chmod(filepath.Join(b.Dir, b.Script), mode); err != nil {
			t.Fatal(err)
		}
		root, err := filepath.EvalSymlinks(b.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if found := ask(t, Build(runner, b)); found != nil || !strings.Contains(*stored, root+"\n") {
			t.Errorf("mode %v: %+v, stored %q", mode, found, *stored)
		}
	}
}

// TestBuildThatCannotRun: such a build says nothing about the tree.
func TestBuildThatCannotRun(t *testing.T) {
	for name, spoil := range map[string]func(script string) error{
		"missing":        os.Remove,
		"a folder":       func(s string) error { return errors.Join(os.Remove(s), os.Mkdir(s, 0o755)) },
		"no interpreter": func(s string) error { return os.WriteFile(s, []byte("#!/nowhere/at/all\n"), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			b, stored := builder(t, "#!/bin/sh\n")
			if err := spoil(filepath.Join(b.Dir, b.Script)); err != nil {
				t.Fatal(err)
			}
			found := ask(t, Build(runner, b))
			if len(found) != 1 || !found[0].Broken || !strings.HasPrefix(found[0].Text, "build.sh could not be run: ") || found[0].Text != *stored {
				t.Errorf("%+v, stored %q", found, *stored)
			}
		})
	}
}

// TestBuildEndsAllItsChildren: ruling C11. The pipe ends when no process has it
// open for writing.
func TestBuildEndsAllItsChildren(t *testing.T) {
	b, stored := builder(t, `#!/bin/sh
exec 3>held
echo begun >&3
(trap '' TERM; while :; do sleep 1000; done) &
sh -c 'sleep 1000 & wait' &
wait
`)
	b.Timeout = 5 * time.Second
	held := filepath.Join(b.Dir, "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		b, err := os.ReadFile(held)
		read <- fmt.Sprint(string(b), err)
	}()
	found := ask(t, Build(runner, b))
	if len(found) != 1 || found[0].Broken || !strings.HasSuffix(*stored, "build.sh: it did not finish within 5s and was stopped. It printed nothing: it may hang, or it may still have been compiling. The first build of a run is slow if the caches behind the walls are empty\n") {
		t.Errorf("%+v", found)
	}
	select {
	case got := <-read:
		if got != "begun\n<nil>" {
			t.Errorf("read %q", got)
		}
	case <-time.After(waittest.Limit):
		t.Error("a child of the build is still running")
	}
}

// TestBuildOutputIsCutInTheMiddle: ruling C11. StoreOutput receives everything.
func TestBuildOutputIsCutInTheMiddle(t *testing.T) {
	b, stored := builder(t, "#!/bin/sh\nseq 1 20000\necho the end >&2\nexit 1\n")
	b.MaxText = 1000
	text := ask(t, Build(runner, b))[0].Text
	m := regexp.MustCompile(`(?s)^(.*)\n\[\.\.\. (\d+) bytes omitted \.\.\.\]\n(.*)$`).FindStringSubmatch(text)
	if m == nil || len(text) > 1100 || !strings.HasPrefix(m[1], "STDOUT:\n1\n2\n") || !strings.HasSuffix(m[3], "the end\n\n\nbuild.sh: exit status 1\n") {
		t.Fatalf("%d bytes:\n%s", len(text), text)
	}
	if left, _ := strconv.Atoi(m[2]); left != len(*stored)-len(m[1])-len("\n")-len(m[3]) {
		t.Errorf("%d of %d bytes are said to be omitted, but the parts have %d and %d", left, len(*stored), len(m[1]), len(m[3]))
	}
	if !strings.Contains(*stored, "\n9999\n10000\n10001\n") {
		t.Error("the stored output is incomplete")
	}
}

// TestBuildThatNeverStopsTalking: the finding has what fits into memory,
// StoreOutput receives everything except secrets, and no temporary file
// remains.
func TestBuildThatNeverStopsTalking(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: 200 MB through pipes")
	}
	b, stored := builder(t, "#!/bin/sh\nhead -c 200000000 /dev/zero | tr '\\0' '\\n'\necho the end\necho a secret >&2\nexit 1\n")
	b.Redact = hide("secret")
	t.Setenv("TMPDIR", t.TempDir())
	text := ask(t, Build(runner, b))[0].Text
	lost := 200_000_000 + len("the end\n") - 64<<20
	if want := fmt.Sprintf("[... %d more bytes followed; they are only in the log ...]", lost); !strings.Contains(text, want) || len(text) > MaxBuildText+200 {
		t.Errorf("%d bytes, without %q: %q", len(text), want, text[max(0, len(text)-200):])
	}
	if !strings.HasSuffix(*stored, "\n\nthe end\n\n\nSTDERR:\na ***\n\n\nbuild.sh: exit status 1\n") || len(*stored) < 200_000_000 {
		t.Errorf("%d bytes are stored: %q", len(*stored), (*stored)[max(0, len(*stored)-100):])
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestBuildRedacts: ruling G6. No secret leaves the check.
func TestBuildRedacts(t *testing.T) {
	var seen bytes.Buffer
	b, stored := builder(t, "#!/bin/sh\necho a secret\necho another secret >&2\nexit 1\n")
	b.Redact, b.Live = hide("secret"), &seen
	found := ask(t, Build(runner, b))
	if text := found[0].Text + *stored + seen.String(); strings.Contains(text, "secret") || strings.Count(text, "***") != 6 {
		t.Error(text)
	}
}

func TestBuildCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b, stored := builder(t, "#!/bin/sh\necho begun; sleep 1000\n")
	b.Live = onWrite(cancel)
	found, err := Build(runner, b)(ctx)
	if found != nil || !errors.Is(err, context.Canceled) || *stored != "" {
		t.Errorf("%+v, %v, stored %q", found, err, *stored)
	}
}

// TestBuildThatCannotBeKept: a full disk says nothing about the tree.
func TestBuildThatCannotBeKept(t *testing.T) {
	b, _ := builder(t, "#!/bin/sh\n")
	b.StoreOutput = func(io.Reader) error { return syscall.ENOSPC }
	if found, err := Build(runner, b)(context.Background()); found != nil || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%+v, %v", found, err)
	}
	b.StoreOutput = nil
	if found := ask(t, Build(runner, b)); found != nil {
		t.Errorf("%+v", found)
	}
}
