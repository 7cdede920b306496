package history

import (
	"testing"
	"time"
)

// What a stop proposes is enough, and can work.
func TestMore(t *testing.T) {
	for want, next := range map[string]Next{
		"200":   MoreTokens(100, 150),
		"25212": MoreTokens(100, 25212),
		"1.00":  MoreCost(0.5, 0.2),
		"0.51":  MoreCost(0.02, 0.503),
		"1m":    MoreTime(time.Nanosecond),
		"4h":    MoreTime(2 * time.Hour),
	} {
		if next.Verb != Resume || len(next.Flags) != 1 || next.Flags[0].Value != want {
			t.Errorf("%+v, want %s", next, want)
		}
	}
}
