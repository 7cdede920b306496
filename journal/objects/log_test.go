package objects_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/internal/disktest"
	"hone/journal/objects"
)

// logging opens the store of a home, as another process does that has a log.
func logging(t testing.TB, h *stored) *stored {
	t.Helper()
	other := reopen(t, h)
	other.Store = objects.In(other.in)
	t.Cleanup(func() { other.Store.Close() })
	return other
}

func put(t testing.TB, h *stored, contents ...[]byte) {
	t.Helper()
	for _, b := range contents {
		if name, err := h.Put(b); err != nil || name != digest(b) {
			t.Fatalf("put %d bytes: %s, %v", len(b), name, err)
		}
	}
}

func syncAll(t testing.TB, h *stored) {
	t.Helper()
	if err := h.Sync(); err != nil {
		t.Fatal(err)
	}
}

func TestLogHoldsWhatWasStored(t *testing.T) {
	h := logging(t, home(t))
	reader := reopen(t, h)
	contents := [][]byte{{}, []byte("a"), prose(60_000, 1), disktest.Noise(64<<10, 2)}
	for _, b := range contents {
		if _, err := reader.Get(digest(b)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d bytes too early: %v", len(b), err)
		}
		put(t, h, b)
		if got, err := reader.Get(digest(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("a reader gets %d bytes of %d, %v", len(got), len(b), err)
		}
	}
	p := newPack(t, h)
	more := [][]byte{[]byte("a"), []byte("packed"), prose(3000, 3)}
	for _, b := range more {
		add(t, p, b)
	}
	closePack(t, p)
	for _, b := range append(contents, more...) {
		holds(t, h, b)
		holds(t, reopen(t, h), b)
		if got, err := reader.Get(digest(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("a reader gets %d bytes of %d, %v", len(got), len(b), err)
		}
	}
	put(t, h, disktest.Noise(64<<10+1, 4))
	if names := packFiles(t, h); len(names) != 1 || filepath.Ext(names[0]) != ".log" {
		t.Errorf("files of packs: %q", names)
	}
	path := filepath.Join(h.Dir(), "packs", packFiles(t, h)[0])
	size := sizeOf(t, path)
	other := logging(t, h)
	for _, b := range append(contents, more...) {
		put(t, h, b)
		if !other.Has(digest(b)) {
			t.Errorf("%d bytes: another process does not have it", len(b))
		}
		put(t, other, b)
	}
	if again := sizeOf(t, path); again != size || len(packFiles(t, h)) != 1 {
		t.Errorf("the log grew from %d to %d bytes, of %q", size, again, packFiles(t, h))
	}
}

// TestTornLog truncates a log at every length, as a power failure does, and changes each
// byte. The objects before the damage are found, the others are stored again.
func TestTornLog(t *testing.T) {
	h := logging(t, home(t))
	contents := [][]byte{[]byte("first"), prose(300, 1), {}, []byte("last")}
	ends := []int64{}
	path := ""
	for _, b := range contents {
		put(t, h, b)
		path = filepath.Join(h.Dir(), "packs", packFiles(t, h)[0])
		ends = append(ends, sizeOf(t, path))
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		zeros := slices.Concat(whole[:i], make([]byte, len(whole)-i))
		for name, b := range map[string][]byte{"cut off": whole[:i], "changed": flip(whole, i), "zeros": zeros} {
			if bytes.Equal(b, whole) {
				continue // the last bytes were zero
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			again := logging(t, h)
			damaged := slices.IndexFunc(ends, func(end int64) bool { return int64(i) < end })
			if name == "zeros" {
				damaged = slices.IndexFunc(ends, func(end int64) bool { return !bytes.Equal(b[:end], whole[:end]) })
			}
			for n, want := range contents {
				got, err := again.Get(digest(want))
				switch has := again.Has(digest(want)); {
				case has != (n < damaged), has != (err == nil), has && !bytes.Equal(got, want):
					t.Errorf("%s at %d: object %d: has %t, got %q, %v", name, i, n, has, got, err)
				case !has && !(name == "cut off" && slices.Contains(append(ends, int64(len("HONELOG1"))), int64(i))) && !strings.Contains(err.Error(), path):
					t.Errorf("%s at %d: object %d: the error does not name the file: %v", name, i, n, err)
				}
			}
			if i%17 == 0 {
				storedAgain(t, again, contents, path)
			}
			again.Store.Close()
			if t.Failed() {
				return
			}
		}
	}
}

// storedAgain checks that the contents can be stored beside a torn log, and removes what
// that adds.
func storedAgain(t *testing.T, h *stored, contents [][]byte, torn string) {
	put(t, h, contents...)
	syncAll(t, h)
	for _, want := range contents {
		holds(t, reopen(t, h), want)
	}
	for _, n := range packFiles(t, h) {
		if n != filepath.Base(torn) {
			_ = os.Remove(filepath.Join(h.Dir(), "packs", n))
		}
	}
}

// TestSyncOnce: objects become durable together, a name when it is new, and the objects
// of a killed process when another process relies on them.
func TestSyncOnce(t *testing.T) {
	h := logging(t, home(t))
	var synced []string
	note := func(name string) {
		synced = append(synced, strings.TrimPrefix(filepath.Ext(name), "."))
	}
	h.in.Synced = note
	check := func(what, want string) {
		t.Helper()
		if got := strings.Join(synced, " "); got != want {
			t.Errorf("%s: synced %q, want %q", what, got, want)
		}
		synced = nil
	}
	put(t, h, []byte("a"), []byte("b"))
	check("put", "")
	syncAll(t, h)
	check("the first sync", "log ")
	syncAll(t, h)
	check("nothing to sync", "")
	put(t, h, []byte("a"), []byte("c"))
	syncAll(t, h)
	check("the same file", "log")

	put(t, h, []byte("d")) // and then it is killed
	other := logging(t, h)
	other.in.Synced = note
	put(t, other, []byte("e"))
	if !other.Has(digest([]byte("d"))) {
		t.Error("the object of the killed process is missing")
	}
	syncAll(t, other)
	if slices.Sort(synced); strings.Join(synced, " ") != "  log log" {
		t.Errorf("the log of the killed process: synced %q", synced)
	}
	synced = nil
	put(t, other, []byte("d"))
	syncAll(t, other)
	check("a second time", "")
}

// TestLogThatWentAway: what is stored in a file without a name is lost.
func TestLogThatWentAway(t *testing.T) {
	h := logging(t, home(t))
	put(t, h, []byte("a"))
	syncAll(t, h)
	if err := os.Remove(filepath.Join(h.Dir(), "packs", packFiles(t, h)[0])); err != nil {
		t.Fatal(err)
	}
	put(t, h, []byte("b"))
	for range 2 {
		if err := h.Sync(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("sync: %v", err)
		}
	}
	if _, err := h.Put([]byte("c")); err == nil {
		t.Error("put: no error")
	}
}

// FuzzLog reads garbage as a log. Nothing may panic, and what is found is right.
func FuzzLog(f *testing.F) {
	h := logging(f, home(f))
	put(f, h, []byte("one"), prose(300, 1))
	path := filepath.Join(h.Dir(), "packs", packFiles(f, h)[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		again := reopen(t, h)
		if _, err := again.Sizes(); err != nil {
			t.Fatal(err)
		}
		if got, err := again.Get(digest([]byte("one"))); err == nil && string(got) != "one" {
			t.Errorf("got %q", got)
		}
	})
}
