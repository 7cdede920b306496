package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A manifest asks the system about every file, each time. To ask only about those that
// inotify names would be faster, but it names neither a file that a program writes
// through a mapping, nor one that it writes by a link outside the tree.
func TestSilentChanges(t *testing.T) {
	tree := newTree(t, map[string]string{"linked": "one", "mapped": "one", "named": "one"}, Options{})
	at := func(name string) string { return filepath.Join(tree.Dir(), name) }
	var fs unix.Statfs_t
	if err := unix.Statfs(tree.Dir(), &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skip("in memory, a mapping does not change a file's times", err)
	}
	link := filepath.Join(t.TempDir(), "outside")
	if err := os.Link(at("linked"), link); err != nil {
		t.Skip(err)
	}
	text := mapped(t, at("mapped"))
	prev := Manifest{}
	for _, name := range []string{"linked", "mapped", "named"} {
		if err := os.Chtimes(at(name), time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // with stamps that are trusted
		prev = append(prev, Entry{Path: f.Path, Kind: f.Kind, Mode: f.Mode, Size: f.Size, Digest: Digest([]byte("one")), stamp: f.stamp})
	}
	events := watch(t, tree.Dir())
	copy(text, "two")
	for _, name := range []string{link, at("named")} {
		if err := os.WriteFile(name, []byte("two"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if names := events(); !slices.Equal(names, []string{"named"}) {
		t.Errorf("inotify names %q", names)
	}
	for _, e := range manifest(t, tree, prev) {
		if e.Digest != Digest([]byte("two")) {
			t.Errorf("the change of %s was not seen", e.Path)
		}
	}
}

// mapped returns the contents of a file that a program has mapped.
func mapped(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(text) })
	return text
}

// watch watches a directory, and returns a function that returns the names in it about
// which there were events, each once.
func watch(t *testing.T, dir string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err == nil {
		t.Cleanup(func() { _ = unix.Close(fd) })
		_, err = unix.InotifyAddWatch(fd, dir, unix.IN_ALL_EVENTS)
	}
	if err != nil {
		t.Skip(err)
	}
	return func() (names []string) {
		b := make([]byte, 1<<16)
		n, err := unix.Read(fd, b)
		if err != nil {
			t.Fatal(err)
		}
		for b = b[:n]; len(b) > 0; {
			const head = unix.SizeofInotifyEvent
			end := head + int((*unix.InotifyEvent)(unsafe.Pointer(&b[0])).Len)
			names = append(names, strings.TrimRight(string(b[head:end]), "\x00"))
			b = b[end:]
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}
