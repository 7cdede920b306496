package main

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"hone/internal/crashtest/waittest"
)

// The first collection ends the exception that it waits for.
func TestCollectLater(t *testing.T) {
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	usual := percent()
	t.Setenv("GOGC", "")
	collectLater()
	if percent() <= usual {
		t.Errorf("the heap grows by %d percent before the first collection, as usual", percent())
	}
	if !waittest.Until(func() bool { runtime.GC(); return percent() == usual }) {
		t.Errorf("the heap still grows by %d percent, not by %d", percent(), usual)
	}
}
