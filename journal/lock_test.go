package journal_test

import (
	"testing"
	"time"
)

// TestLockOutlivesAKill: Lock waits for a lock that another process releases
// soon, as the forked copy of a killed process does.
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
