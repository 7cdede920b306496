package objects_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/journal/objects"
)

// garbagePacks returns packs with correct checksums in which the object "one"
// must not be found.
func garbagePacks() map[string][]byte {
	one, two, huge := entry("one", 0, 3), entry("two", 3, 3), ^uint64(0)
	unsorted := slices.Concat(one, two)
	if bytes.Equal(sortEntries(unsorted), unsorted) {
		unsorted = slices.Concat(two, one)
	}
	text := []byte("onetwo")
	return map[string][]byte{
		"another format":          packOf(text, one, 1, 1, 6),
		"too few objects":         packOf(text, sortEntries(unsorted), 2, 1, 6),
		"too many objects":        packOf(text, one, 2, 2, 6),
		"objects beyond memory":   packOf(text, one, 2, 1<<50, 6),
		"objects that wrap":       packOf(text, one, 2, 1<<61+1, 6), // times 56 is 56, of 64 bits
		"too little contents":     packOf(text, one, 2, 1, 5),
		"contents beyond memory":  packOf(text, one, 2, 1, huge),
		"both wrap":               packOf(text, one, 2, 2, huge-56+7),
		"unsorted":                packOf(text, unsorted, 2, 2, 6),
		"twice":                   packOf(text, slices.Concat(one, one), 2, 2, 6),
		"begins behind the end":   packOf(text, entry("one", 7, 0), 2, 1, 6),
		"begins before the file":  packOf(text, entry("one", huge, 3), 2, 1, 6),
		"ends behind the end":     packOf(text, entry("one", 4, 3), 2, 1, 6),
		"ends before it begins":   packOf(text, entry("one", 3, huge), 2, 1, 6),
		"stored in more":          packOf(text, compressedEntry("one", 0, 4, 3), 2, 1, 6),
		"a length below 0":        packOf(text, compressedEntry("one", 0, 3, huge), 2, 1, 6),
		"no objects but contents": packOf(text, nil, 2, 0, 0),
	}
}

func TestGarbageIsNoPack(t *testing.T) {
	for name, b := range garbagePacks() {
		t.Run(name, func(t *testing.T) {
			h := home(t)
			newPack(t, h)
			if err := os.WriteFile(filepath.Join(h.Dir(), "packs", "x.pack"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			var missing *objects.MissingError
			if _, err := h.Get(digest([]byte("one"))); !errors.As(err, &missing) || len(missing.DamagedPacks) != 1 || h.Has(digest([]byte("one"))) {
				t.Errorf("get: %v", err)
			}
		})
	}
}

// TestDamagedPack truncates a pack at every length and changes each of its
// bytes. Every read must return what was stored, or an error that names the
// file.
func TestDamagedPack(t *testing.T) {
	h := home(t)
	contents := [][]byte{[]byte("first"), {}, []byte("second")}
	path := store(t, h, contents...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tail := len(whole) - len("firstsecond")
	for i := range whole {
		for name, b := range map[string][]byte{"cut off": whole[:i], "changed": flip(whole, i)} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			found := readAll(t, reopen(t, h), path, contents)
			inContents := name == "changed" && i < len(whole)-tail
			if want := map[bool]int{true: 2, false: 0}[inContents]; found != want {
				t.Errorf("%s at %d: %d of the objects are found, want %d", name, i, found, want)
			}
			if t.Failed() {
				return
			}
		}
	}
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

// readAll returns how many objects can be read.
func readAll(t *testing.T, h *stored, path string, contents [][]byte) (found int) {
	t.Helper()
	for _, want := range contents {
		has := h.Has(digest(want))
		b, err := h.Get(digest(want))
		switch {
		case err == nil && bytes.Equal(b, want) && has:
			found++
		case err == nil:
			t.Errorf("got %q for %q; has: %t", b, want, has)
		case !strings.Contains(err.Error(), path):
			t.Errorf("the error does not name the file: %v", err)
		case has == errors.Is(err, fs.ErrNotExist):
			t.Errorf("has: %t, and get: %v", has, err)
		}
	}
	return found
}

// TestDamagedPacksAreReplaced stores the contents again.
func TestDamagedPacksAreReplaced(t *testing.T) {
	h := home(t)
	contents := [][]byte{[]byte("first"), []byte("second")}
	first := store(t, h, contents...)
	second := store(t, h, []byte("third"), []byte("fourth"))
	for _, path := range []string{first, second} {
		if err := os.Truncate(path, 30); err != nil {
			t.Fatal(err)
		}
	}
	h = reopen(t, h)
	var missing *objects.MissingError
	if _, err := h.Get(digest(contents[0])); !errors.As(err, &missing) || len(missing.DamagedPacks) != 2 || !strings.Contains(err.Error(), "2 damaged packs") {
		t.Errorf("with two damaged packs: %v", err)
	}
	p := newPack(t, h)
	for _, b := range contents {
		add(t, p, b)
	}
	closePack(t, p)
	for _, b := range contents {
		holds(t, h, b)
		holds(t, reopen(t, h), b)
	}
	if _, err := h.Get(digest([]byte("third"))); !errors.As(err, &missing) || len(missing.DamagedPacks) != 1 || !strings.Contains(err.Error(), second) {
		t.Errorf("the other pack: %v", err)
	}
}

// TestChangedObjectInAPack: with an intact index, a change is detected only at
// the end of the object.
func TestChangedObjectInAPack(t *testing.T) {
	h := home(t)
	path := store(t, h, []byte("first"), []byte("second"))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("F"), 0)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	o, err := h.OpenObject(digest([]byte("first")))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(o); string(b) != "First" || err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%q, %v", b, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	holds(t, h, []byte("second"))
	if o, err = h.OpenObject(digest([]byte("first"))); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Read(make([]byte, 2)); err != nil {
		t.Errorf("the first bytes: %v", err)
	}
	if err := o.Close(); err != nil {
		t.Errorf("close without reading to the end: %v", err)
	}
}

func TestPackThatWentAway(t *testing.T) {
	h := home(t)
	path := store(t, h, []byte("first"), []byte("second"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Get(digest([]byte("first"))); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("get: %v", err)
	}
}

// FuzzPackIndex replaces a pack with garbage, once as it is and once with a
// correct checksum. Nothing may panic, and nothing may be found.
func FuzzPackIndex(f *testing.F) {
	one := entry("one", 0, 3)
	two := sortEntries(slices.Concat(one, entry("two", 3, 3)))
	huge := ^uint64(0)
	f.Add([]byte("onetwo"), two, uint64(2), uint64(2), uint64(6))
	f.Add([]byte("onetwo"), slices.Concat(one, one), uint64(2), uint64(2), uint64(6))
	f.Add([]byte("one"), one, uint64(9), uint64(1), uint64(3))
	f.Add([]byte("one"), one, uint64(2), huge/56+2, uint64(3))
	f.Add([]byte("one"), one, uint64(2), uint64(1)<<61, uint64(1)<<62)
	f.Add([]byte("one"), entry("one", huge, 4), uint64(2), uint64(1), uint64(3))
	f.Add([]byte("one"), entry("one", 1, huge), uint64(2), uint64(1), uint64(3))
	f.Add([]byte("one"), entry("one", 0, 4), uint64(2), uint64(1), uint64(3))
	f.Add([]byte("one"), compressedEntry("one", 0, 3, 1<<62), uint64(2), uint64(1), uint64(3))
	frame := []byte("(\xb5/\xfd\x04\x00\x19\x00\x00one")
	f.Add(frame, compressedEntry("one", 0, uint64(len(frame)), 100), uint64(2), uint64(1), uint64(len(frame)))
	f.Add([]byte{}, []byte{}, uint64(2), uint64(0), uint64(0))
	h := home(f)
	newPack(f, h) // creates the directory
	path := filepath.Join(h.Dir(), "packs", "fuzz.pack")
	f.Fuzz(func(t *testing.T, contents, index []byte, version, objects, size uint64) {
		for _, b := range [][]byte{packOf(contents, index, version, objects, size), slices.Concat(contents, index)} {
			// Some file systems wait for the disk when a file is overwritten.
			_ = os.Remove(path)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			h := reopen(t, h)
			for e := range slices.Chunk(slices.Concat(index, entry("one", 0, 0)), 56) {
				name := hex.EncodeToString(e[:min(32, len(e))])
				if got, err := h.Get(name); err == nil && digest(got) != name {
					t.Errorf("%s: %q", name, got)
				}
			}
		}
	})
}
