package journal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/internal/crashtest"
	"hone/internal/disktest"
	"hone/journal"
)

// recordRun creates a run that stores contents and names objects.
func recordRun(t *testing.T, h *journal.Home, run string, contents [][]byte, objects ...string) {
	t.Helper()
	j := crashtest.Must(h.Create(run))
	defer j.Close()
	for _, b := range contents {
		crashtest.Must(j.Put(b))
	}
	crashtest.Must(j.Append(journal.Entry{Type: "x", Payload: map[string]any{"objects": objects}}))
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// holds checks that contents are stored.
func holds(t *testing.T, h *journal.Home, b []byte) {
	t.Helper()
	if got, err := h.Get(digest(b)); err != nil || !bytes.Equal(got, b) {
		t.Errorf("%.20q: %d bytes of %d, %v", b, len(got), len(b), err)
	}
}

// reopen opens a home as another process does.
func reopen(t *testing.T, h *journal.Home) *journal.Home {
	t.Helper()
	other := crashtest.Must(journal.FindHome(h.Workspace()))
	t.Cleanup(func() { other.Close() })
	return other
}

// newNeeds are the objects that the run "new" of collected needs.
func newNeeds() []string {
	return []string{digest([]byte("both")), digest(disktest.Noise(4_000, 2)), digest([]byte("index")), digest(nil), digest([]byte("lost"))}
}

// collected returns a home in which the run "old" needs only-old and both, and "new"
// needs both, big, an index, and an empty object.
func collected(t *testing.T) (h *journal.Home, onlyOld, needed [][]byte) {
	h = home(t)
	big := disktest.Noise(4_000, 2)
	onlyOld = [][]byte{disktest.Noise(20_000, 1), []byte("old, too")}
	both := []byte("both")
	index := []byte("index")
	recordRun(t, h, "old", [][]byte{onlyOld[0], both, nil, onlyOld[1], []byte("no run needs this")}, digest(onlyOld[0]), digest(onlyOld[1]), digest(both))
	recordRun(t, h, "new", [][]byte{big, index}, digest(index), digest(nil))
	return h, onlyOld, [][]byte{both, big, index, nil}
}

func collect(t *testing.T, h *journal.Home) int64 {
	t.Helper()
	c, err := h.NewCollector()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.Keep("new", newNeeds(), -1); err != nil || !ok {
		t.Fatal(ok, err)
	}
	unneeded, err := c.Unneeded()
	if err == nil {
		err = c.Delete(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return unneeded
}

func TestCollect(t *testing.T) {
	h, onlyOld, needed := collected(t)
	stale := filepath.Join(h.Dir(), "runs", "new.imported.new")
	crashtest.Must(0, os.WriteFile(stale, []byte("half"), 0o600))
	before := crashtest.Must(h.TotalSize())
	unneeded := collect(t, h)
	if freed := before - crashtest.Must(h.TotalSize()); unneeded < 20_000 || freed < unneeded-100 { // the pack that got copies ends with a mark
		t.Errorf("freed %d bytes of %d that were not needed", freed, unneeded)
	}
	for _, h := range []*journal.Home{h, reopen(t, h)} {
		for _, b := range needed {
			holds(t, h, b)
		}
		for _, b := range append(onlyOld, []byte("no run needs this")) {
			if h.Has(digest(b)) {
				t.Errorf("%.20q is still stored", b)
			}
		}
		if runs := crashtest.Must(h.Runs()); strings.Join(runs, " ") != "new" {
			t.Errorf("runs %q", runs)
		}
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a temporary file was left")
	}
	if again := collect(t, h); again != 0 {
		t.Errorf("a second time %d bytes", again)
	}
}

// countdown is a context that is canceled after a number of questions.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCollectStopsAnywhere: wherever the deletion stops, the kept run has all its
// objects, and the next one completes it.
func TestCollectStopsAnywhere(t *testing.T) {
	for n, complete := 0, false; !complete; n++ {
		h, _, needed := collected(t)
		c := crashtest.Must(h.NewCollector())
		if _, ok, err := c.Keep("new", newNeeds(), -1); err != nil || !ok {
			t.Fatal(ok, err)
		}
		complete = c.Delete(&countdown{t.Context(), n}) == nil
		again := reopen(t, h)
		for _, b := range needed {
			holds(t, again, b)
		}
		collect(t, again)
		for _, b := range needed {
			holds(t, again, b)
		}
	}
}

// TestCollectLimit: a run that is too large is not kept, and what it shares with a kept
// one counts once.
func TestCollectLimit(t *testing.T) {
	h, _, _ := collected(t)
	c := crashtest.Must(h.NewCollector())
	old, ok, err := c.Keep("old", []string{digest(disktest.Noise(20_000, 1)), digest([]byte("old, too")), digest([]byte("both"))}, 100_000)
	if err != nil || !ok || old < 20_000 {
		t.Fatal(old, ok, err)
	}
	if _, ok, err := c.Keep("new", newNeeds(), 1000); err != nil || ok {
		t.Error("kept beyond the limit", err)
	}
	if size, ok, err := c.Keep("new", newNeeds(), 5000); err != nil || !ok || size < 4000 {
		t.Error(size, ok, err)
	}
}

// TestCollectKilledBetweenFiles: the kept run has what it needs of a pack that is still
// there.
func TestCollectKilledBetweenFiles(t *testing.T) {
	h, _, needed := collected(t)
	pack := filepath.Join(h.Dir(), "runs", "old.pack")
	old := crashtest.Must(os.ReadFile(pack))
	collect(t, h)
	size := crashtest.Must(os.Stat(filepath.Join(h.Dir(), "runs", "new.pack"))).Size()
	crashtest.Must(0, os.WriteFile(pack, old, 0o600))
	collect(t, reopen(t, h))
	for _, b := range needed {
		holds(t, reopen(t, h), b)
	}
	if again := crashtest.Must(os.Stat(filepath.Join(h.Dir(), "runs", "new.pack"))).Size(); again != size {
		t.Errorf("the kept pack grew from %d to %d bytes", size, again)
	}
	if _, err := os.Stat(pack); err == nil {
		t.Error("the pack of the deleted run is left")
	}
}
