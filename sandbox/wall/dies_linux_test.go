package wall

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/internal/crashtest/waittest"
	"hone/sandbox/internal/process"
)

// tree is a script that leaves processes when hone is killed.
type tree struct {
	name, script string
	pids         int    // how many process numbers it prints
	needs        string // the program that it needs; empty means none
}

// trees are the ways in which processes get out of reach: of the parent's death, of
// signals, of the group, the session, the environment and the streams. $LEAF prints its
// number and sleeps. With -short there are only the first: how the others differ happens in other
// processes, where the race detector sees nothing.
func trees() []tree {
	all := []tree{
		{name: "the command itself", script: `echo $$; exec sleep 1000`, pids: 1},
		{name: "a foreground child", script: `$LEAF; true`, pids: 1},
		{name: "a background child", script: `$LEAF & wait`, pids: 1},
		{name: "a subshell", script: `( $LEAF; true ); true`, pids: 1},
		{name: "a pipeline", script: `$LEAF | cat; true`, pids: 1},
		{name: "a chain of shells", script: `sh -c 'sh -c "$LEAF; true"; true'; true`, pids: 1},
		{name: "its own session", script: `setsid $LEAF; true`, pids: 1},
		{name: "nohup", script: `nohup $LEAF; true`, pids: 1},
		{name: "no parent", script: `(($LEAF &) &); sleep 1000; true`, pids: 1},
		{name: "a daemon", script: `(setsid sh -c "(setsid $LEAF &)" &); sleep 1000; true`, pids: 1},
		{name: "ignored signals", script: `trap "" TERM HUP INT QUIT; echo $$; while :; do sleep 1000; done`, pids: 1},
		{name: "no streams", script: `sh -c 'echo $$; exec sleep 1000 <&- >&- 2>&-'; true`, pids: 1},
		{name: "no environment", script: `env -i $(command -v setsid) /bin/sh -c 'echo $$; exec /bin/sleep 1000'; true`, pids: 1},
		{name: "neither environment nor parent", script: `(env -i $(command -v setsid) /bin/sh -c 'echo $$; exec /bin/sleep 1000' &); sleep 1000; true`, pids: 1},
		{name: "a stopped process", script: `sh -c 'echo $$; kill -STOP $$'; true`, pids: 1},
		{name: "many", script: `for i in 1 2 3 4 5 6 7 8 9 10; do setsid $LEAF & done; wait`, pids: 10},
		{name: "ever new ones", script: `storm() { echo $$; while :; do setsid sh -c 'sleep 1000 & sleep 0.02' & sleep 0.01; done; }; storm`, pids: 1},
		{name: "python", needs: "python3", pids: 1,
			script: `python3 -c 'import os, time; os.fork() and time.sleep(1000); os.setsid(); print(os.getpid(), flush=True); time.sleep(1000)'; true`},
		{name: "make", needs: "make", script: `printf 'all:\n\t$$LEAF; true\n' | make -sf - all; true`, pids: 1},
	}
	if testing.Short() {
		return all[:3]
	}
	return all
}

// player is a process that plays a hone.
type player struct {
	cmd  *exec.Cmd
	id   string // is in the environment of what its command starts
	pids []int
}

// play starts a hone that works in a directory, and waits until its command has printed
// its numbers.
func play(t *testing.T, tr tree, dir string) player {
	t.Helper()
	p := player{id: fmt.Sprintf("KEEPER_TEST_ID=%s-%d", filepath.Base(t.TempDir()), time.Now().UnixNano())}
	leaf := filepath.Join(t.TempDir(), "leaf")
	if err := os.WriteFile(leaf, []byte("#!/bin/sh\necho $$\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "export LEAF=" + leaf + " " + p.id + "\n" + tr.script
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), "SANDBOX_TEST_RUN="+script, "SANDBOX_TEST_DIR="+dir)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	lines := bufio.NewScanner(out)
	for range tr.pids {
		lines.Scan()
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil {
			t.Fatal(err)
		}
		p.pids = append(p.pids, pid)
	}
	return p
}

// kill kills the player, but not its supervisor.
func (p player) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

// living returns the processes of the player's command that still run.
func (p player) living() (left []string) {
	for _, s := range process.All() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.PID))
		marked := bytes.Contains(environ, []byte(p.id)) && s.PID != os.Getpid() && !bytes.Contains(environ, []byte("SANDBOX_TEST_RUN="))
		for _, pid := range p.pids {
			marked = marked || pid == s.PID
		}
		if marked && !s.Zombie {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
			left = append(left, fmt.Sprintf("%d %q", s.PID, text))
		}
	}
	return left
}

// assertEnds waits until nothing of the player's command runs.
func (p player) assertEnds(t *testing.T) {
	t.Helper()
	var left []string
	if waittest.Until(func() bool { left = p.living(); return len(left) == 0 }) {
		return
	}
	t.Errorf("processes are left: %s", left)
	for _, line := range left {
		pid, _ := strconv.Atoi(strings.Fields(line)[0])
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// All that a command started ends with a hone that is killed.
func TestCommandDiesWithHone(t *testing.T) {
	for _, tr := range trees() {
		t.Run(tr.name, func(t *testing.T) {
			if _, err := exec.LookPath(tr.needs); tr.needs != "" && err != nil {
				t.Skip(err)
			}
			p := play(t, tr, t.TempDir())
			p.kill(t)
			p.assertEnds(t)
		})
	}
}

// If the supervisor is killed at the same moment, the next process of the directory ends what is left,
// and nothing else.
func TestEndEarlier(t *testing.T) {
	for _, tr := range trees() {
		if tr.needs != "" || strings.Contains(tr.script, "env -i") { // the environment has the mark
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			p, bystander := play(t, tr, dir), play(t, trees()[1], other)
			p.killWithSupervisor(t)
			// A look may come between a process and the one that it starts instead of itself.
			if tr.name != "the command itself" && !waittest.Until(func() bool { return len(p.living()) > 0 }) {
				t.Error("all has ended without its supervisor")
			}
			moved := dir + "-moved"
			if err := os.Rename(dir, moved); err != nil {
				t.Fatal(err)
			}
			k := NewKeeper(moved)
			programs := k.EndEarlier()
			if tr.name != "the command itself" && len(programs) < tr.pids {
				t.Errorf("it ended %q, want %d or more", programs, tr.pids)
			}
			p.assertEnds(t)
			if programs := k.EndEarlier(); len(programs) > 0 {
				t.Errorf("it ended %q again", programs)
			}
			if len(bystander.living()) == 0 {
				t.Error("another directory's command was ended")
			}
			bystander.kill(t)
			bystander.assertEnds(t)
		})
	}
}

// If the supervisor is killed, this process ends what it left.
func TestSupervisorThatWasKilled(t *testing.T) {
	p := play(t, tree{script: `(setsid $LEAF &); sleep 1000; true`, pids: 1}, t.TempDir())
	if err := unix.Kill(p.supervisor(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.assertEnds(t)
}

// A command whose supervisor is killed before it starts has another; one whose supervisor is killed
// later was killed.
func TestSupervisorThatIsKilledEarly(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		again := 0
		for i := range 10 {
			over, killed := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(killed)
				for {
					select {
					case <-over:
						return
					default:
					}
					pid := childOf(os.Getpid(), "")
					if pid != 0 && i%2 == 1 { // bubblewrap's child waits for it before it asks to die with it
						child := childOf(pid, "")
						if child == 0 {
							continue
						}
						_ = unix.Kill(child, unix.SIGSTOP)
					}
					if pid != 0 {
						_ = unix.Kill(pid, unix.SIGKILL)
						return
					}
				}
			}()
			r, err := w.Run(t.Context(), inside(dir, "sleep 0.05; echo ran"))
			close(over)
			<-killed
			switch {
			case err != nil || r.TimedOut:
				t.Fatal(err, r.TimedOut)
			case string(r.Stdout) == "ran\n" && r.Exit == 0:
				again++
			case r.Signal != unix.SIGKILL.String():
				t.Fatalf("%+v", r)
			}
		}
		if again == 0 {
			t.Error("no command was started again")
		}
	})
}

// killWithSupervisor kills the player, which has no time to notice the end of the supervisor.
func (p player) killWithSupervisor(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.cmd.Process.Signal(unix.SIGSTOP), unix.Kill(p.supervisor(t), unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	p.kill(t)
}

func (p player) supervisor(t *testing.T) int {
	t.Helper()
	pid := childOf(p.cmd.Process.Pid, helperName)
	if pid == 0 {
		t.Fatal("there is no supervisor")
	}
	return pid
}

// childOf returns a process that another has started; 0 if there is none. An empty name stands for any.
func childOf(parent int, name string) int {
	for _, s := range process.All() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
		if s.Parent == parent && !s.Zombie && (name == "" || bytes.HasPrefix(line, []byte(name+"\x00"))) {
			return s.PID
		}
	}
	return 0
}
