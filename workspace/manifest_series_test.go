package workspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// texts holds texts by their digest.
type texts map[string][]byte

var errNoText = errors.New("no such text")

func (t texts) put(text []byte) (string, error) {
	t[Digest(text)] = slices.Clone(text)
	return Digest(text), nil
}

func (t texts) get(name string) ([]byte, error) {
	text, ok := t[name]
	if !ok {
		return nil, errNoText
	}
	return text, nil
}

// testManifest returns a manifest of n files, all with digest and reliable
// stamp.
func testManifest(n int) Manifest {
	m := make(Manifest, n)
	for i := range m {
		path := fmt.Sprintf("pkg%02d/sub%03d/file%05d.go", i/5000, i/100, i)
		m[i] = Entry{Path: path, Kind: Regular, Mode: 0o644, Size: 2048, Digest: Digest([]byte(path)),
			stamp: stamp{1_700_000_000_000_000_000 + int64(i), 1_700_000_000_000_000_000 + int64(i), uint64(1000 + i)}}
	}
	return m
}

// mutated returns a manifest after random changes of all kinds.
func mutated(r *rand.Rand, m Manifest, n int) Manifest {
	m = slices.Clone(m)
	for range n {
		i := 0
		if len(m) > 0 {
			i = r.IntN(len(m))
		}
		switch op := r.IntN(5); {
		case op == 0 || len(m) == 0:
			e := Entry{Path: fmt.Sprintf("new\xff %d", r.IntN(30)), Kind: Symlink, Target: fmt.Sprint(r.IntN(3))}
			if at, found := m.search(e.Path); !found {
				m = slices.Insert(m, at, e)
			}
		case op == 1:
			m = slices.Delete(m, i, i+1)
		case op == 2:
			m[i].stamp.changed++
		case op == 3:
			m[i].Note, m[i].Digest = "permission denied", ""
		default:
			m[i].Digest = Digest([]byte(fmt.Sprint(r.IntN(3))))
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// TestSeriesRandom changes a tree at random. Each manifest must be read back
// unchanged, and each move must return the differences.
func TestSeriesRandom(t *testing.T) {
	exact := cmp.AllowUnexported(Entry{}, stamp{})
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		kept, all := texts{}, []Stored{}
		var s Stored
		m := testManifest(r.IntN(60))
		for range 60 {
			next, err := s.StoreNext(m, kept.put)
			if err != nil {
				t.Fatal(err)
			}
			s, all = next, append(all, next)
			m = mutated(r, m, r.IntN(8)*r.IntN(8)/6)
		}
		walk := Series{Get: kept.get}
		at := Manifest(nil)
		order := append(slices.Clone(all), all[30], all[3], all[3], all[59], all[0])
		for i, want := range order {
			deltas, err := walk.MoveTo(want.Name)
			if err != nil {
				t.Fatalf("seed %d, manifest %d: %v", seed, i, err)
			}
			if i == 0 {
				at = want.Manifest
			}
			if diff := cmp.Diff(at.Diff(want.Manifest), deltas, exact); diff != "" {
				t.Fatalf("seed %d: the differences to manifest %d (-want +got):\n%s", seed, i, diff)
			}
			if r.IntN(3) > 0 { // otherwise make several moves in a row
				if diff := cmp.Diff(want.Manifest, walk.Manifest(), exact, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("seed %d, manifest %d in between (-want +got):\n%s", seed, i, diff)
				}
			}
			again, err := ReadManifest(want.Name, kept.get)
			if err != nil {
				t.Fatalf("seed %d, manifest %d: %v", seed, i, err)
			}
			if diff := cmp.Diff(want, again, exact, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, manifest %d read back (-want +got):\n%s", seed, i, diff)
			}
			at = want.Manifest
		}
	}
}

func TestSeriesEntry(t *testing.T) {
	kept := texts{}
	first, _ := Stored{}.StoreNext(testManifest(20), kept.put)
	m := slices.Delete(slices.Clone(first.Manifest), 3, 4)
	m[5].Mode = 0o755
	second, _ := first.StoreNext(m, kept.put)
	s := Series{Get: kept.get}
	for _, name := range []string{first.Name, second.Name} {
		if _, err := s.MoveTo(name); err != nil || s.Name() != name {
			t.Fatal(s.Name(), err)
		}
	}
	if _, there := s.Entry(first.Manifest[3].Path); there {
		t.Error("a removed path exists")
	}
	if e, there := s.Entry(m[5].Path); !there || e.Mode != 0o755 {
		t.Errorf("the changed entry is %v, %v", e, there)
	}
	if e, there := s.Entry(m[7].Path); !there || e != m[7] {
		t.Errorf("the unchanged entry is %v, %v", e, there)
	}
}

// TestStoreNext: an unchanged manifest is not stored.
func TestStoreNext(t *testing.T) {
	kept := texts{}
	first, err := Stored{}.StoreNext(testManifest(100), kept.put)
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := first.StoreNext(testManifest(100), func([]byte) (string, error) { panic("kept") }); same.Name != first.Name {
		t.Error("an equal manifest has another name")
	}
	m := testManifest(100)
	m[7].stamp.modified++
	if s, err := first.StoreNext(m, kept.put); err != nil || s.Name != Digest(m.Encode()) {
		t.Errorf("a manifest with another stamp is called %q, %v", s.Name, err)
	}
	if s, err := first.StoreNext(testManifest(99), func([]byte) (string, error) { return "", errNoText }); !errors.Is(err, errNoText) || s.Name != first.Name {
		t.Errorf("after a failed put the name is %q, %v", s.Name, err)
	}
	if _, err := ReadManifest(Digest(nil), kept.get); !errors.Is(err, errNoText) || !strings.Contains(err.Error(), Digest(nil)[:12]) {
		t.Error(err)
	}
}

// BenchmarkSeries moves through 200 manifests of 100 000 files, each with one
// file changed.
func BenchmarkSeries(b *testing.B) {
	kept, all := texts{}, []string{}
	s, m := Stored{}, testManifest(100_000)
	for i := range 200 {
		m = slices.Clone(m)
		m[i*400].stamp.modified++
		s, _ = s.StoreNext(m, kept.put)
		all = append(all, s.Name)
	}
	b.Run("in order", func(b *testing.B) {
		for b.Loop() {
			walk := Series{Get: kept.get}
			for _, name := range all {
				if _, err := walk.MoveTo(name); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("last alone", func(b *testing.B) {
		for b.Loop() {
			if _, err := ReadManifest(s.Name, kept.get); err != nil {
				b.Fatal(err)
			}
		}
	})
}
