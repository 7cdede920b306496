package paid

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A wait is over when the time of day says so, although the process's clock stood
// still, as it does while a laptop is closed.
func TestWaitWhileTheMachineIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		woken := start.Round(0).Add(5 * time.Hour) // without the reading of the process's clock
		looks := 0
		err := wait(t.Context(), 5*time.Hour, func() time.Time {
			if looks++; looks < 3 {
				return start
			}
			return woken
		})
		if took := time.Since(start); err != nil || took != lookAtClock {
			t.Errorf("%v after %v, want no error after %v", err, took, lookAtClock)
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := wait(t.Context(), 90*time.Second, time.Now); err != nil || time.Since(start) != 90*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := wait(ctx, time.Hour, time.Now); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Second {
			t.Errorf("a canceled wait returns %v after %v", err, time.Since(start))
		}
	})
}
