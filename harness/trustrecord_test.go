package harness

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/internal/config"
)

func TestRecords(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if r, err := loadTrust("/a"); err != nil || r.Programs || r.Settings != nil {
		t.Errorf("a new folder: %+v, %v", r, err)
	}
	want := []TrustRecord{{Folder: "/a", Programs: true}, {Folder: "/b", Settings: []string{"x = 1", "y = 2"}}}
	for _, r := range slices.Backward(want) {
		if err := r.save(); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := loadTrust("/b"); err != nil || !cmp.Equal(r, want[1]) {
		t.Errorf("%+v, %v", r, err)
	}
	if all, err := TrustRecords(); err != nil || !cmp.Equal(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
	if ok, err := RevokeTrust("/a"); err != nil || !ok {
		t.Error(ok, err)
	}
	if ok, err := RevokeTrust("/a"); err != nil || ok {
		t.Error("revoked twice", ok, err)
	}
	if r, err := loadTrust("/a"); err != nil || r.Programs {
		t.Errorf("a revoked folder: %+v, %v", r, err)
	}
}

// A damaged record trusts nothing, and hides no other.
func TestDamagedRecord(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, folder := range []string{"/a", "/b"} {
		if err := (TrustRecord{Folder: folder, Programs: true}).save(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("XDG_STATE_HOME"), "hone", trustDir, trustFile("/a")), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := loadTrust("/a"); err == nil || r.Programs {
		t.Errorf("%+v, %v", r, err)
	}
	if all, err := TrustRecords(); err == nil || len(all) != 1 || all[0].Folder != "/b" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestUntrusted(t *testing.T) {
	r := TrustRecord{Settings: []string{"f: a = 1", "f: b = 2"}}
	set := func(key, value string) config.Opening { return config.Opening{File: "f", Key: key, Value: value} }
	if missing := (Needs{Settings: []config.Opening{set("b", "2"), set("c", "3"), set("a", "2")}}).untrusted(r); !slices.Equal(missing, []config.Opening{set("c", "3"), set("a", "2")}) {
		t.Error(missing)
	}
	if len((Needs{Settings: []config.Opening{set("a", "1")}}).untrusted(r)) > 0 {
		t.Error("a setting was removed, and the rest is not trusted")
	}
	digest := func(all ...config.Opening) string { return Needs{Settings: all}.Digest() }
	a, b := set("a", "1"), set("b", "2")
	if digest(a, b) != digest(b, a) || digest(a, b) == digest(a) {
		t.Error("the digest must depend on the settings, not on their order")
	}
}
