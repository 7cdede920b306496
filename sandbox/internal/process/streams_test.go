package process

import "testing"

func TestCaptureGrowsNoFurtherThanItMust(t *testing.T) {
	c := capture{max: 10_000}
	for range 100 {
		c.add(make([]byte, 333))
		if cap(c.kept) > 10_000 {
			t.Fatalf("a capture of 10000 bytes takes %d", cap(c.kept))
		}
	}
	if len(c.kept) != 10_000 || c.lost != 33_300-10_000 {
		t.Errorf("kept %d, lost %d", len(c.kept), c.lost)
	}
}
