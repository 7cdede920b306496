package state

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestDir(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/var/state")
	if dir, err := Dir(); err != nil || filepath.ToSlash(dir) != "/var/state/hone" && runtime.GOOS != "windows" {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/user")
	if dir, err := Dir(); err != nil || dir != "/home/user/.local/state/hone" && runtime.GOOS != "windows" {
		t.Errorf("%q, %v", dir, err)
	}
}

func TestMakeIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", base)
	dir, err := Make("trust")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Dir(dir))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder that others may write: %v", err)
	}
	if os.Getuid() != 0 {
		return
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(dir), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("a folder of another user: %v", err)
	}
}

func TestKey(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	keys := make([][]byte, 8)
	var wait sync.WaitGroup
	for i := range keys {
		wait.Go(func() {
			var err error
			if keys[i], err = Key("runs"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, k := range keys {
		if len(k) != secretSize || !bytes.Equal(k, keys[0]) {
			t.Fatalf("%x and %x", k, keys[0])
		}
	}
	if other, err := Key("other"); err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("%x, %v", other, err)
	}
	dir, _ := Dir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if k, err := Key("runs"); err == nil || !strings.Contains(err.Error(), "has 0 bytes instead of 32") {
		t.Errorf("%x, %v", k, err)
	}
}
