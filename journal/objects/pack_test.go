package objects_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"hone/internal/disktest"
	"hone/journal/objects"
)

// stored is a store and its directory.
type stored struct {
	*objects.Store
	in *objects.Dir
}

func open(t testing.TB, path string) *stored {
	t.Helper()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	in := &objects.Dir{Root: root, Path: path}
	return &stored{objects.In(in, "."), in}
}

func (s *stored) file(run string) string { return s.in.At(run + ".pack") }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// prose returns a text of n bytes that can be compressed, and no other has.
func prose(n, seed int) []byte {
	b := fmt.Appendf(nil, "text %d: ", seed)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "line %d of a long text\n", i)
	}
	return b[:n]
}

func holds(t testing.TB, s *objects.Store, contents ...[]byte) {
	t.Helper()
	for _, b := range contents {
		if got, err := s.Get(digest(b)); err != nil || !bytes.Equal(got, b) || !s.Has(digest(b)) {
			t.Errorf("%.20q: %d bytes of %d, %v", b, len(got), len(b), err)
		}
	}
}

// fill stores contents in the pack of a run, by both calls, and syncs it.
func fill(t testing.TB, s *stored, run string, contents ...[]byte) {
	t.Helper()
	p := s.Pack(run)
	for _, b := range contents {
		if name := must(p.Put(b)); name != digest(b) {
			t.Errorf("%.20q is called %s", b, name)
		}
		if name, size, err := p.Add(bytes.NewReader(b)); err != nil || name != digest(b) || size != int64(len(b)) {
			t.Errorf("%.20q again: %s, %d, %v", b, name, size, err)
		}
	}
	must(0, errors.Join(p.Sync(), p.Close()))
}

func all() [][]byte {
	return [][]byte{nil, []byte("x"), prose(255, 1), prose(3000, 2), disktest.Noise(3000, 1), prose(3<<20, 3), disktest.Noise(3<<20+7, 2), []byte("last")}
}

func TestPack(t *testing.T) {
	s := open(t, t.TempDir())
	reader := open(t, s.in.Path)
	if reader.Has(digest(nil)) {
		t.Error("an empty store has an object")
	}
	p := s.Pack("a")
	for _, b := range all() {
		if _, _, err := p.Add(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		holds(t, s.Store, b)
		holds(t, reader.Store, b)
	}
	must(0, errors.Join(p.Sync(), p.Close()))
	size := must(os.Stat(s.file("a"))).Size()
	if size < 3<<20 || size > 3<<20+100_000 {
		t.Errorf("the pack has %d bytes", size)
	}
	// No later run stores any of them, and none is stored twice.
	fill(t, s, "b", all()...)
	fill(t, open(t, s.in.Path), "c", append(all(), []byte("more"))...)
	if again := must(os.Stat(s.file("a"))).Size(); again != size {
		t.Errorf("the pack grew from %d to %d", size, again)
	}
	if empty := must(os.Stat(s.file("b"))).Size(); empty > 8 {
		t.Errorf("the other pack has %d bytes", empty)
	}
	holds(t, open(t, s.in.Path).Store, append(all(), []byte("more"))...)
	if sizes, err := s.Sizes(); err != nil || len(sizes) != len(all())+1 {
		t.Errorf("%d objects, %v", len(sizes), err)
	}
}

// TestTornPack cuts a pack at every length, as a power failure does, and changes every byte
// of its last record. What is before is found, and the run stores the rest again.
func TestTornPack(t *testing.T) {
	contents := [][]byte{[]byte("one"), prose(300, 2), prose(400, 3)}
	s := open(t, t.TempDir())
	ends, killed := []int64{0}, open(t, s.in.Path).Pack("a")
	for _, b := range contents {
		must(killed.Put(b))
		must(0, killed.Sync())
		ends = append(ends, must(os.Stat(s.file("a"))).Size())
	}
	whole := must(os.ReadFile(s.file("a")))
	check := func(what string, torn []byte, intact int) {
		t.Helper()
		must(0, os.WriteFile(s.file("a"), torn, 0o600))
		holds(t, open(t, s.in.Path).Store, contents[:intact]...)
		for i, b := range contents {
			if got, err := open(t, s.in.Path).Get(digest(b)); err == nil && !bytes.Equal(got, b) || err != nil && i < intact {
				t.Errorf("%s: object %d: %v", what, i, err)
			}
		}
		fill(t, open(t, s.in.Path), "a", contents...)
		holds(t, open(t, s.in.Path).Store, contents...)
	}
	for n := range whole {
		intact := 0
		for intact < len(contents) && ends[intact+1] <= int64(n) {
			intact++
		}
		if n < 80 || intact == 2 {
			check(fmt.Sprint("cut at ", n), whole[:n], intact)
		}
	}
	for n := ends[2]; n < ends[3]; n++ {
		changed := bytes.Clone(whole)
		changed[n] ^= 0x40
		check(fmt.Sprint("changed at ", n), changed, 2)
	}
}

// TestClosedPack: nobody makes a pack durable again that was closed.
func TestClosedPack(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s, "a", prose(300, 1))
	later := open(t, s.in.Path)
	later.in.Synced = func(name string) { t.Errorf("%s is synced", name) }
	if !later.Pack("b").Has(digest(prose(300, 1))) {
		t.Error("the object is missing")
	}
	if b := must(os.ReadFile(s.file("a"))); len(b) == 0 {
		t.Error("the pack is empty")
	}
}

// TestDamageIsNotCut: what was durable once is not cut if a program changed it since.
func TestDamageIsNotCut(t *testing.T) {
	s := open(t, t.TempDir())
	for n := range 3 {
		fill(t, open(t, s.in.Path), "a", prose(300, n))
	}
	b := must(os.ReadFile(s.file("a")))
	b[20] ^= 1
	must(0, os.WriteFile(s.file("a"), b, 0o600))
	if _, err := open(t, s.in.Path).Pack("a").Put([]byte("more")); err == nil || !strings.Contains(err.Error(), s.file("a")) {
		t.Errorf("stored: %v", err)
	}
	if again := must(os.ReadFile(s.file("a"))); !bytes.Equal(again, b) {
		t.Error("the pack was changed")
	}
	var missing *objects.MissingError
	if _, err := s.Get(digest(prose(300, 2))); !errors.As(err, &missing) || !strings.Contains(err.Error(), s.file("a")) {
		t.Errorf("read: %v", err)
	}
	// Another run needs none of it.
	fill(t, open(t, s.in.Path), "b", prose(300, 2))
	holds(t, open(t, s.in.Path).Store, prose(300, 2))
}

// TestUnsyncedObjects: what a killed process did not sync is read and synced before the next
// process of its run relies on it, and stored again by other runs or if a power failure changed it.
func TestUnsyncedObjects(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		for _, run := range []string{"a", "b"} {
			s := open(t, t.TempDir())
			p := s.Pack("a")
			must(p.Put(prose(300, 1)))
			must(0, p.Sync())
			must(p.Put(prose(300, 2)))
			must(0, p.Close())
			if damaged {
				b := must(os.ReadFile(s.file("a")))
				b[len(b)-1] ^= 1
				must(0, os.WriteFile(s.file("a"), b, 0o600))
			}
			other, synced := open(t, s.in.Path), []string{}
			other.in.Synced = func(name string) { synced = append(synced, name) }
			again := other.Pack(run)
			must(again.Put(prose(300, 1)))
			if len(synced) > 0 {
				t.Errorf("%s: synced %q", run, synced)
			}
			must(again.Put(prose(300, 2)))
			must(0, errors.Join(again.Sync(), again.Close()))
			if len(synced) == 0 {
				t.Errorf("%s: nothing was synced", run)
			}
			holds(t, open(t, s.in.Path).Store, prose(300, 1), prose(300, 2))
		}
	}
}

// TestLostPack: what is stored in a file without a name is lost.
func TestLostPack(t *testing.T) {
	s := open(t, t.TempDir())
	p := s.Pack("a")
	must(p.Put([]byte("one")))
	must(0, os.Remove(s.file("a")))
	if err := p.Sync(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("synced: %v", err)
	}
}

func TestDiscard(t *testing.T) {
	s := open(t, t.TempDir())
	p := s.Pack("a")
	must(p.Put([]byte("one")))
	must(0, p.Discard())
	if _, err := os.Stat(s.file("a")); !errors.Is(err, fs.ErrNotExist) || s.Has(digest([]byte("one"))) {
		t.Errorf("the pack is left: %v", err)
	}
	fill(t, s, "a", []byte("one"))
	p = s.Pack("a")
	must(p.Put([]byte("two")))
	must(0, p.Discard())
	holds(t, s.Store, []byte("one"))
	if s.Has(digest([]byte("two"))) {
		t.Error("what was discarded is stored")
	}
}

// After an error of its reader, nothing of an object is left.
func TestAddFails(t *testing.T) {
	s := open(t, t.TempDir())
	p := s.Pack("a")
	defer p.Close()
	for _, size := range []int{100, 2 << 20} {
		broken := io.MultiReader(bytes.NewReader(prose(size, 1)), errorReader{})
		if _, _, err := p.Add(broken); !errors.Is(err, errReader) {
			t.Error(err)
		}
		must(p.Put(prose(100, size)))
	}
	holds(t, open(t, s.in.Path).Store, prose(100, 100), prose(100, 2<<20))
}

var errReader = errors.New("broken")

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errReader }

func TestConcurrentCalls(t *testing.T) {
	s := open(t, t.TempDir())
	p := s.Pack("a")
	defer p.Close()
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range 50 {
				b := prose(100+n%3, i)
				must(p.Put(b))
				holds(t, s.Store, b)
				must(0, p.Sync())
			}
		})
	}
	group.Wait()
	holds(t, open(t, s.in.Path).Store, prose(101, 49))
}

// TestOddFiles: what is no pack neither blocks nor hides the others.
func TestOddFiles(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s, "b", []byte("one"))
	must(0, os.Mkdir(s.file("a"), 0o700))
	must(0, os.WriteFile(s.file("c"), []byte("HONEPAK2 and more"), 0o600))
	must(0, os.WriteFile(s.file("d"), nil, 0o600))
	other := open(t, s.in.Path)
	holds(t, other.Store, []byte("one"))
	fill(t, other, "e", []byte("two"))
	fill(t, open(t, s.in.Path), "d", []byte("three"))
	holds(t, open(t, s.in.Path).Store, []byte("two"), []byte("three"))
	for _, run := range []string{"a", "c"} {
		if _, err := other.Pack(run).Put([]byte("four")); err == nil || !strings.Contains(err.Error(), s.file(run)) {
			t.Errorf("%s: %v", run, err)
		}
	}
	if _, err := other.Sizes(); err == nil {
		t.Error("the sizes are known in spite of damaged packs")
	}
}

// table returns a text of n lines like those of a manifest; lines with the numbers of
// changed differ.
func table(n int, changed ...int) []byte {
	var b []byte
	for i := range n {
		seed := uint64(i)
		for _, c := range changed {
			if c == i {
				seed += 1e6
			}
		}
		b = fmt.Appendf(b, "regular 644 %x path/of/file%d\n", disktest.Noise(32, seed), i)
	}
	return b
}

// TestNext: texts that resemble each other take little, also from another process on, and
// each can be read alone.
func TestNext(t *testing.T) {
	t.Run("small", func(t *testing.T) { testNext(t, 50, 400) })
	t.Run("large", func(t *testing.T) { testNext(t, 20_000, 4000) })
}

func testNext(t *testing.T, lines int, most int64) {
	s := open(t, t.TempDir())
	var texts [][]byte
	size := func() int64 { return must(os.Stat(s.file("a"))).Size() }
	for process := range 2 {
		p := open(t, s.in.Path).Pack("a")
		for n := range 5 {
			texts = append(texts, table(lines, 10*process+n, lines/3))
			before := int64(0)
			if len(texts) > 1 {
				before = size()
			}
			must(p.PutNext(texts[len(texts)-1]))
			if grown := size() - before; len(texts) > 1 && grown > most {
				t.Errorf("text %d of %d bytes takes %d", len(texts), len(texts[0]), grown)
			}
		}
		must(0, p.Close())
	}
	// What differs more takes as much as the first, and others are like it.
	p := open(t, s.in.Path).Pack("a")
	before := size()
	texts = append(texts, must(io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{}), int64(lines)))), prose(10, 1), table(10), nil)
	for _, text := range texts[10:] {
		must(p.PutNext(text))
	}
	must(0, p.Close())
	if grown := size() - before; grown < int64(lines) || grown > int64(2*lines)+4000 {
		t.Errorf("another text takes %d", grown)
	}
	rand.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	holds(t, open(t, s.in.Path).Store, texts...)
}

// FuzzPack replaces a pack by garbage. Nothing may panic, and what is found is right.
func FuzzPack(f *testing.F) {
	s := open(f, f.TempDir())
	p := s.Pack("a")
	for _, b := range [][]byte{nil, prose(300, 1), []byte("x")} {
		must(p.Put(b))
	}
	must(p.PutNext(table(10)))
	must(p.PutNext(table(10, 3)))
	must(0, errors.Join(p.Sync(), p.Close()))
	f.Add(must(os.ReadFile(s.file("a"))))
	f.Fuzz(func(t *testing.T, garbage []byte) {
		s := open(t, t.TempDir())
		must(0, os.WriteFile(s.file("a"), garbage, 0o600))
		sizes, _ := s.Sizes()
		for name := range sizes {
			if b, err := s.Get(name); err == nil && digest(b) != name {
				t.Errorf("%s: %.40q", name, b)
			}
		}
		_, _ = s.Pack("a").Put([]byte("more"))
		fill(t, open(t, s.in.Path), "b", []byte("most"))
		holds(t, open(t, s.in.Path).Store, []byte("most"))
	})
}

// BenchmarkPack stores and reads 50 MB of text in files of 10 KB.
func BenchmarkPack(b *testing.B) {
	contents := make([][]byte, 5000)
	for i := range contents {
		contents[i] = prose(10_000, i)
	}
	for n := 0; b.Loop(); n++ {
		s := open(b, b.TempDir())
		p := s.Pack("a")
		for _, c := range contents {
			must(p.Put(c))
		}
		must(0, errors.Join(p.Sync(), p.Close()))
		holds(b, open(b, filepath.Dir(s.file("a"))).Store, contents...)
	}
}

// TestBombs: a small frame of 1 GB is not read beyond the length that is recorded.
func TestBombs(t *testing.T) {
	var frame bytes.Buffer
	z := must(zstd.NewWriter(&frame))
	must(io.CopyN(z, zeros{}, 1<<30))
	must(0, z.Close())
	for kind := range byte(3) {
		kind++
		for _, size := range []uint64{10, 1 << 30, math.MaxInt64} {
			s := open(t, t.TempDir())
			fill(t, s, "a", prose(300, 1)) // a pack with the magic
			b := must(os.ReadFile(s.file("a")))[:8]
			record := func(kind byte, stored, size uint64) {
				head := append([]byte("hone"), make([]byte, 32)...)
				head[4], head = byte(len(b)), append(head, kind)
				for _, n := range []uint64{stored, size, 8} {
					head = binary.BigEndian.AppendUint64(head, n)
				}
				b = append(b, binary.BigEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))...)
			}
			small := must(zstd.NewWriter(nil)).EncodeAll(prose(300, 2), nil)
			record(2, uint64(len(small)), 300)
			b = append(b, small...)
			record(kind, uint64(frame.Len()), size)
			b = append(b, frame.Bytes()...)
			must(0, os.WriteFile(s.file("a"), b, 0o600))
			other := open(t, s.in.Path)
			for name := range must(other.Sizes()) {
				if strings.HasPrefix(name, "08") {
					continue // the base
				}
				if o, err := other.OpenObject(name); err == nil {
					n, err := io.Copy(io.Discard, o)
					if err == nil || uint64(n) > size {
						t.Errorf("kind %d: %d bytes of %d, %v", kind, n, size, err)
					}
					o.Close()
				}
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
