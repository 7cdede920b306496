package web

import (
	"testing"
	"time"
)

// TestTries: ten wrong tries in a minute are all that count, and right ones do not.
func TestTries(t *testing.T) {
	t.Parallel()
	var list tries
	now := time.Now()
	right, wrong := func() bool { return true }, func() bool { return false }
	for i := range maxTries {
		at := now.Add(time.Duration(i) * time.Second)
		if ok, wait := list.try(at, right); !ok || wait != 0 {
			t.Fatalf("right after %d wrong ones: %v, %v", i, ok, wait)
		}
		if ok, wait := list.try(at, wrong); ok || wait != 0 {
			t.Fatalf("wrong try %d: %v, %v", i+1, ok, wait)
		}
	}
	if ok, wait := list.try(now.Add(30*time.Second), right); ok || wait != 30*time.Second {
		t.Errorf("in between: %v, %v", ok, wait)
	}
	if ok, _ := list.try(now.Add(triesTime), right); !ok {
		t.Error("a minute after the first wrong try, none is let in")
	}
	list.try(now.Add(triesTime), wrong)
	if ok, wait := list.try(now.Add(triesTime), right); ok || wait != time.Second {
		t.Errorf("after ten in a minute again: %v, %v", ok, wait)
	}
}
