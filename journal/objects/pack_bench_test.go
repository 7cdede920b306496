package objects_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"hone/internal/disktest"
)

const benchSize = 2 << 10

// nth returns the object of benchSize bytes with number n; no two are equal.
func nth(n int) []byte {
	return disktest.Noise(benchSize, uint64(n))
}

// BenchmarkStore stores objects of 2 KiB in a new workspace, each in a file of
// its own and all in a pack.
func BenchmarkStore(b *testing.B) {
	for _, n := range []int{1, 2, 3, 5, 10, 1000, 50_000} {
		if n <= 1000 {
			b.Run(fmt.Sprintf("loose/%d", n), func(b *testing.B) { benchStore(b, n, putAll) })
		}
		b.Run(fmt.Sprintf("pack/%d", n), func(b *testing.B) { benchStore(b, n, packAll) })
	}
}

func benchStore(b *testing.B, n int, store func(*stored, int) error) {
	for b.Loop() {
		b.StopTimer()
		h, err := open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := store(h, n); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/object")
}

func putAll(h *stored, n int) error {
	for i := range n {
		if _, err := h.Put(nth(i)); err != nil {
			return err
		}
	}
	return nil
}

func packAll(h *stored, n int) error { return packFrom(h, 0, n) }

// packFrom stores n objects in one pack, numbered from first.
func packFrom(h *stored, first, n int) error {
	p, err := h.NewPack()
	if err != nil {
		return err
	}
	for i := first; i < first+n; i++ {
		if _, _, err := p.Add(bytes.NewReader(nth(i))); err != nil {
			return err
		}
	}
	return p.Close()
}

// BenchmarkHas looks up each of 100 000 objects in a pack, 1 000 loose ones,
// and 100 000 that are not stored.
func BenchmarkHas(b *testing.B) {
	const n = 100_000
	h := home(b)
	if err := packAll(h, n); err != nil {
		b.Fatal(err)
	}
	names := make([]string, n)
	absent := make([]string, n)
	for i := range n {
		names[i], absent[i] = digest(nth(i)), digest(nth(n+i))
	}
	b.Run("packed", func(b *testing.B) { benchHas(b, h, names, true) })
	b.Run("absent", func(b *testing.B) { benchHas(b, h, absent, false) })
	loose := home(b)
	if err := putAll(loose, 1000); err != nil {
		b.Fatal(err)
	}
	b.Run("loose", func(b *testing.B) { benchHas(b, loose, names[:1000], true) })
}

func benchHas(b *testing.B, h *stored, names []string, want bool) {
	for b.Loop() {
		for _, n := range names {
			if h.Has(n) != want {
				b.Fatalf("%s: %t", n, !want)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/object")
}

// BenchmarkFirstHas opens a workspace and looks up one object, which reads all
// indexes.
func BenchmarkFirstHas(b *testing.B) {
	for _, c := range []struct{ packs, objects int }{{1, 100_000}, {1000, 10}} {
		b.Run(fmt.Sprintf("%d packs of %d", c.packs, c.objects), func(b *testing.B) {
			dir := b.TempDir()
			h, err := open(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			for i := range c.packs {
				if err := packFrom(h, i*c.objects, c.objects); err != nil {
					b.Fatal(err)
				}
			}
			name := digest(nth(0))
			for b.Loop() {
				h, err := open(dir)
				if err != nil || !h.Has(name) {
					b.Fatal(err)
				}
				h.Close()
			}
		})
	}
}

// BenchmarkGet reads each of 10 000 packed objects of 2 KiB.
func BenchmarkGet(b *testing.B) {
	const n = 10_000
	h := home(b)
	if err := packAll(h, n); err != nil {
		b.Fatal(err)
	}
	names := make([]string, n)
	for i := range n {
		names[i] = digest(nth(i))
	}
	b.SetBytes(n * benchSize)
	for b.Loop() {
		for _, name := range names {
			if _, err := h.Get(name); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkLarge stores one object of 256 MiB.
func BenchmarkLarge(b *testing.B) {
	const size = 256 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		h := home(b)
		p, err := h.NewPack()
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := p.Add(io.LimitReader(zeros{}, size)); err != nil {
			b.Fatal(err)
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
