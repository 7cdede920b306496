package objects_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"hone/internal/disktest"
	"hone/journal/objects"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// large returns more than a pack keeps in memory. It cannot be compressed.
func large(seed byte) []byte { return disktest.Noise(3<<20+7, uint64(seed)) }

func newPack(t testing.TB, h *stored) *objects.Pack {
	t.Helper()
	p, err := h.NewPack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Discard() })
	return p
}

func add(t testing.TB, p *objects.Pack, b []byte) string {
	t.Helper()
	name, size, err := p.Add(bytes.NewReader(b))
	if err != nil || name != digest(b) || size != int64(len(b)) {
		t.Fatalf("add %d bytes: %s, %d, %v", len(b), name, size, err)
	}
	return name
}

func closePack(t testing.TB, p *objects.Pack) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// store stores the contents, at least two, in one pack and returns its path.
func store(t testing.TB, h *stored, contents ...[]byte) string {
	t.Helper()
	p := newPack(t, h)
	for _, b := range contents {
		add(t, p, b)
	}
	before := packFiles(t, h)
	closePack(t, p)
	after := slices.DeleteFunc(packFiles(t, h), func(n string) bool { return slices.Contains(before, n) })
	if len(after) != 1 {
		t.Fatalf("new files of packs: %q", after)
	}
	return filepath.Join(h.Dir(), "packs", after[0])
}

// packFiles lists the packs directory, which the first pack creates.
func packFiles(t testing.TB, h *stored) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(h.Dir(), "packs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func holds(t testing.TB, h *stored, b []byte) {
	t.Helper()
	name := digest(b)
	if !h.Has(name) {
		t.Errorf("%s: not stored", name)
	}
	if got, err := h.Get(name); err != nil || !bytes.Equal(got, b) {
		t.Errorf("%s: get %d bytes of %d, %v", name, len(got), len(b), err)
	}
	o, err := h.OpenObject(name)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if len(b) > 1<<10 { // longer ones would take long, byte by byte
		return
	}
	if err := iotest.TestReader(o, b); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// reopen opens the workspace of a home a second time, like another process.
func reopen(t testing.TB, h *stored) *stored {
	t.Helper()
	other, err := open(filepath.Dir(h.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return other
}

func TestPackHoldsWhatWasAdded(t *testing.T) {
	h := home(t)
	reader := reopen(t, h)
	contents := [][]byte{{}, []byte("a"), large('x'), []byte("b"), large('y')}
	p := newPack(t, h)
	for _, b := range contents {
		add(t, p, b)
	}
	for _, b := range contents {
		for _, h := range []*stored{h, reader} {
			if _, err := h.Get(digest(b)); h.Has(digest(b)) || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%d bytes are stored before the pack is closed: %v", len(b), err)
			}
		}
	}
	closePack(t, p)
	if names := packFiles(t, h); len(names) != 1 || filepath.Ext(names[0]) != ".pack" {
		t.Errorf("files of packs: %q", names)
	}
	for _, b := range contents {
		holds(t, h, b)
		holds(t, reader, b)
		holds(t, reopen(t, h), b)
	}
}

// TestPackFile reads a pack using only its documented format.
func TestPackFile(t *testing.T) {
	h := home(t)
	path := store(t, h, []byte("two"), []byte("one"), nil)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	index := sortEntries(slices.Concat(entry("one", 3, 3), entry("two", 0, 3), entry("", 6, 0)))
	if want := packOf([]byte("twoone"), index, 2, 3, 6); !bytes.Equal(got, want) {
		t.Errorf("the file is\n%q, want\n%q", got, want)
	}
	if want := digest(index) + ".pack"; filepath.Base(path) != want {
		t.Errorf("its name is %s, want %s", filepath.Base(path), want)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func entry(text string, offset, size uint64) []byte { return compressedEntry(text, offset, size, size) }

func compressedEntry(text string, offset, stored, size uint64) []byte {
	sum := sha256.Sum256([]byte(text))
	e := sum[:]
	for _, n := range []uint64{offset, stored, size} {
		e = binary.BigEndian.AppendUint64(e, n)
	}
	return e
}

func sortEntries(index []byte) []byte {
	return slices.Concat(slices.SortedFunc(slices.Chunk(index, 56), bytes.Compare)...)
}

// packOf returns a pack with a correct checksum, whatever else is wrong with
// it.
func packOf(contents, index []byte, version, objects, size uint64) []byte {
	tail := append(bytes.Clone(index), "HONEPACK"...)
	for _, n := range []uint64{version, objects, size} {
		tail = binary.BigEndian.AppendUint64(tail, n)
	}
	sum := sha256.Sum256(tail)
	return slices.Concat(contents, tail, sum[:])
}

func TestPackStoresOnce(t *testing.T) {
	h := home(t)
	if _, err := h.Put([]byte("loose")); err != nil {
		t.Fatal(err)
	}
	store(t, h, []byte("packed"), large('p'))
	for name, contents := range map[string][][]byte{
		"in one pack":          {[]byte("a"), []byte("b"), []byte("a"), []byte("b")},
		"long ones":            {large('c'), []byte("d"), large('c'), large('c')},
		"stored before":        {[]byte("loose"), []byte("e"), []byte("packed"), []byte("f")},
		"long, stored before":  {[]byte("g"), large('p'), []byte("h")},
		"long, after a repeat": {[]byte("i"), large('p'), large('j'), []byte("i")},
	} {
		t.Run(name, func(t *testing.T) {
			var want int64 = 64 // the trailer
			for i, b := range contents {
				first := slices.IndexFunc(contents, func(c []byte) bool { return bytes.Equal(b, c) }) == i
				if first && !h.Has(digest(b)) {
					want += int64(len(b)) + 56
				}
			}
			info, err := os.Stat(store(t, h, contents...))
			if err != nil || info.Size() != want {
				t.Errorf("a pack of %d bytes, want %d: %v", info.Size(), want, err)
			}
			for _, b := range contents {
				holds(t, h, b)
				holds(t, reopen(t, h), b)
			}
		})
	}
}

func TestPackHas(t *testing.T) {
	h := home(t)
	if _, err := h.Put([]byte("logged")); err != nil {
		t.Fatal(err)
	}
	store(t, h, []byte("packed"), large('p'))
	plain := large('q')
	if _, err := h.Put(plain); err != nil { // in a file of its own
		t.Fatal(err)
	}
	p := newPack(t, h)
	add(t, p, []byte("added"))
	for _, b := range [][]byte{[]byte("logged"), []byte("packed"), large('p'), plain, []byte("added")} {
		if !p.Has(digest(b), int64(len(b))) {
			t.Errorf("the pack lacks an object of %d bytes: %.6q", len(b), b)
		}
	}
	if p.Has(digest([]byte("other")), 5) || p.Has("", 0) || p.Has(digest(plain), 1) {
		t.Error("the pack has what was not stored")
	}
}

func TestPackGoesOnAfterAReader(t *testing.T) {
	h := home(t)
	p := newPack(t, h)
	add(t, p, []byte("before"))
	cause := errors.New("gone")
	for _, b := range [][]byte{[]byte("short"), large('x')} {
		if name, size, err := p.Add(io.MultiReader(bytes.NewReader(b), iotest.ErrReader(cause))); !errors.Is(err, cause) || name != "" || size != 0 {
			t.Errorf("%q, %d, %v", name, size, err)
		}
	}
	add(t, p, []byte("after"))
	closePack(t, p)
	for _, b := range []string{"before", "after"} {
		holds(t, reopen(t, h), []byte(b))
	}
	if h.Has(digest(large('x'))) || h.Has(digest([]byte("short"))) {
		t.Error("an object that could not be read is stored")
	}
}

func TestPackEnds(t *testing.T) {
	h := home(t)
	p := newPack(t, h)
	add(t, p, large('x'))
	closePack(t, p)
	if _, _, err := p.Add(strings.NewReader("late")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("add after close: %v", err)
	}
	if err := p.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("close after close: %v", err)
	}
	if err := p.Discard(); err != nil {
		t.Errorf("discard after close: %v", err)
	}
	holds(t, h, large('x'))

	p = newPack(t, h)
	add(t, p, large('y'))
	if names := packFiles(t, h); len(names) != 2 {
		t.Errorf("an open pack: %q", names)
	}
	if err := errors.Join(p.Discard(), p.Discard()); err != nil {
		t.Error(err)
	}
	if err := p.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("close after discard: %v", err)
	}
	if h.Has(digest(large('y'))) {
		t.Error("a discarded object is stored")
	}

	closePack(t, newPack(t, h))
	p = newPack(t, h)
	add(t, p, large('x')) // goes to the disk before it is known that it is stored
	closePack(t, p)
	if names := packFiles(t, h); len(names) != 1 {
		t.Errorf("in the end: %q", names)
	}
}

func TestNewPackClearsUp(t *testing.T) {
	h := home(t)
	live := newPack(t, h)
	add(t, live, large('y'))
	temp := packFiles(t, h)
	dead := filepath.Join(h.Dir(), "packs", "dead.tmp")
	if err := os.WriteFile(dead, []byte("of a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	newPack(t, h)
	if names := packFiles(t, h); len(temp) != 1 || !slices.Equal(names, temp) {
		t.Errorf("left %q, want only the temporary file of the other pack: %q", names, temp)
	}
	closePack(t, live)
	holds(t, reopen(t, h), large('y'))
}

func TestNothingIsStored(t *testing.T) {
	h := home(t)
	var missing *objects.MissingError
	if _, err := h.Get(digest(nil)); h.Has(digest(nil)) || !errors.As(err, &missing) || missing.Name != digest(nil) || len(missing.DamagedPacks) != 0 {
		t.Errorf("nothing is stored: %v", err)
	}
}

// TestNewPacksAreSeen opens the readers first and lets them look up objects in
// between. The modification time of the directory stays the same, as if two
// changes came within the resolution of the file system.
func TestNewPacksAreSeen(t *testing.T) {
	h := home(t)
	byHas, byGet := reopen(t, h), reopen(t, h)
	newPack(t, h) // creates the directory
	dir, soon := filepath.Join(h.Dir(), "packs"), time.Now().Add(time.Hour)
	for i := range 5 {
		a, b := nth(2*i), nth(2*i+1)
		if err := os.Chtimes(dir, soon, soon); err != nil {
			t.Fatal(err)
		}
		if byHas.Has(digest(a)) {
			t.Fatal("too early")
		}
		store(t, h, a, b)
		if err := os.Chtimes(dir, soon, soon); err != nil {
			t.Fatal(err)
		}
		if !byHas.Has(digest(a)) || !byHas.Has(digest(b)) {
			t.Fatalf("pack %d is not seen", i)
		}
		if _, err := byGet.Get(digest(b)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyAskAtOnce(t *testing.T) {
	h := home(t)
	reader := reopen(t, h)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				if h := []*stored{h, reader}[i%2]; h.Has(digest(nth(n))) {
					if b, err := h.Get(digest(nth(n))); err != nil || !bytes.Equal(b, nth(n)) {
						t.Errorf("%d: %v", n, err)
					}
				}
			}
		})
	}
	for i := range 20 {
		store(t, h, nth(10*i), nth(10*i+1))
	}
	all.Wait()
	holds(t, h, nth(191))
	holds(t, reader, nth(191))
}
