package wall

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hone/internal/crashtest/waittest"
	"hone/internal/transient"
	"hone/sandbox"
	"hone/sandbox/internal/process"
	"hone/sandbox/internal/runtest"
)

// system returns a policy that shows only the system's programs.
func system(wall sandbox.Wall) sandbox.Policy {
	return sandbox.Policy{Wall: wall, Read: []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/etc/passwd", "/etc/group"}}
}

// everyWall runs a test behind each wall that is available here, with a policy that
// the test may extend. With -short it leaves out the walls that other programs build:
// what they add happens in other processes, where the race detector sees nothing.
func everyWall(t *testing.T, add func(*sandbox.Policy), test func(t *testing.T, w *Walls, dir string)) {
	walls := []sandbox.Wall{sandbox.Hidden, sandbox.Landlock, sandbox.NoWall}
	if !testing.Short() {
		walls = append(walls, sandbox.Bubblewrap, sandbox.Firejail)
	}
	for _, wall := range walls {
		t.Run(string(wall), func(t *testing.T) {
			dir := must(filepath.EvalSymlinks(t.TempDir()))
			p := system(wall)
			p.Write = []string{dir}
			if add != nil {
				add(&p)
			}
			w, err := Build(context.Background(), p)
			if errors.As(err, new(*sandbox.WallError)) {
				t.Skip("SKIPPED: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.grace = 100 * time.Millisecond
			defer w.Close()
			test(t, w, dir)
		})
	}
}

// usable returns the path of the program that builds a wall, if that works here.
func usable(wall sandbox.Wall) (string, error) {
	w, err := Build(context.Background(), system(wall))
	if err != nil {
		return "", err
	}
	s, err := w.spec.current()
	w.Close()
	return s.Wrapper[0], err
}

func behind(t *testing.T, w *Walls, dir, script string) sandbox.Result {
	t.Helper()
	r, err := w.Run(context.Background(), inside(dir, script))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func inside(dir, script string) sandbox.Command {
	return sandbox.Command{Argv: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Timeout: waittest.Limit}
}

func TestBehindWalls(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		for name, c := range map[string]struct {
			script, stdout, stderr, signal string
			exit                           int
		}{
			"success":           {script: "echo a; echo b >&2", stdout: "a\n", stderr: "b\n"},
			"failure":           {script: "exit 3", exit: 3},
			"a signal":          {script: "kill -9 $$", exit: -1, signal: "killed"},
			"another signal":    {script: "kill -SEGV $$", exit: -1, signal: "segmentation fault"},
			"no standard input": {script: "cat; echo end", stdout: "end\n"},
			"no terminal":       {script: "(: </dev/tty) 2>/dev/null || echo none", stdout: "none\n"},
			"pipes":             {script: "yes | head -3 | tr y n", stdout: "n\nn\nn\n"},
			"not UTF-8":         {script: "printf '\\351\xe9' | od -An -c | tr -d ' '", stdout: "351351\n"},
			"its folder":        {script: "pwd; touch x && ls", stdout: dir + "\nx\n"},
			"late output":       {script: "(sleep 0.1; echo late) & echo early", stdout: "early\nlate\n"},
			"only its group":    {script: "kill -TERM 0; sleep 9", exit: -1, signal: "terminated"},
			"devices":           {script: "echo a >/dev/null; head -c 3 /dev/zero | wc -c; echo b >/dev/stdout", stdout: "3\nb\n"},
		} {
			t.Run(name, func(t *testing.T) {
				r := behind(t, w, dir, c.script)
				if r.Exit != c.exit || r.Signal != c.signal || string(r.Stdout) != c.stdout || string(r.Stderr) != c.stderr || r.TimedOut || r.Discarded != 0 || r.Duration <= 0 {
					t.Errorf("exit %d, signal %q, timed out %v, lost %d\nstdout %q\nstderr %q", r.Exit, r.Signal, r.TimedOut, r.Discarded, r.Stdout, r.Stderr)
				}
			})
		}
	})
}

func TestBehindWallsStartErrors(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		runtest.Script(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o644)
		runtest.Script(t, filepath.Join(dir, "nohead"), "echo hello\n", 0o755)
		for _, c := range []struct {
			argv []string
			dir  string
			err  error
			text string
		}{
			{[]string{"./gone"}, dir, fs.ErrNotExist, "start ./gone: there is no such file"},
			{[]string{"gone"}, dir, fs.ErrNotExist, "start gone: it is not on the PATH of the command's environment"},
			{[]string{"./plain"}, dir, fs.ErrPermission, "start ./plain: it is not executable (chmod +x makes it so)"},
			{[]string{"./nohead"}, dir, nil, "start ./nohead: it is neither a program for this machine nor a script whose first line starts with #!"},
			{nil, dir, nil, "start a command: the command is empty"},
			{[]string{"sh"}, "", nil, "start sh: no working directory was given"},
		} {
			_, err := w.Run(context.Background(), sandbox.Command{Argv: c.argv, Dir: c.dir, Env: []string{"PATH=/usr/bin"}})
			start, ok := errors.AsType[*sandbox.StartError](err)
			if !ok || c.err != nil && !errors.Is(err, c.err) || start.Error() != c.text {
				t.Errorf("%v: error %v (%T)", c.argv, err, err)
			}
		}
	})
}

// left returns the processes of the machine, including zombies, that have a token on
// their command line.
func left(t *testing.T, token string) []int {
	t.Helper()
	var pids []int
	for _, s := range process.All() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
		if bytes.Contains(line, []byte(token)) {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// daemonsOf returns a script that starts daemons with a token on each command line.
// Each prints a line when it runs.
func daemonsOf(token string) string {
	return strings.ReplaceAll(runtest.Daemons, `deaf='`, `deaf=': `+token+`; `)
}

// TestShortWhileWallsAreBuilt: the error of walls that cannot be built says that the
// machine is short of something, so that the check is not reported as broken.
func TestShortWhileWallsAreBuilt(t *testing.T) {
	w, err := Build(context.Background(), system(sandbox.Hidden))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer w.Close()
	for i := range 1500 { // each takes a page of the new root, which is a tmpfs of 4 MB
		w.spec.Entries = append(w.spec.Entries, sandbox.Entry{Path: fmt.Sprintf("/link-%d", i), Access: sandbox.AccessRead, Link: strings.Repeat("x/", 1000)})
	}
	_, err = w.Run(context.Background(), inside("/", "true"))
	if none, ok := errors.AsType[*sandbox.WallError](err); !ok || none.Next == "" || transient.Remedy(err) == "" || strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("%v", err)
	}
}

func TestNothingIsLeftBehindWalls(t *testing.T) {
	t.Parallel()
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		t.Parallel() // most of it waits for the timeout
		for name, rest := range map[string]string{
			"normal exit": "while [ ! -e go ]; do sleep 0.01; done; exit 5",
			"timeout":     "sleep 1000",
			"cancel":      "trap '' TERM; while :; do sleep 0.05; done",
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				token := "token" + filepath.Base(filepath.Dir(dir)) + name[:3]
				c := inside(dir, daemonsOf(token)+rest)
				up := 0
				seen := &runtest.Watch{Lines: runtest.DaemonCount, Then: func() {
					up = len(left(t, token))
					if name == "normal exit" {
						must(0, os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
					}
					if name == "cancel" {
						cancel()
					}
				}}
				c.Live = seen
				if name == "timeout" {
					c.Timeout = 10 * time.Second
				}
				r, err := w.Run(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				if r.TimedOut != (name == "timeout") || (r.Exit == 5) != (name == "normal exit") {
					t.Errorf("exit %d, timed out %v, stderr %s", r.Exit, r.TimedOut, r.Stderr)
				}
				if up < runtest.DaemonCount {
					t.Errorf("%d daemons came up of %d", up, runtest.DaemonCount)
				}
				if pids := left(t, token); len(pids) > 0 {
					t.Errorf("left behind: %v", pids)
				}
			})
		}
	})
}

// The daemons die with a hone that is killed.
func TestDaemonsDieWithHone(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		token := "orphan" + filepath.Base(filepath.Dir(dir))
		hone := exec.Command(os.Args[0])
		hone.Env = append(os.Environ(), "SANDBOX_TEST_WALL="+string(w.Grade().Wall), "SANDBOX_TEST_RUN="+daemonsOf(token)+"sleep 1000")
		out := must(hone.StdoutPipe())
		must(0, hone.Start())
		lines := bufio.NewReader(out)
		for range runtest.DaemonCount {
			must(lines.ReadString('\n'))
		}
		if n := len(left(t, token)); n < runtest.DaemonCount {
			t.Errorf("%d daemons came up of %d", n, runtest.DaemonCount)
		}
		must(0, hone.Process.Kill())
		_ = hone.Wait()
		if !waittest.Until(func() bool { return len(left(t, token)) == 0 }) {
			t.Errorf("they outlived hone: %v", left(t, token))
		}
	})
}

func TestGraceBehindWalls(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		w.grace = waittest.Limit
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c := inside(dir, `sh -c 'trap "sleep 0.2; echo tidied; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`)
		c.Live = runtest.OnWrite(cancel)
		r, err := w.Run(ctx, c)
		if err != nil || string(r.Stdout) != "ready\ntidied\n" || r.Exit != -1 {
			t.Errorf("%v, exit %d, stdout %q, stderr %q", err, r.Exit, r.Stdout, r.Stderr)
		}
	})
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	everyWall(t, func(p *sandbox.Policy) { p.Limits.Memory = 256 << 20 }, func(t *testing.T, w *Walls, dir string) {
		// Many processes together use too much, none of them alone.
		r := behind(t, w, dir, `for i in 1 2 3 4 5 6; do (dd if=/dev/zero bs=100M count=1 2>/dev/null | (read -r x; sleep 1000)) & done; wait; echo survived`)
		if r.OverLimit != "memory" || r.Exit != -1 {
			t.Errorf("over %q, exit %d, stdout %s, stderr %s", r.OverLimit, r.Exit, r.Stdout, r.Stderr)
		}
		if _, err := exec.LookPath("python3"); err == nil {
			share := func(mb, processes int) sandbox.Result {
				return behind(t, w, dir, fmt.Sprintf(`/usr/bin/python3 -c 'import mmap, os, time
m = mmap.mmap(-1, %d << 20)
for i in range(0, len(m), 4096): m[i] = 1
for n in range(%d):
	if os.fork() == 0:
		for i in range(0, len(m), 4096): m[i]
		break
time.sleep(2)'; echo end`, mb, processes))
			}
			if r := share(400, 0); r.OverLimit != "memory" {
				t.Errorf("shared memory, over %q, exit %d, stderr %s", r.OverLimit, r.Exit, r.Stderr)
			}
			// Not held: nobody maps it.
			unmapped := `/usr/bin/python3 -c 'import os, time
fd = os.memfd_create("x")
for i in range(300): os.write(fd, bytes(1 << 20))
time.sleep(1)'`
			if r := behind(t, w, dir, unmapped); r.OverLimit != "" || r.Exit != 0 {
				t.Errorf("unmapped memory: over %q, exit %d, stderr %s; correct docs/threats.md", r.OverLimit, r.Exit, r.Stderr)
			}
			if r := share(100, 5); r.OverLimit != "" || r.Exit != 0 {
				t.Errorf("100 MB that six processes share: over %q, exit %d, stderr %s", r.OverLimit, r.Exit, r.Stderr)
			}
		}
		if r := behind(t, w, dir, `dd if=/dev/zero of=/dev/null bs=50M count=1 2>/dev/null && echo fine`); string(r.Stdout) != "fine\n" {
			t.Errorf("exit %d, stdout %s, stderr %s", r.Exit, r.Stdout, r.Stderr)
		}
	})
}

func TestProcessLimit(t *testing.T) {
	t.Parallel()
	everyWall(t, func(p *sandbox.Policy) { p.Limits.Processes = 100 }, func(t *testing.T, w *Walls, dir string) {
		c := inside(dir, `bomb() { bomb | bomb & }; bomb 2>refused; i=0; until read -r why <refused || [ $i = 600 ]; do sleep 0.1; i=$((i+1)); done; echo "$why" >&2; echo survived`)
		r, err := w.Run(context.Background(), c)
		if err != nil || r.TimedOut {
			t.Fatal(err, r.TimedOut)
		}
		if r.OverLimit != "processes" && !bytes.Contains(r.Stderr, []byte("fork")) {
			t.Errorf("over %q, exit %d, stdout %q, stderr %.200q", r.OverLimit, r.Exit, r.Stdout, r.Stderr)
		}
		if r := behind(t, w, dir, "echo fine"); string(r.Stdout) != "fine\n" {
			t.Errorf("afterwards: exit %d, stderr %s", r.Exit, r.Stderr)
		}
	})
}

func TestDoor(t *testing.T) {
	server := must(net.Listen("tcp", "127.0.0.1:0"))
	defer server.Close()
	go serve(server, func(c net.Conn) {
		_, _ = io.WriteString(c, "hello\n")
		_ = c.Close()
	})
	forwarding := sandbox.ForwardBy(server.Addr().String(), nil, nil)
	defer forwarding.Close()
	own := sandbox.Door{Addr: "127.0.0.1:0", Serve: func(c net.Conn) {
		_, _ = io.WriteString(c, "own\n")
		_ = c.Close()
	}}
	everyWall(t, func(p *sandbox.Policy) { p.Doors = []sandbox.Door{forwarding.Door(), own} }, func(t *testing.T, w *Walls, dir string) {
		for i, want := range []string{"hello\n", "own\n"} {
			host, port, _ := net.SplitHostPort(w.DoorAddr(i))
			c := inside(dir, "cat </dev/tcp/"+host+"/"+port)
			c.Argv[0] = "bash"
			r := must(w.Run(context.Background(), c))
			if string(r.Stdout) != want {
				t.Errorf("door %d: stdout %q, stderr %s", i, r.Stdout, r.Stderr)
			}
		}
	})
}

func TestWallsLeaveNothingInThisProcess(t *testing.T) {
	everyWall(t, func(p *sandbox.Policy) {
		p.Doors = []sandbox.Door{{Addr: "127.0.0.1:0", Serve: func(c net.Conn) { _ = c.Close() }}}
	}, func(t *testing.T, w *Walls, dir string) {
		behind(t, w, dir, "true")
		goroutines, files := runtime.NumGoroutine(), runtest.OpenFiles(t)
		for range 5 {
			behind(t, w, dir, "echo a & exit 1")
			c := inside(dir, "read x")
			c.Stdin = strings.NewReader(strings.Repeat("a\n", runtest.Megabytes))
			must(w.Run(context.Background(), c))
			if _, err := w.Run(context.Background(), sandbox.Command{Argv: []string{"./gone"}, Dir: "/"}); err == nil {
				t.Fatal("a missing program was started")
			}
		}
		if !waittest.Until(func() bool { return runtime.NumGoroutine() <= goroutines }) {
			t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), goroutines)
		}
		if n := runtest.OpenFiles(t); n > files {
			t.Errorf("%d open files, before %d", n, files)
		}
	})
}

// The port of a door is open at its own address alone, but for landlock, which knows no addresses.
func TestDoorAtAnotherAddress(t *testing.T) {
	everyWall(t, func(p *sandbox.Policy) {
		p.Doors = []sandbox.Door{{Addr: "127.0.0.1:0", Serve: func(c net.Conn) { c.Close() }}}
	}, func(t *testing.T, w *Walls, dir string) {
		_, port, _ := net.SplitHostPort(w.DoorAddr(0))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
		if err != nil {
			t.Skip("SKIPPED: ", err)
		}
		defer l.Close()
		r := behind(t, w, dir, "bash -c 'exec 3<>/dev/tcp/127.0.0.2/"+port+"' && echo reached")
		if reached := strings.Contains(string(r.Stdout), "reached"); reached == w.Grade().Wall.Namespaces() {
			t.Errorf("reached: %v\n%s", reached, r.Stderr)
		}
	})
}
