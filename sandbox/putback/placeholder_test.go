//go:build linux

package putback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/sandbox"
)

// filledTree returns a directory for records and one with a file of the user.
func filledTree(t *testing.T) (records, root string) {
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

func newSet(t *testing.T, records, root string) *Guard {
	t.Helper()
	p := sandbox.Policy{Wall: sandbox.Hidden, Write: []string{root}, Aside: records, Placeholders: map[string]sandbox.Placeholder{}}
	for name, file := range map[string]sandbox.Placeholder{
		".git/config": {}, ".git/hooks": {Dir: true}, ".git/commondir": {Text: "."}, ".config/hone.toml": {}, ".config/bork.json": {Text: "{}"}, "a/b/c": {},
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		p.Read, p.Placeholders[path] = append(p.Read, path), file
	}
	entries, err := p.Entries()
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := New(entries, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantFiles compares the contents of files; "-" means that a path does not exist, and
// "/" that it is a directory.
func wantFiles(t *testing.T, root string, files map[string]string) {
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

func recovered(records, root string) error {
	_, err := Recover(records, root)
	return err
}

// during runs a command that does something.
func during(t *testing.T, s *Guard, do func()) error {
	t.Helper()
	_, err := s.Around(func() (sandbox.Result, error) { do(); return sandbox.Result{}, nil })
	return err
}

// The placeholders exist while any command of any set runs.
func TestPlaceholdersAround(t *testing.T) {
	records, root := filledTree(t)
	one, other := newSet(t, records, root), newSet(t, records, root)
	in := func(s *Guard, do func()) {
		if err := during(t, s, func() { wantFiles(t, root, filled); do() }); err != nil {
			t.Error(err)
		}
	}
	leave := make(chan struct{})
	left := make(chan struct{})
	in(one, func() {
		in(one, func() {})
		wantFiles(t, root, filled)
		started := make(chan struct{})
		go func() {
			defer close(left)
			in(other, func() { close(started); <-leave })
		}()
		<-started
	})
	wantFiles(t, root, filled)
	if err := recovered(records, root); err != nil {
		t.Error(err)
	}
	wantFiles(t, root, filled)
	close(leave)
	<-left
	wantFiles(t, root, empty)
	if lists, _ := filepath.Glob(filepath.Join(records, recordPrefix+"*")); len(lists) > 0 {
		t.Errorf("the record still exists: %v", lists)
	}
}

// What others put into the tree while a command runs stays.
func TestChangesFromOutside(t *testing.T) {
	records, root := filledTree(t)
	err := during(t, newSet(t, records, root), func() {
		write(t, filepath.Join(root, ".config", "other"), "mine")
		write(t, filepath.Join(root, ".config", "hone.toml"), "[limits]")
		if err := os.Remove(filepath.Join(root, "a", "b", "c")); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
	wantFiles(t, root, map[string]string{".config/other": "mine", ".config/hone.toml": "[limits]", ".config/bork.json": "-", "a": "-"})
}

// The placeholders of a process that was killed are removed, and nothing else. A
// damaged record stays and is named.
func TestSettlePlaceholders(t *testing.T) {
	records, root := filledTree(t)
	if err := recovered(records, root); err != nil {
		t.Error(err)
	}
	s := newSet(t, records, root)
	if err := s.enter(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, root, filled)
	s.release()                                                                      // as the kernel does when a process ends
	if err := os.Truncate(filepath.Join(root, ".config/bork.json"), 0); err != nil { // killed before it wrote the text
		t.Fatal(err)
	}
	torn := filepath.Join(records, recordPrefix+"torn")
	write(t, torn, "no list")
	if _, err := Recover(records, root); err == nil || !strings.Contains(err.Error(), torn) {
		t.Errorf("of a damaged record: %v", err)
	}
	wantFiles(t, root, empty)
	if left, _ := filepath.Glob(filepath.Join(records, recordPrefix+"*")); !slices.Equal(left, []string{torn}) {
		t.Errorf("records: %v", left)
	}
}

// Where the tree's file system is unmounted or the tree is away, the record waits for it. A tree whose
// record cannot be used does not stop work in another.
func TestTreeThatIsAway(t *testing.T) {
	records, root := filledTree(t)
	s := newSet(t, records, root)
	away := root + ".away"
	err := during(t, s, func() {
		if err := errors.Join(os.Rename(root, away), os.Mkdir(root, 0o755)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "mine"), "")
	})
	if !errors.Is(err, errAway) {
		t.Errorf("of a tree that is away: %v", err)
	}
	if err := recovered(records, root); err != nil {
		t.Error(err)
	}
	wantFiles(t, away, filled)
	if err := errors.Join(os.RemoveAll(root), recovered(records, root), os.Rename(away, root), recovered(records, root)); err != nil {
		t.Error(err)
	}
	wantFiles(t, root, empty)
	if left, _ := filepath.Glob(filepath.Join(records, recordPrefix+"*")); len(left) > 0 {
		t.Errorf("records: %v", left)
	}
}

// The records are removed while a command runs: its placeholders do not stay.
func TestRecordsRemoved(t *testing.T) {
	records, root := filledTree(t)
	s := newSet(t, records, root)
	err := during(t, s, func() {
		if err := os.RemoveAll(records); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without records: %v", err)
	}
	wantFiles(t, root, empty)
}

// A command takes away its user's rights in the directories of placeholders.
func TestGuardOfClosedDirectories(t *testing.T) {
	records, root := filledTree(t)
	s := newSet(t, records, root)
	err := during(t, s, func() {
		for _, dir := range []string{"a/b", "a", ".config", ".git", "."} {
			if err := os.Chmod(filepath.Join(root, dir), 0o050); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	wantFiles(t, root, empty)
	for _, dir := range []string{".git", "."} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
}

// A placeholder is created neither outside of the tree nor in place of a file.
func TestObstacles(t *testing.T) {
	for name, set := range map[string]func(root string) error{
		"a file":                func(root string) error { return os.WriteFile(filepath.Join(root, ".config"), nil, 0o644) },
		"a symlink":             func(root string) error { return os.Symlink(".git", filepath.Join(root, ".config")) },
		"a symlink that leaves": func(root string) error { return os.Symlink(filepath.Dir(root), filepath.Join(root, ".config")) },
	} {
		records, root := filledTree(t)
		guard := newSet(t, records, root)
		if err := set(root); err != nil {
			t.Fatal(err)
		}
		if during(t, guard, func() { t.Errorf("%s: the command ran", name) }) == nil {
			t.Errorf("%s: no error", name)
		}
		wantFiles(t, root, map[string]string{".git/commondir": "-", ".git/hone.toml": "-", "a": "-"})
		wantFiles(t, filepath.Dir(root), map[string]string{"hone.toml": "-"})
	}
}

// A placeholder is not a change of what another guard protects, unless a command changed it.
func TestPlaceholdersOfOthers(t *testing.T) {
	records, root := filledTree(t)
	p := sandbox.Policy{Wall: sandbox.NoWall, Write: []string{root}, Aside: records}
	for _, name := range []string{".git/config", ".git/hooks", ".git/commondir", ".config/hone.toml", "a"} {
		p.Read = append(p.Read, filepath.Join(root, name))
	}
	entries, err := p.Entries()
	if err != nil {
		t.Fatal(err)
	}
	open, _, err := New(entries, p)
	if err != nil {
		t.Fatal(err)
	}
	walled := newSet(t, records, root)
	for _, order := range [][]*Guard{{open, walled}, {walled, open}} {
		for _, evil := range []string{"", "evil"} {
			for _, g := range order {
				if err := g.enter(); err != nil {
					t.Fatal(err)
				}
			}
			if evil != "" {
				write(t, filepath.Join(root, ".git", "hooks", "pre-commit"), evil)
				write(t, filepath.Join(root, ".config", "hone.toml"), evil)
			}
			for _, g := range order {
				restored, err := g.leave()
				if err != nil || (len(restored) > 0) != (evil != "" && g == open) {
					t.Errorf("%q: %v, %v", evil, restored, err)
				}
			}
			if _, err := os.Lstat(filepath.Join(root, ".config", "hone.toml")); err == nil {
				t.Error("what the command wrote stays")
			}
			_ = os.Remove(filepath.Join(root, ".config")) // it was the command's, if the placeholders went first
			wantFiles(t, root, empty)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(records, recordPrefix+"*")); len(left) > 0 {
		t.Errorf("records: %v", left)
	}
}
