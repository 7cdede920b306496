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
			if diff := cmp.Diff(want, again, exact, cmp.AllowUnexported(Stored{}), cmpopts.EquateEmpty()); diff != "" {
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

// TestStoreNext: a small change is stored as changes; a large one, and one
// after many in a row, is stored complete; an unchanged manifest is not stored.
func TestStoreNext(t *testing.T) {
	kept := texts{}
	first, err := Stored{}.StoreNext(testManifest(100), kept.put)
	if err != nil || isChanges(kept[first.Name]) {
		t.Fatalf("%v: %s", err, kept[first.Name])
	}
	if same, _ := first.StoreNext(testManifest(100), func([]byte) (string, error) { panic("kept") }); same.Name != first.Name {
		t.Error("an equal manifest has another name")
	}
	changed := func(s Stored, n int) Stored {
		m := slices.Clone(s.Manifest)
		for i := range n {
			m[i].stamp.modified++
		}
		next, err := s.StoreNext(m, kept.put)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	if !isChanges(kept[changed(first, 20).Name]) || isChanges(kept[changed(first, 30).Name]) {
		t.Error("the limit is not a quarter")
	}
	s, row, longest := first, 0, 0
	for range 100 {
		s = changed(s, 1)
		if row++; !isChanges(kept[s.Name]) {
			row = 0
		}
		longest = max(longest, row)
	}
	if longest != maxLinks {
		t.Errorf("there are %d changes in a row", longest)
	}
	if s, err := first.StoreNext(testManifest(99), func([]byte) (string, error) { return "", errNoText }); !errors.Is(err, errNoText) || s.Name != first.Name {
		t.Errorf("after a failed put the name is %q, %v", s.Name, err)
	}
}

func TestChangesText(t *testing.T) {
	base := Manifest{{Path: "a", Kind: Symlink, Target: "x"}, {Path: "b\n\xff", Kind: Symlink, Target: "x"}, {Path: "c", Kind: Symlink, Target: "x"}}
	m := Manifest{{Path: "a", Kind: Symlink, Target: "y"}, {Path: "c", Kind: Symlink, Target: "x"}, {Path: "d", Kind: Symlink, Target: "x"}}
	text := string(m.changesSince(base, Digest(base.Encode())).encode())
	head, lines, _ := strings.Cut(text, "\n")
	head += "\n"
	if want := "link 0 0 - 0 0 0 \"a\" \"y\" \"\"\ngone \"b\\n\\xff\"\nlink 0 0 - 0 0 0 \"d\" \"x\" \"\"\n"; lines != strings.ReplaceAll(want, "link", string(Symlink)) {
		t.Errorf("written as\n%s", lines)
	}
	if _, err := DecodeManifest([]byte(text)); err == nil {
		t.Error("changes are decoded as a complete manifest")
	}
	kept := texts{}
	_, _ = kept.put(base.Encode())
	read := func(text string) error {
		name, _ := kept.put([]byte(text))
		_, err := ReadManifest(name, kept.get)
		return err
	}
	for name, good := range map[string]string{"as written": text, "no change": head} {
		if err := read(good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	line := func(path, target string) string {
		return string(appendEntry(nil, Entry{Path: path, Kind: Symlink, Target: target}))
	}
	for name, bad := range map[string]string{
		"nothing":            "",
		"version":            strings.Replace(text, "manifest 1", "manifest 2", 1),
		"no name":            "hone manifest 1 since \n" + lines,
		"a short name":       strings.Replace(text, Digest(base.Encode()), "abcd", 1),
		"a loud name":        strings.Replace(text, Digest(base.Encode()), strings.ToUpper(Digest(base.Encode())), 1),
		"no such base":       strings.Replace(text, Digest(base.Encode()), Digest(nil), 1),
		"head only, cut":     head[:len(head)-1],
		"cut":                text[:len(text)-1],
		"order":              head + line("d", "y") + line("a", "y"),
		"twice":              head + line("a", "y") + line("a", "z"),
		"changed and gone":   head + line("a", "y") + "gone \"a\"\n",
		"gone, not there":    head + "gone \"b\"\n",
		"as it was":          head + line("a", "x"),
		"gone, no path":      head + "gone \"\"\n",
		"gone, other quotes": head + "gone `a`\n",
		"gone, more":         head + "gone \"a\" \"\"\n",
		"gone, unquoted":     head + "gone a\n",
	} {
		if err := read(bad); err == nil {
			t.Errorf("%s: no error for %q", name, bad)
		}
	}
}

// TestSeriesIsBounded: a series refuses a chain of changes that is longer than
// StoreNext would write.
func TestSeriesIsBounded(t *testing.T) {
	kept := texts{}
	m := testManifest(1)
	name, _ := kept.put(m.Encode())
	for i := range maxLinks + 1 {
		next := slices.Clone(m)
		next[0].stamp.inode++
		if _, err := ReadManifest(name, kept.get); err != nil {
			t.Fatalf("after %d changes: %v", i, err)
		}
		name, _ = kept.put(next.changesSince(m, name).encode())
		m = next
	}
	if _, err := ReadManifest(name, kept.get); err == nil || !strings.Contains(err.Error(), "more than 20 changes") {
		t.Error(err)
	}
}

func TestSeriesFindsWhatIsMissing(t *testing.T) {
	kept := texts{}
	first, _ := Stored{}.StoreNext(testManifest(20), kept.put)
	second, _ := first.StoreNext(testManifest(19), kept.put)
	delete(kept, first.Name)
	if _, err := ReadManifest(second.Name, kept.get); !errors.Is(err, errNoText) || !strings.Contains(err.Error(), second.Name[:12]) {
		t.Error(err)
	}
}

// BenchmarkStoreNext measures storing a manifest of 50 000 files after a
// change of one file, complete and as changes.
func BenchmarkStoreNext(b *testing.B) {
	put := func(text []byte) (string, error) { return Digest(text), nil }
	first, _ := Stored{}.StoreNext(testManifest(50_000), put)
	m := slices.Clone(first.Manifest)
	m[25_000].stamp.modified++
	for name, s := range map[string]Stored{"whole": {}, "changes": first} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				if _, err := s.StoreNext(m, func(text []byte) (string, error) { size = len(text); return put(text) }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "bytes-kept")
		})
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
