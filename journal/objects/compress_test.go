package objects_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"hone/internal/disktest"

	"github.com/klauspost/compress/zstd"
)

// prose returns a text of n bytes that can be compressed, and no other has.
func prose(n, seed int) []byte {
	var b bytes.Buffer
	for i := seed; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d of the file number %d says what the line %d says\n", i, seed, i*i)
	}
	return b.Bytes()[:n]
}

// sizeOf returns the length of a file.
func sizeOf(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestPacksAreCompressed stores texts shorter and longer than a block, and what cannot
// be compressed.
func TestPacksAreCompressed(t *testing.T) {
	h := home(t)
	for name, c := range map[string]struct {
		contents [][]byte
		most     int64
	}{
		"texts":          {[][]byte{prose(2000, 1), prose(50_000, 2), prose(900_000, 3)}, 250_000},
		"a long text":    {[][]byte{prose(5<<20, 4)}, 1 << 20},
		"a block":        {[][]byte{prose(1<<20, 5), prose(1<<20+1, 6)}, 700_000},
		"zeros":          {[][]byte{make([]byte, 20<<20), {}}, 5_000},
		"noise":          {[][]byte{disktest.Noise(5<<20, 7), disktest.Noise(3000, 8)}, 5<<20 + 3000 + 200},
		"first a text":   {[][]byte{append(prose(2<<20, 9), disktest.Noise(2<<20, 9)...), {'a'}}, 3 << 20},
		"first noise":    {[][]byte{append(disktest.Noise(2<<20, 10), prose(2<<20, 10)...), {'b'}}, 4<<20 + 300},
		"less than pays": {[][]byte{prose(200, 11), disktest.Noise(300, 12)}, 500 + 200},
	} {
		t.Run(name, func(t *testing.T) {
			if size := sizeOf(t, store(t, h, c.contents...)); size > c.most {
				t.Errorf("the pack has %d bytes, want at most %d", size, c.most)
			}
			for _, b := range c.contents {
				holds(t, h, b)
				holds(t, reopen(t, h), b)
			}
		})
	}
}

// TestFilesAreCompressed: an object of its own file is compressed if that frees space,
// and the user finds a plain file.
func TestFilesAreCompressed(t *testing.T) {
	h := home(t)
	for name, c := range map[string]struct {
		content []byte
		most    int64
	}{
		"text":        {prose(60_000, 1), 20_000},
		"a long text": {prose(3<<20, 2), 1 << 20},
		"small":       {prose(200, 3), 200},
		"noise":       {disktest.Noise(60_000, 4), 60_000},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := h.Put(c.content)
			if err != nil || object != digest(c.content) {
				t.Fatal(object, err)
			}
			compressed := strings.HasSuffix(h.ObjectPath(object), ".zst")
			if size := sizeOf(t, h.ObjectPath(object)); size > c.most || compressed != (c.most < int64(len(c.content))) {
				t.Errorf("%s has %d bytes, want at most %d", h.ObjectPath(object), size, c.most)
			}
			holds(t, h, c.content)
			path, err := h.PlainFile(object)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, c.content) {
				t.Errorf("%s: %d bytes, %v", path, len(b), err)
			}
			holds(t, h, c.content)
		})
	}
	if _, err := h.PlainFile(digest(nil)); err == nil {
		t.Error("there is a file of what is not stored")
	}
}

// TestDamagedFrames changes and truncates compressed objects at every byte.
func TestDamagedFrames(t *testing.T) {
	h := home(t)
	text := prose(6000, 1)
	if _, err := h.Put(text); err != nil {
		t.Fatal(err)
	}
	packed := [][]byte{prose(3000, 2), prose(2000, 3)}
	for path, contents := range map[string][][]byte{h.ObjectPath(digest(text)): {text}, store(t, h, packed...): packed} {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			for _, b := range [][]byte{whole[:i], flip(whole, i)} {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				if readAll(t, reopen(t, h), path, contents); t.Failed() {
					t.Fatalf("%s, byte %d of %d", path, i, len(whole))
				}
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBombs: a small frame of 1 GB is not read beyond the length that is recorded, and
// one that claims an absurd length takes no memory.
func TestBombs(t *testing.T) {
	h := home(t)
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	e.Reset(&bomb)
	if _, err := io.CopyN(e, zeros{}, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	small := e.EncodeAll(make([]byte, 5000), nil)
	claims := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xc0 | 0x20}, bytes.Repeat([]byte{0x7f}, 8)...) // a length of 8 bytes
	for name, frame := range map[string][]byte{"no length": bomb.Bytes(), "another object": small, "an absurd length": append(claims, small[len(small)-8:]...)} {
		t.Run(name, func(t *testing.T) {
			text := prose(6000, len(name))
			object, err := h.Put(text)
			if err != nil {
				t.Fatal(err)
			}
			path := h.ObjectPath(object)
			if err := os.WriteFile(path, frame, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Get(object); err == nil || !strings.Contains(err.Error(), path+" was changed after it was stored") {
				t.Errorf("get: %v", err)
			}
		})
	}
	pack := store(t, h, []byte("a"), []byte("b"))
	frame := bomb.Bytes()
	index := compressedEntry("one", 0, uint64(len(frame)), uint64(len(frame))+1)
	if err := os.WriteFile(pack, packOf(frame, index, 2, 1, uint64(len(frame))), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := reopen(t, h).OpenObject(digest([]byte("one")))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if n, err := io.Copy(io.Discard, o); n > int64(len(frame))+1 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// BenchmarkSnapshot stores and reads back 50 MB of source text in files of 10 KB.
func BenchmarkSnapshot(b *testing.B) {
	const files = 5000
	texts := make([][]byte, files)
	for i := range texts {
		texts[i] = prose(10_000, i)
	}
	for b.Loop() {
		h, err := open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		p := newPack(b, h)
		for _, text := range texts {
			add(b, p, text)
		}
		closePack(b, p)
		for _, text := range texts {
			if got, err := h.Get(digest(text)); err != nil || len(got) != len(text) {
				b.Fatal(err)
			}
		}
		h.Close()
	}
}
