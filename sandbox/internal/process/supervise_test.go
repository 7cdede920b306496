package process

import (
	"testing"
	"time"
)

// A command is not late because the machine, or the container, stood still.
func TestLimitOfAStoppedProcess(t *testing.T) {
	l := newLimit(6 * time.Second)
	if l.passed(7*time.Second) || l.left < 4*time.Second {
		t.Errorf("%v are left", l.left)
	}
	parts := 1
	for ; !l.passed(l.part); parts++ {
	}
	if parts != 8 {
		t.Errorf("%d parts", parts)
	}
	if none := newLimit(0); none.tick() != nil {
		t.Error("no limit ends")
	}
}
