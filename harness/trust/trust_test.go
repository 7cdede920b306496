package trust

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecords(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if r, err := Load("/a"); err != nil || r.Programs || r.Settings != nil {
		t.Errorf("a new folder: %+v, %v", r, err)
	}
	want := []Record{{Folder: "/a", Programs: true}, {Folder: "/b", Settings: []string{"x = 1", "y = 2"}}}
	for _, r := range slices.Backward(want) {
		if err := r.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Load("/b"); err != nil || !cmp.Equal(r, want[1]) {
		t.Errorf("%+v, %v", r, err)
	}
	if all, err := List(); err != nil || !cmp.Equal(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
	if ok, err := Revoke("/a"); err != nil || !ok {
		t.Error(ok, err)
	}
	if ok, err := Revoke("/a"); err != nil || ok {
		t.Error("revoked twice", ok, err)
	}
	if r, err := Load("/a"); err != nil || r.Programs {
		t.Errorf("a revoked folder: %+v, %v", r, err)
	}
}

// A damaged record trusts nothing, and hides no other.
func TestDamagedRecord(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, folder := range []string{"/a", "/b"} {
		if err := (Record{Folder: folder, Programs: true}).Save(); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "hone", dirName)
	if err := os.WriteFile(file(dir, "/a"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Load("/a"); err == nil || r.Programs {
		t.Errorf("%+v, %v", r, err)
	}
	if all, err := List(); err == nil || len(all) != 1 || all[0].Folder != "/b" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestUntrusted(t *testing.T) {
	r := Record{Settings: []string{"a = 1", "b = 2"}}
	if missing := r.Untrusted([]string{"b = 2", "c = 3", "a = 2"}); !slices.Equal(missing, []string{"c = 3", "a = 2"}) {
		t.Error(missing)
	}
	if r.Untrusted([]string{"a = 1"}) != nil {
		t.Error("a setting was removed, and the rest is not trusted")
	}
	if Digest([]string{"a", "b"}) != Digest([]string{"b", "a"}) || Digest([]string{"a", "b"}) == Digest([]string{"a"}) {
		t.Error("the digest must depend on the settings, not on their order")
	}
}
