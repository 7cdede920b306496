package journal

import (
	"testing"
	"time"

	"hone/internal/crashtest/waittest"
)

// TestLockOutlivesAKill: Lock waits for a lock that another process releases
// soon, as the forked copy of a killed process does.
func TestLockOutlivesAKill(t *testing.T) {
	h, err := OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	held, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Unlock() })
	lock, err := h.lock(tryLock, waittest.Limit)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
