//go:build unix

package wall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"hone/internal/crashtest/waittest"
	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// shell returns a command that sh runs.
func shell(t *testing.T, script string) sandbox.Command {
	t.Helper()
	return sandbox.Command{Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: waittest.Limit}
}

func mustRun(t *testing.T, c sandbox.Command) sandbox.Result {
	t.Helper()
	r, err := None{Grace: 100 * time.Millisecond}.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		script, stdout, stderr, signal string
		exit                           int
	}{
		"success":               {script: "echo a; echo b >&2", stdout: "a\n", stderr: "b\n"},
		"failure":               {script: "exit 3", exit: 3},
		"a signal":              {script: "kill -9 $$", exit: -1, signal: "killed"},
		"another signal":        {script: "kill -SEGV $$", exit: -1, signal: "segmentation fault"},
		"no standard input":     {script: "cat; echo end", stdout: "end\n"},
		"no terminal":           {script: "(: </dev/tty) 2>/dev/null || echo none", stdout: "none\n"},
		"output that is binary": {script: `printf '\000\377'`, stdout: "\x00\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustRun(t, shell(t, c.script))
			if r.Exit != c.exit || r.Signal != c.signal || string(r.Stdout) != c.stdout || string(r.Stderr) != c.stderr || r.TimedOut || r.Discarded != 0 {
				t.Errorf("%+v\nstdout %q, stderr %q", r, r.Stdout, r.Stderr)
			}
			if r.Duration <= 0 {
				t.Errorf("it lasted %v", r.Duration)
			}
		})
	}
}

func TestRunDirAndEnv(t *testing.T) {
	t.Setenv("LEAK", "1")
	c := shell(t, `pwd; echo "$A-$LEAK"`)
	c.Env = append(c.Env, "A=1")
	dir, _ := filepath.EvalSymlinks(c.Dir)
	if r := mustRun(t, c); string(r.Stdout) != dir+"\n1-\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
	c = sandbox.Command{Argv: []string{"/bin/sh", "-c", `echo "$LEAK"`}, Dir: c.Dir}
	if r := mustRun(t, c); string(r.Stdout) != "\n" {
		t.Errorf("a nil environment is not empty: %q", r.Stdout)
	}
}

func TestFindProgram(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	runtest.Script(t, filepath.Join(dir, "tool"), "#!/bin/sh\necho here\n", 0o755)
	runtest.Script(t, filepath.Join(other, "tool"), "#!/bin/sh\necho there\n", 0o755)
	runtest.Script(t, filepath.Join(dir, "sub", "tool"), "#!/bin/sh\necho below\n", 0o755)
	t.Setenv("PATH", dir)
	for _, c := range []struct{ name, path, want string }{
		{"tool", "PATH=" + other, "there\n"},
		{"./tool", "PATH=" + other, "here\n"},
		{"sub/tool", "PATH=" + other, "below\n"},
		{filepath.Join(other, "tool"), "A=1", "there\n"},
		{"tool", "PATH=:.:sub:" + other, "there\n"},
	} {
		r := mustRun(t, sandbox.Command{Argv: []string{c.name}, Dir: dir, Env: []string{"PATH=/nowhere", c.path}})
		if string(r.Stdout) != c.want {
			t.Errorf("%s with %s: %q, want %q", c.name, c.path, r.Stdout, c.want)
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	runtest.Script(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o644)
	runtest.Script(t, filepath.Join(dir, "nohead"), "echo hello\n", 0o755)
	runtest.Script(t, filepath.Join(dir, "crlf"), "#!/bin/sh\r\necho\r\n", 0o755)
	for _, c := range []struct {
		argv []string
		dir  string
		err  error
		text string
	}{
		{[]string{"./gone"}, dir, fs.ErrNotExist, "start ./gone: there is no such file"},
		{[]string{"gone"}, dir, fs.ErrNotExist, "start gone: it is not on the PATH of the command's environment"},
		{[]string{"./plain"}, dir, fs.ErrPermission, "start ./plain: it is not executable (chmod +x makes it so)"},
		{[]string{"./nohead"}, dir, syscall.ENOEXEC, "start ./nohead: it is neither a program for this machine nor a script whose first line starts with #!"},
		{[]string{"./crlf"}, dir, fs.ErrNotExist, "start ./crlf: the interpreter that its first line names does not exist"},
		{[]string{"./"}, dir, syscall.EISDIR, "start ./: it is a directory"},
		{nil, dir, nil, "start a command: the command is empty"},
		{[]string{"./plain"}, "", nil, "start ./plain: no working directory was given"},
		{[]string{"./plain"}, filepath.Join(dir, "plain"), syscall.ENOTDIR, "start ./plain: working directory " + filepath.Join(dir, "plain") + ": not a directory"},
	} {
		_, err := None{}.Run(context.Background(), sandbox.Command{Argv: c.argv, Dir: c.dir})
		start, ok := errors.AsType[*sandbox.StartError](err)
		if !ok || c.err != nil && !errors.Is(err, c.err) || start.Error() != c.text {
			t.Errorf("%v: error %v (%T)", c.argv, err, err)
		}
	}
}

func TestCancelledBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := shell(t, "touch started")
	if _, err := (None{}).Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "started")); err == nil {
		t.Error("it was started")
	}
}

func TestOutputIsBounded(t *testing.T) {
	const gigabyte = 1 << 30
	c := shell(t, fmt.Sprintf("echo start; head -c %d /dev/zero; head -c 3000 /dev/zero >&2", gigabyte))
	c.MaxOutput = 1000
	r := mustRun(t, c)
	if len(r.Stdout) != 1000 || cap(r.Stdout) > 1000 || !bytes.HasPrefix(r.Stdout, []byte("start\n")) || len(r.Stderr) != 1000 {
		t.Errorf("kept %d (of %d) and %d", len(r.Stdout), cap(r.Stdout), len(r.Stderr))
	}
	if want := int64(gigabyte + 6 - 1000 + 2000); r.Discarded != want {
		t.Errorf("lost %d, want %d", r.Discarded, want)
	}
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestLive(t *testing.T) {
	var both, stderr bytes.Buffer
	c := shell(t, "echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c")
	c.Live, c.LiveErr, c.MaxOutput = &both, &stderr, 1
	mustRun(t, c)
	if both.String() != "a\nb\nc\n" || stderr.String() != "b\n" {
		t.Errorf("both %q, stderr %q", both.String(), stderr.String())
	}
	c.Live, c.MaxOutput = broken{}, 0
	if r := mustRun(t, c); string(r.Stdout) != "a\nc\n" {
		t.Errorf("with a broken writer: %q", r.Stdout)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	polite := `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done`
	stubborn := `trap '' TERM; echo ready; while :; do sleep 0.01; done`
	for name, c := range map[string]struct {
		script, stdout, signal string
		grace                  time.Duration
	}{
		"asked":    {polite, "ready\nbye\n", "", waittest.Limit},
		"stubborn": {stubborn, "ready\n", "killed", 200 * time.Millisecond},
		"plain":    {"echo ready; exec sleep 1000", "ready\n", "terminated", waittest.Limit},
	} {
		t.Run("cancel/"+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := shell(t, c.script)
			cmd.Live = runtest.OnWrite(cancel)
			r, err := None{Grace: c.grace}.Run(ctx, cmd)
			if err != nil || r.Exit != -1 || r.TimedOut || r.Signal != c.signal || string(r.Stdout) != c.stdout {
				t.Errorf("%v, %+v, stdout %q", err, r, r.Stdout)
			}
		})
	}
	t.Run("timeout", func(t *testing.T) {
		c := shell(t, stubborn)
		c.Timeout = 5 * time.Second
		if r := mustRun(t, c); !r.TimedOut || r.Exit != -1 || r.Signal != "killed" {
			t.Errorf("%+v", r)
		}
	})
}

// The entire process group gets the grace period, not only the command.
func TestGraceIsTheGroups(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := shell(t, `sh -c 'trap "sleep 0.2; echo tidied; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`)
	c.Live = runtest.OnWrite(cancel)
	r, err := None{Grace: waittest.Limit}.Run(ctx, c)
	if err != nil || string(r.Stdout) != "ready\ntidied\n" {
		t.Errorf("%v, stdout %q", err, r.Stdout)
	}
}

// A process that still writes when the command has exited may finish, because shells
// do not wait for a tee.
func TestTrailingOutput(t *testing.T) {
	r := mustRun(t, shell(t, `(sleep 0.01; echo late) & echo early`))
	if string(r.Stdout) != "early\nlate\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
}

func TestNothingIsLeftInThisProcess(t *testing.T) {
	mustRun(t, shell(t, "true"))
	goroutines, files := runtime.NumGoroutine(), runtest.OpenFiles(t)
	for range 20 {
		mustRun(t, shell(t, "echo a & exit 1"))
		c := shell(t, "read x")
		c.Stdin = strings.NewReader(strings.Repeat("a\n", runtest.Megabytes))
		mustRun(t, c)
		if _, err := (None{}).Run(context.Background(), sandbox.Command{Argv: []string{"./gone"}, Dir: "/", Stdin: c.Stdin}); err == nil {
			t.Fatal("a missing program was started")
		}
		if _, err := (None{}).Run(context.Background(), sandbox.Command{Argv: []string{"./gone"}, Dir: "/"}); err == nil {
			t.Fatal("a missing program was started")
		}
		if _, err := (None{}).Run(context.Background(), sandbox.Command{Argv: []string{os.Args[0], "\x00"}, Dir: "/"}); err == nil {
			t.Fatal("an argument with a NUL was passed")
		}
	}
	// A goroutine that has closed its channel may not be gone yet.
	if !waittest.Until(func() bool { return runtime.NumGoroutine() <= goroutines }) {
		t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), goroutines)
	}
	if n := runtest.OpenFiles(t); n > files {
		t.Errorf("%d open files, before %d", n, files)
	}
}
