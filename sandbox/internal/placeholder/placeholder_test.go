package placeholder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"hone/sandbox"
)

// tree returns a directory for records and one with a file of the user.
func tree(t *testing.T) (records, root string) {
	t.Helper()
	records, root = filepath.Join(t.TempDir(), "records"), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, ".git", "config"), "[core]\n")
	return records, root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newSet(t *testing.T, records, root string) *Set {
	t.Helper()
	files := map[string]sandbox.Placeholder{}
	for name, p := range map[string]sandbox.Placeholder{
		".git/config": {}, ".git/hooks": {Dir: true}, ".git/commondir": {Text: "."}, ".config/hone.toml": {}, ".config/bork.json": {Text: "{}"}, "a/b/c": {},
	} {
		files[filepath.Join(root, filepath.FromSlash(name))] = p
	}
	s, err := New(records, root, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// want compares the contents of files; "-" means that a path does not exist, and
// "/" that it is a directory.
func want(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		got := "-"
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			got = "/"
		} else if b, err := os.ReadFile(path); err == nil {
			got = string(b)
		}
		if got != text {
			t.Errorf("%s: %q instead of %q", name, got, text)
		}
	}
}

var (
	filled = map[string]string{".git/config": "[core]\n", ".git/hooks": "/", ".git/commondir": ".", ".config/hone.toml": "", ".config/bork.json": "{}", "a/b/c": ""}
	empty  = map[string]string{".git/config": "[core]\n", ".git/hooks": "-", ".git/commondir": "-", ".config": "-", "a": "-"}
)

// The placeholders exist while any command of any set runs.
func TestAround(t *testing.T) {
	records, root := tree(t)
	one, other := newSet(t, records, root), newSet(t, records, root)
	in := func(s *Set, do func()) {
		t.Helper()
		if err := s.Around(func() error { want(t, root, filled); do(); return nil }); err != nil {
			t.Error(err)
		}
	}
	leave := make(chan struct{})
	left := make(chan struct{})
	in(one, func() {
		in(one, func() {})
		want(t, root, filled)
		started := make(chan struct{})
		go func() {
			defer close(left)
			in(other, func() { close(started); <-leave })
		}()
		<-started
	})
	want(t, root, filled)
	if err := Settle(records); err != nil {
		t.Error(err)
	}
	want(t, root, filled)
	close(leave)
	<-left
	want(t, root, empty)
	for _, s := range []*Set{one, other} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(one.record.path(listEnding)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record still exists: %v", err)
	}
}

// What others put into the tree while a command runs stays.
func TestChangesFromOutside(t *testing.T) {
	records, root := tree(t)
	s := newSet(t, records, root)
	if err := s.Around(func() error {
		write(t, filepath.Join(root, ".config", "other"), "mine")
		write(t, filepath.Join(root, ".config", "hone.toml"), "[limits]")
		return os.Remove(filepath.Join(root, "a", "b", "c"))
	}); err != nil {
		t.Error(err)
	}
	want(t, root, map[string]string{".config/other": "mine", ".config/hone.toml": "[limits]", ".config/bork.json": "-", "a": "-"})
}

// The placeholders of a process that was killed are removed, and nothing else.
func TestSettle(t *testing.T) {
	records, root := tree(t)
	if err := Settle(records); err != nil {
		t.Error(err)
	}
	s := newSet(t, records, root)
	if err := s.enter(); err != nil {
		t.Fatal(err)
	}
	want(t, root, filled)
	s.lock.Close() // as the kernel does when a process ends
	write(t, filepath.Join(records, "torn.list"), "no list")
	if err := Settle(records); err != nil {
		t.Error(err)
	}
	want(t, root, empty)
}

// A placeholder is created neither outside of the tree nor in place of a file.
func TestObstacles(t *testing.T) {
	for name, set := range map[string]func(root string) error{
		"a file":                func(root string) error { return os.WriteFile(filepath.Join(root, ".config"), nil, 0o644) },
		"a symlink that leaves": func(root string) error { return os.Symlink(filepath.Dir(root), filepath.Join(root, ".config")) },
	} {
		records, root := tree(t)
		if err := set(root); err != nil {
			t.Fatal(err)
		}
		err := newSet(t, records, root).Around(func() error { t.Errorf("%s: the command ran", name); return nil })
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		want(t, root, map[string]string{".git/commondir": "-", "a": "-"})
		want(t, filepath.Dir(root), map[string]string{"hone.toml": "-"})
	}
}
