package journal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/internal/crashtest"
	"hone/internal/disktest"
	"hone/journal"
)

// recordRun creates a run that names objects.
func recordRun(t *testing.T, h *journal.Home, run string, objects ...string) {
	t.Helper()
	j, err := h.Create(run)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Append(journal.Entry{Type: "x", Payload: map[string]any{"objects": objects}}); err != nil {
		t.Fatal(err)
	}
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// store stores contents in a pack.
func store(t *testing.T, h *journal.Home, contents ...[]byte) {
	t.Helper()
	p := crashtest.Must(h.NewPack())
	for _, b := range contents {
		if _, _, err := p.Add(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

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

// collected returns a home in which the run "old" needs only-old and both, and "new"
// needs an index, which names both and big, and small, an empty object.
func collected(t *testing.T) (h *journal.Home, onlyOld, needed [][]byte) {
	h = home(t)
	big := disktest.Noise(4_000, 2)
	onlyOld = [][]byte{disktest.Noise(20_000, 1), []byte("old, too")}
	both := []byte("both")
	index := fmt.Appendf(nil, "file %s a\nfile %s b\n", digest(both), digest(big))
	store(t, h, onlyOld[0], both, nil)
	store(t, h, big, index)
	for _, b := range [][]byte{onlyOld[1], []byte("no run needs this")} {
		if _, err := h.Put(b); err != nil {
			t.Fatal(err)
		}
	}
	recordRun(t, h, "old", digest(onlyOld[0]), digest(onlyOld[1]), digest(both))
	recordRun(t, h, "new", digest(index), digest(nil))
	return h, onlyOld, [][]byte{both, big, index, nil}
}

func collect(t *testing.T, h *journal.Home) int64 {
	t.Helper()
	c, err := h.NewCollector()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.Keep(t.Context(), "new", -1); err != nil || !ok {
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
	stale := filepath.Join(h.Dir(), "objects", digest(nil)[:2], digest(nil)[2:]+".tmp")
	if err := os.MkdirAll(filepath.Dir(stale), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := crashtest.Must(h.TotalSize())
	unneeded := collect(t, h)
	if freed := before - crashtest.Must(h.TotalSize()); unneeded < 20_000 || freed < unneeded {
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
		if _, ok, err := c.Keep(t.Context(), "new", -1); err != nil || !ok {
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
	old, ok, err := c.Keep(t.Context(), "old", 100_000)
	if err != nil || !ok || old < 20_000 {
		t.Fatal(old, ok, err)
	}
	if _, ok, err := c.Keep(t.Context(), "new", 1000); err != nil || ok {
		t.Error("kept beyond the limit", err)
	}
	if size, ok, err := c.Keep(t.Context(), "new", 5000); err != nil || !ok || size < 4000 {
		t.Error(size, ok, err)
	}
}

// TestCollectKilledBetweenPacks: a pack was written again, and the old one is still
// there.
func TestCollectKilledBetweenPacks(t *testing.T) {
	h, _, needed := collected(t)
	old := map[string][]byte{}
	packs := filepath.Join(h.Dir(), "packs")
	_ = fs.WalkDir(os.DirFS(packs), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			old[name] = crashtest.Must(os.ReadFile(filepath.Join(packs, name)))
		}
		return err
	})
	collect(t, h)
	for name, b := range old {
		if err := os.WriteFile(filepath.Join(packs, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := reopen(t, h)
	collect(t, again)
	for _, b := range needed {
		holds(t, reopen(t, h), b)
	}
	if left := crashtest.Must(os.ReadDir(packs)); len(left) > len(old) {
		t.Errorf("%d packs are left", len(left))
	}
}
