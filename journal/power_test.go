package journal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingIsNamedBeforeItIsDurable leaves of a home what a power failure does in the
// worst case, after each event: all of the journal, but of the objects only what was
// synced, and of directories only the names that were.
func TestNothingIsNamedBeforeItIsDurable(t *testing.T) {
	dir := t.TempDir()
	h := must(OpenHome(dir))
	defer h.Close()
	synced, named := map[string][]byte{}, map[string]bool{}
	h.in.Synced = func(name string) {
		entries, err := os.ReadDir(h.in.At(name))
		if err != nil {
			synced[name] = must(os.ReadFile(h.in.At(name)))
		}
		for _, e := range entries {
			named[name+"/"+e.Name()] = true
		}
	}
	j := must(h.Create("r"))
	defer j.Close()
	put := func(n, size int) string { return must(j.Put(fmt.Append(make([]byte, size), n))) }
	var objects []string
	for n := range 20 {
		objects = append(objects, put(n, 10), put(n, 300<<n%10))
		if n%5 == 4 {
			name, _, err := j.Add(io.MultiReader(strings.NewReader(strings.Repeat("long", 1<<19)), must(os.Open(h.in.At(runFile("r"))))))
			must(0, err)
			objects = append(objects, name)
		}
		must(j.Append(Entry{Type: "test", Payload: map[string]any{"objects": objects}, Sync: n%3 == 0}))

		after := must(OpenHome(t.TempDir()))
		synced[runFile("r")] = must(os.ReadFile(h.in.At(runFile("r"))))
		for name, b := range synced {
			if named[name] {
				must(0, os.MkdirAll(filepath.Dir(after.in.At(name)), 0o700))
				must(0, os.WriteFile(after.in.At(name), b, 0o600))
			}
		}
		if events, err := after.Read("r"); err != nil || len(events) != n+1 {
			t.Fatalf("%d events of %d: %v", len(events), n+1, err)
		}
		for _, name := range objects {
			if _, err := after.Get(name); err != nil {
				t.Fatalf("after event %d: %v", n+1, err)
			}
		}
		after.Close()
	}
}
