package bundle_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"hone/journal"
	"hone/journal/bundle"
)

const run = "20260102-030405-abcdef"

// recorded returns the events of a run, and objects by name.
func recorded(t testing.TB) ([]journal.Event, map[string]string) {
	t.Helper()
	h, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	j, err := h.Create(run)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range 3 {
		if _, err := j.Append(journal.Entry{Type: "test", Payload: map[string]int{"n": i}}); err != nil {
			t.Fatal(err)
		}
	}
	objects := map[string]string{}
	for _, text := range []string{"", "one", strings.Repeat("two ", 1<<16)} {
		objects[digest(text)] = text
	}
	return j.Events(), objects
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// written returns a bundle of a run with objects.
func written(t testing.TB, events []journal.Event, objects map[string]string) []byte {
	t.Helper()
	var list []bundle.Object
	for i, name := range slices.Sorted(maps.Keys(objects)) {
		o := bundle.Object{Name: name, Size: int64(len(objects[name]))}
		if i == 0 {
			o.Size = -1
		}
		list = append(list, o)
	}
	var b bytes.Buffer
	open := func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(objects[name])), nil }
	if err := bundle.Write(&b, bundle.Header{Hone: "test", Base: "c0ffee", Withheld: []string{".env"}}, events, list, open); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read reads a whole bundle.
func read(file []byte, limit int64) (bundle.Header, []journal.Event, map[string]string, error) {
	r, err := bundle.NewReader(bytes.NewReader(file), limit)
	if err != nil {
		return bundle.Header{}, nil, nil, err
	}
	defer r.Close()
	objects := map[string]string{}
	for {
		name, object, err := r.Next()
		if err == io.EOF {
			return r.Header, r.Events, objects, nil
		}
		if err != nil {
			return r.Header, r.Events, objects, err
		}
		text, err := io.ReadAll(object)
		if err != nil {
			return r.Header, r.Events, objects, err
		}
		objects[name] = string(text)
	}
}

func TestBundle(t *testing.T) {
	events, objects := recorded(t)
	h, gotEvents, gotObjects, err := read(written(t, events, objects), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := bundle.Header{Format: 1, Hone: "test", Run: run, Events: 3, Head: events[2].Hash(), Objects: 3, Base: "c0ffee", Withheld: []string{".env"}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(journal.Lines(gotEvents), journal.Lines(events)) || !maps.Equal(gotObjects, objects) {
		t.Error("the journal or the objects are others")
	}
	if err := bundle.Write(io.Discard, bundle.Header{}, nil, nil, nil); err == nil {
		t.Error("a bundle without events was written")
	}
}

// Objects that are not read are verified as well.
func TestSkippedObject(t *testing.T) {
	events, objects := recorded(t)
	objects[digest("x")] = "y"
	r, err := bundle.NewReader(bytes.NewReader(written(t, events, objects)), 1<<20)
	for err == nil {
		_, _, err = r.Next()
	}
	if damage := (*bundle.DamageError)(nil); !errors.As(err, &damage) || !strings.Contains(err.Error(), digest("x")) {
		t.Errorf("error %v", err)
	}
}

// entry is an entry of an archive.
type entry struct {
	name, content string
	link          bool
}

// archive returns a compressed archive, without its end if cut is set.
func archive(t testing.TB, list []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, e := range list {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: 0o600}
		if e.link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, e.content, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if !e.link {
			if _, err := io.WriteString(w, e.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func header(t testing.TB, events []journal.Event, change func(*bundle.Header)) entry {
	t.Helper()
	h := bundle.Header{Format: 1, Run: run, Events: len(events), Head: events[len(events)-1].Hash(), Objects: 1}
	change(&h)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return entry{name: "bundle.json", content: string(b)}
}

// TestHostileBundle reads archives that no export writes.
func TestHostileBundle(t *testing.T) {
	events, _ := recorded(t)
	same := func(*bundle.Header) {}
	head, lines := header(t, events, same), entry{name: "journal.jsonl", content: string(journal.Lines(events))}
	one := entry{name: "objects/" + digest("one"), content: "one"}
	if _, _, _, err := read(archive(t, []entry{head, lines, one}), 1<<20); err != nil {
		t.Fatalf("the archive that the others differ from: %v", err)
	}
	two := header(t, events, func(h *bundle.Header) { h.Objects = 2 })
	text := func(old, new string) entry {
		return entry{name: lines.name, content: strings.Replace(lines.content, old, new, 1)}
	}
	for name, c := range map[string]struct {
		list []entry
		want string
	}{
		"empty":            {nil, "not a bundle"},
		"no header":        {[]entry{lines, one}, "not a bundle"},
		"header twice":     {[]entry{head, head, lines, one}, "in place of journal.jsonl"},
		"header not JSON":  {[]entry{{name: head.name, content: "x"}, lines, one}, "bundle.json cannot be read"},
		"huge header":      {[]entry{{name: head.name, content: strings.Repeat(" ", 5<<20)}, lines, one}, "is longer than"},
		"other format":     {[]entry{header(t, events, func(h *bundle.Header) { h.Format = 2 }), lines, one}, "it has the format 2"},
		"run is a path":    {[]entry{header(t, events, func(h *bundle.Header) { h.Run = "../../etc" }), lines, one}, "not the id of a run"},
		"another run":      {[]entry{header(t, events, func(h *bundle.Header) { h.Run = "20260102-030405-000000" }), lines, one}, "belongs to run"},
		"no events":        {[]entry{header(t, events, func(h *bundle.Header) { h.Events = 0 }), lines, one}, "impossible"},
		"fewer events":     {[]entry{header(t, events, func(h *bundle.Header) { h.Events = 2 }), lines, one}, "does not end with"},
		"another head":     {[]entry{header(t, events, func(h *bundle.Header) { h.Head = digest("x") }), lines, one}, "does not end with"},
		"negative objects": {[]entry{header(t, events, func(h *bundle.Header) { h.Objects = -1 }), lines, one}, "impossible"},
		"edited event":     {[]entry{head, text(`"n":0`, `"n":9`), one}, "the line before it was changed"},
		"cut journal":      {[]entry{head, {name: lines.name, content: lines.content[:len(lines.content)-9]}, one}, "it is incomplete"},
		"no journal":       {[]entry{head, one}, "in place of journal.jsonl"},
		"journal, format":  {[]entry{head, text(`{"v":1`, `{"v":2`), one}, "format 2"},
		"no object":        {[]entry{head, lines}, "its end is missing"},
		"object missing":   {[]entry{two, lines, one}, "its end is missing"},
		"object twice":     {[]entry{two, lines, one, one}, "twice"},
		"one more":         {[]entry{head, lines, one, {name: "objects/" + digest("two"), content: "two"}}, "more follows"},
		"swapped":          {[]entry{head, lines, {name: one.name, content: "two"}}, "has other contents"},
		"dots":             {[]entry{head, lines, {name: "objects/../../../x", content: "x"}}, "not the name of an object"},
		"absolute":         {[]entry{head, lines, {name: "/etc/passwd", content: "x"}}, "not the name of an object"},
		"capitals":         {[]entry{head, lines, {name: strings.ToUpper(one.name), content: "one"}}, "not the name of an object"},
		"other file":       {[]entry{head, lines, {name: "x", content: "x"}}, "not the name of an object"},
		"link":             {[]entry{head, lines, {name: one.name, content: "/etc/passwd", link: true}}, "in place of"},
		"link as journal":  {[]entry{head, {name: lines.name, content: "/etc/passwd", link: true}, one}, "in place of"},
	} {
		_, _, _, err := read(archive(t, c.list), 16<<20)
		var damage *bundle.DamageError
		if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// A bundle that is cut anywhere, or followed by anything, is refused.
func TestTruncatedBundle(t *testing.T) {
	events, objects := recorded(t)
	whole := written(t, events, objects)
	for n := range whole {
		if _, _, _, err := read(whole[:n], 1<<20); err == nil {
			t.Fatalf("%d of %d bytes are a bundle", n, len(whole))
		}
	}
	for _, after := range [][]byte{{0}, []byte("x"), whole, archive(t, []entry{{name: "x"}})} {
		if _, _, _, err := read(slices.Concat(whole, after), 1<<20); err == nil {
			t.Errorf("a bundle followed by %.9q is a bundle", after)
		}
	}
}

// TestBundleLimit reads a small file that contains much.
func TestBundleLimit(t *testing.T) {
	events, _ := recorded(t)
	zeros := strings.Repeat("\x00", 64<<20)
	file := written(t, events, map[string]string{digest(zeros): zeros})
	if len(file) > 64<<10 {
		t.Fatalf("the file has %d bytes", len(file))
	}
	var limit *bundle.LimitError
	if _, _, _, err := read(file, 1<<20); !errors.As(err, &limit) || limit.Limit != 1<<20 {
		t.Errorf("an object: error %v", err)
	}
	if _, _, _, err := read(file, 100); !errors.As(err, &limit) {
		t.Errorf("the journal: error %v", err)
	}
}

// FuzzReader reads files that anyone may have written. What it accepts is consistent.
func FuzzReader(f *testing.F) {
	events, objects := recorded(f)
	whole := written(f, events, objects)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	plain, err := zstd.NewReader(bytes.NewReader(whole))
	if err != nil {
		f.Fatal(err)
	}
	archive, err := io.ReadAll(plain)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(archive)
	f.Fuzz(func(t *testing.T, file []byte) {
		var z bytes.Buffer // the archive itself, because a change of what is compressed rarely survives
		w, err := zstd.NewWriter(&z, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(file); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]byte{file, z.Bytes()} {
			h, events, objects, err := read(in, 1<<20)
			if err != nil {
				continue
			}
			if len(events) != h.Events || events[len(events)-1].Hash() != h.Head || len(objects) != h.Objects {
				t.Errorf("the bundle differs from its header: %+v", h)
			}
			for name, text := range objects {
				if digest(text) != name {
					t.Errorf("the object %s has other contents", name)
				}
			}
		}
	})
}
