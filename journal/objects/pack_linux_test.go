package objects_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hone/internal/disktest"
	"hone/journal/objects"
)

// TestPackOnAFullDisk leaves less and less space on a small file system. A pack
// that does not fit is an error and leaves no temporary file; after space is
// freed the same contents can be stored.
func TestPackOnAFullDisk(t *testing.T) {
	dir := disktest.Small(t, "8m")
	h, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	small := make([][]byte, 100)
	for i := range small {
		small[i] = nth(i)
	}
	for i, c := range []struct {
		name     string
		contents [][]byte
		room     int64
	}{
		{"not even the first", [][]byte{large('a'), large('b')}, 64 << 10},
		{"not the second", [][]byte{large('c'), large('d')}, 4 << 20},
		{"not what waits in memory", small[:99], 64 << 10},
		{"not the index", small[:96], 96 * benchSize},
		{"not one alone", [][]byte{small[99]}, 0},
	} {
		t.Run(c.name, func(t *testing.T) { fillUp(t, h, byte(i), c.room, c.contents) })
	}
}

func fillUp(t *testing.T, h *stored, mark byte, room int64, contents [][]byte) {
	ballast := filepath.Join(filepath.Dir(h.Dir()), "ballast")
	fillDisk(t, ballast, room)
	marked := make([][]byte, len(contents))
	p := newPack(t, h)
	var failed error
	for i, b := range contents {
		marked[i] = append(bytes.Clone(b[:len(b)-1]), mark)
		_, _, err := p.Add(bytes.NewReader(marked[i]))
		if failed != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("add after one that failed: %v", err)
		}
		if err != nil {
			failed = err
		}
	}
	if err := p.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	var temps []string
	err := filepath.WalkDir(h.Dir(), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			temps = append(temps, path)
		}
		return err
	})
	if err != nil || len(temps) > 0 {
		t.Errorf("left: %q, %v", temps, err)
	}
	for _, b := range marked {
		if h.Has(digest(b)) {
			t.Errorf("%s is stored", digest(b))
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p = newPack(t, h)
	for _, b := range marked {
		add(t, p, b)
	}
	closePack(t, p)
	for _, b := range marked {
		if _, err := reopen(t, h).Get(digest(b)); err != nil {
			t.Error(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(h.Dir(), "packs")); err != nil {
		t.Fatal(err)
	}
}

// fillDisk fills a file system with a file, except for room bytes.
func fillDisk(t *testing.T, ballast string, room int64) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(ballast), &s); err != nil {
		t.Fatal(err)
	}
	n := int64(s.Bavail)*s.Bsize - room
	if n <= 0 {
		t.Fatalf("less than %d bytes are free", room)
	}
	if err := os.WriteFile(ballast, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOddFilesAmongPacks: odd files must neither block nor hide intact packs.
func TestOddFilesAmongPacks(t *testing.T) {
	h := home(t)
	store(t, h, []byte("a"), []byte("b"))
	dir := filepath.Join(h.Dir(), "packs")
	err := errors.Join(
		unix.Mkfifo(filepath.Join(dir, "pipe.pack"), 0o600),
		os.Mkdir(filepath.Join(dir, "folder.pack"), 0o700),
		os.Symlink("/etc/passwd", filepath.Join(dir, "link.pack")),
		os.WriteFile(filepath.Join(dir, "empty.pack"), nil, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	reader := reopen(t, h)
	holds(t, reader, []byte("a"))
	var missing *objects.MissingError
	if _, err := reader.Get(digest(nil)); !errors.As(err, &missing) || len(missing.DamagedPacks) != 4 {
		t.Errorf("get: %v", err)
	}
	for _, name := range []string{"empty", "folder", "link", "pipe"} {
		if !strings.Contains(fmt.Sprint(missing.DamagedPacks), name+".pack") {
			t.Errorf("no error names %s.pack: %v", name, missing.DamagedPacks)
		}
	}
	store(t, reader, []byte("c"), []byte("d"))
	holds(t, h, []byte("c"))
}
