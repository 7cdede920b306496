package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also a hone that runs a command and is killed.
func TestMain(m *testing.M) {
	Helper()
	restrainedChild()
	webChild()
	if script := os.Getenv("SANDBOX_TEST_RUN"); script != "" {
		runner := Runner(None{})
		if wall := os.Getenv("SANDBOX_TEST_WALL"); wall != "" {
			runner = must(Build(context.Background(), Wall(wall), system()))
		}
		_, err := runner.Run(context.Background(), Command{
			Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}, Live: os.Stdout,
		})
		if err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// daemons start processes in every way that leaves a group, a session and a
// parent behind, all deaf to the polite signals, and print their numbers.
const daemons = `
deaf='trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done'
setsid sh -c "$deaf" </dev/null &
(setsid sh -c "$deaf" </dev/null &)
setsid sh -c "(setsid sh -c '$deaf' </dev/null &)" &
(sh -c "$deaf" </dev/null &)
sh -c "$deaf" </dev/null &
setsid sh -c "for i in 1 2 3; do sh -c '$deaf' & done; exit" &
(setsid sh -c "exec env -i $(command -v setsid) $(command -v sh) -c 'PATH=$PATH; $deaf'" &)
(setsid sh -c "(setsid true &)" </dev/null &)
`

// count is how many numbers daemons prints.
const count = 9

// watch is a writer that calls a function when so many lines have come.
type watch struct {
	lines int
	then  func()
	seen  bytes.Buffer
}

func (w *watch) Write(p []byte) (int, error) {
	before := bytes.Count(w.seen.Bytes(), []byte("\n"))
	w.seen.Write(p)
	if after := bytes.Count(w.seen.Bytes(), []byte("\n")); before < w.lines && after >= w.lines {
		w.then()
	}
	return len(p), nil
}

// pids are the numbers that were written.
func (w *watch) pids(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, field := range strings.Fields(w.seen.String()) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) != w.lines {
		t.Fatalf("%d numbers, want %d:\n%s", len(pids), w.lines, w.seen.String())
	}
	return pids
}

// assertGone checks that no process of the tree is left, not as a zombie
// either.
func assertGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if s, ok := readStatus(pid); ok {
			t.Errorf("process %d is left: %+v", pid, s)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	self, _ := readStatus(os.Getpid())
	for _, s := range processes() {
		// What other tests started in other ways is in this process's session.
		if s.parent == os.Getpid() && s.session != self.session {
			t.Errorf("a child is left: %+v", s)
		}
	}
}

// takeZombies takes away what earlier tests' programs left to this process,
// such as git's housekeeping: it has become their parent.
func takeZombies() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}

func TestDaemonsEndWithTheCommand(t *testing.T) {
	takeZombies()
	for name, rest := range map[string]string{
		"normal exit": "while [ ! -e go ]; do sleep 0.01; done; exit 5",
		"timeout":     "sleep 1000",
		"cancel":      "trap '' TERM; while :; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := shell(t, daemons+rest)
			w := &watch{lines: count, then: func() {
				switch name {
				case "normal exit":
					if err := os.WriteFile(c.Dir+"/go", nil, 0o644); err != nil {
						t.Error(err)
					}
				case "cancel":
					cancel()
				}
			}}
			c.Live = w
			if name == "timeout" {
				c.Timeout = 3 * time.Second
			}
			r, err := None{Grace: 50 * time.Millisecond}.Run(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			if r.TimedOut != (name == "timeout") || (r.Exit == 5) != (name == "normal exit") {
				t.Errorf("%+v", r)
			}
			assertGone(t, w.pids(t))
		})
	}
}

// Ending one command's daemons leaves another command, and what this process
// started in other ways, alone.
func TestOthersAreLeftAlone(t *testing.T) {
	takeZombies()
	other := exec.Command("sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()

	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan Result)
	w := &watch{lines: count, then: func() { close(ready) }}
	long := shell(t, daemons+"sleep 1000")
	long.Live = w
	go func() {
		r, _ := None{Grace: 50 * time.Millisecond}.Run(ctx, long)
		ended <- r
	}()
	<-ready
	mustRun(t, shell(t, "(setsid sleep 1000 </dev/null >/dev/null 2>&1 &)"))
	for _, pid := range append(w.pids(t), other.Process.Pid) {
		if s, ok := readStatus(pid); !ok || s.zombie {
			t.Errorf("process %d was ended with another's command", pid)
		}
	}
	cancel()
	<-ended
	_ = other.Process.Kill()
	_ = other.Wait()
	assertGone(t, w.pids(t))
}

// A hone that is killed takes its command along.
func TestCommandDiesWithHone(t *testing.T) {
	hone := exec.Command(os.Args[0])
	hone.Env = append(os.Environ(), "SANDBOX_TEST_RUN=echo $$; exec sleep 1000")
	out, err := hone.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hone.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := readStatus(pid); !ok || s.parent != hone.Process.Pid {
		t.Fatalf("the command is not a child: %+v", s)
	}
	if err := hone.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = hone.Wait()
	for range 500 {
		if s, ok := readStatus(pid); !ok || s.zombie {
			_, _ = unix.Wait4(pid, nil, 0, nil) // it may have become this process's child
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	t.Error("the command outlived hone")
}

func TestMarkEnv(t *testing.T) {
	got := strings.Join(mark{text: "inner"}.env([]string{"A=1", marker + "=outer"}), " ")
	if want := "A=1 " + marker + "=outer,inner"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseStatus(t *testing.T) {
	text := "42 (a) b (c) Z 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"
	want := status{process: process{42, 12345}, parent: 7, group: 8, session: 9, threads: 1, zombie: true}
	if got, ok := parseStatus(42, text); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, short := range []string{"", "42 (a) S 1", ")"} {
		if _, ok := parseStatus(42, short); ok {
			t.Errorf("parseStatus(%q) was read", short)
		}
	}
}
