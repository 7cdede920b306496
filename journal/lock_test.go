package journal_test

import (
	"testing"
	"time"
)

// TestLockOutlivesAKill: a process that is killed while it starts a command
// leaves the lock to the copy of itself for a moment, and the next one gets it.
func TestLockOutlivesAKill(t *testing.T) {
	h := home(t)
	held, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Unlock() })
	lock, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
