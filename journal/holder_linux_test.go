package journal_test

import (
	"bufio"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"hone/journal"
)

// started starts a shell script that prints a line when it is ready.
func started(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSignalHolder: the process that has the lock is signalled, and no other one that has
// the file open, nor the process that asks.
func TestSignalHolder(t *testing.T) {
	h := home(t)
	own, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.Dir(), "lock")
	other := started(t, "sh", "-c", `exec 9<"$0"; echo ready; exec sleep 600`, file)
	if err := h.SignalHolder(syscall.SIGTERM); !errors.Is(err, journal.ErrNoHolder) {
		t.Errorf("with a lock of this process: %v", err)
	}
	if err := own.Unlock(); err != nil {
		t.Fatal(err)
	}
	holder := started(t, "flock", "-F", file, "sh", "-c", "echo ready; exec sleep 600")
	if err := h.SignalHolder(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err == nil || holder.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the holder: %v", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process that only has the file open: %v", err)
	}
	if err := h.SignalHolder(syscall.SIGTERM); !errors.Is(err, journal.ErrNoHolder) {
		t.Errorf("without a holder: %v", err)
	}
}
