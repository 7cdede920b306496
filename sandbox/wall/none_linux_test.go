package wall

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/internal/crashtest/waittest"
	"hone/sandbox"
	"hone/sandbox/internal/process"
	"hone/sandbox/internal/runtest"
)

// assertGone checks that no process of the tree is left, not even as a zombie.
func assertGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if s, ok := process.ReadStatus(pid); ok {
			t.Errorf("process %d is left: %+v", pid, s)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	for _, s := range strangers() {
		t.Errorf("a child is left: %+v", s)
	}
}

// reapZombies waits for the processes that programs of earlier tests left behind, such
// as git's housekeeping and keepers, and reaps them. This process has become their
// parent.
func reapZombies() {
	waittest.Until(func() bool {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
		return len(strangers()) == 0
	})
}

// strangers returns this process's children of other sessions. Processes that other tests
// started in other ways are in its own.
func strangers() (all []process.Status) {
	self, _ := process.ReadStatus(os.Getpid())
	for _, s := range process.All() {
		if s.Parent == os.Getpid() && s.Session != self.Session {
			all = append(all, s)
		}
	}
	return all
}

func TestDaemonsEndWithTheCommand(t *testing.T) {
	reapZombies()
	for name, rest := range map[string]string{
		"normal exit": "while [ ! -e go ]; do sleep 0.01; done; exit 5",
		"timeout":     "sleep 1000",
		"cancel":      "trap '' TERM; while :; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := shell(t, runtest.Daemons+rest)
			w := &runtest.Watch{Lines: runtest.DaemonCount, Then: func() {
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
				c.Timeout = 10 * time.Second
			}
			r, err := None{Grace: 50 * time.Millisecond}.Run(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			if r.TimedOut != (name == "timeout") || (r.Exit == 5) != (name == "normal exit") {
				t.Errorf("%+v", r)
			}
			assertGone(t, w.PIDs(t))
		})
	}
}

// Stopping the daemons of one command does not stop another command, nor a process
// that was started in another way.
func TestOthersAreLeftAlone(t *testing.T) {
	reapZombies()
	other := exec.Command("sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()

	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan sandbox.Result)
	w := &runtest.Watch{Lines: runtest.DaemonCount, Then: func() { close(ready) }}
	long := shell(t, runtest.Daemons+"sleep 1000")
	long.Live = w
	go func() {
		r, _ := None{Grace: 50 * time.Millisecond}.Run(ctx, long)
		ended <- r
	}()
	<-ready
	mustRun(t, shell(t, "(setsid sleep 1000 </dev/null >/dev/null 2>&1 &)"))
	for _, pid := range append(w.PIDs(t), other.Process.Pid) {
		if s, ok := process.ReadStatus(pid); !ok || s.Zombie {
			t.Errorf("process %d was stopped with another command", pid)
		}
	}
	cancel()
	<-ended
	_ = other.Process.Kill()
	_ = other.Wait()
	assertGone(t, w.PIDs(t))
}
