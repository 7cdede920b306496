package workshop

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Go reads the seed and never writes it: what it compiles goes to its own cache.
func TestGoCache(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: there is no go")
	}
	dir, seed, own := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compiles := func(vars ...string) bool {
		t.Helper()
		c := exec.Command("go", "build", "-x", ".")
		c.Dir, c.Env = dir, append(os.Environ(), append([]string{"GOFLAGS=", "GOPROXY=off"}, vars...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return bytes.Contains(out, []byte("compile"))
	}
	write("go.mod", "module x\n\ngo 1.24\n")
	write("x.go", "package x\n\nfunc X() int { return 1 }\n")
	if !compiles("GOCACHE="+seed, "GOCACHEPROG=") {
		t.Fatal("an empty cache compiles nothing")
	}
	before := names(t, seed)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	walled := []string{"GOCACHE=" + own, "GOCACHEPROG=" + strings.Join([]string{self, goCacheName, seed, own}, " ")}
	if compiles(walled...) {
		t.Error("the seed was not read")
	}
	write("x.go", "package x\n\nfunc X() int { return 2 }\n")
	if !compiles(walled...) {
		t.Error("a changed file was not compiled")
	}
	if compiles(walled...) {
		t.Error("its own cache was not read")
	}
	if after := names(t, seed); after != before {
		t.Errorf("the seed was changed:\n%s", after)
	}
}

// names returns the names, sizes and times of the files of a cache.
func names(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			b.WriteString(path + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Entries that are damaged, or whose output is missing or has another size, are
// misses.
func TestGoCacheEntries(t *testing.T) {
	own, seed := t.TempDir(), t.TempDir()
	action, output := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	c := goCache{seed: seed, own: own}
	ask := func(requests string) []cacheResponse {
		t.Helper()
		var out bytes.Buffer
		if err := c.serve(strings.NewReader(requests), &out); err != nil {
			t.Fatal(err)
		}
		var got []cacheResponse
		for d := json.NewDecoder(&out); d.More(); {
			var r cacheResponse
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		return got[1:] // after the commands that it knows
	}
	text := func(q cacheRequest, body string) string {
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n" + body + "\n"
	}
	get := text(cacheRequest{ID: 2, Command: "get", ActionID: action}, "")
	put := text(cacheRequest{ID: 1, Command: "put", ActionID: action, OutputID: output, BodySize: 3}, `"eHl6"`)
	got := ask(get + put + get + text(cacheRequest{ID: 3, Command: "close"}, ""))
	if len(got) != 4 || !got[0].Miss || got[1].DiskPath == "" || got[2].Miss || got[2].Size != 3 || !bytes.Equal(got[2].OutputID, output) || got[3].ID != 3 {
		t.Fatalf("%+v", got)
	}
	for what, damage := range map[string]func() error{
		"longer":  func() error { return os.WriteFile(got[1].DiskPath, []byte("wxyz"), 0o600) },
		"missing": func() error { return os.Remove(got[1].DiskPath) },
		"no line": func() error { return os.WriteFile(cacheFile(own, strings.Repeat("01", 32), "-a"), []byte("v2"), 0o600) },
	} {
		ask(put)
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if r := ask(get); !r[0].Miss {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if r := ask(text(cacheRequest{Command: "put", ActionID: action, OutputID: output, BodySize: 4}, `"eHl6"`)); r[0].Err == "" {
		t.Error("a body that is too short was stored")
	}
	if names(t, seed) != "" {
		t.Error("the seed was written")
	}
}
