package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWriteReplacesWhatIsThere: a file, a directory and a link alike.
func TestWriteReplacesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	try(t, os.WriteFile(outside, []byte("theirs"), 0o644))
	try(t, os.MkdirAll(filepath.Join(dir, "logs"), 0o755))
	try(t, os.Symlink(outside, filepath.Join(dir, "logs", "one")))
	for _, text := range []string{"first", "second"} {
		try(t, Write(dir, "logs/one", strings.NewReader(text)))
		got, err := Read(dir, "logs/one", 100)
		if err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
	if got, _ := os.ReadFile(outside); string(got) != "theirs" {
		t.Errorf("what a link led to is now %q", got)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "logs", "*")); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}

// TestNoWayThroughALink: a link in place of a parent directory is not followed.
func TestNoWayThroughALink(t *testing.T) {
	dir := t.TempDir()
	try(t, os.MkdirAll(filepath.Join(dir, "secret"), 0o755))
	try(t, os.WriteFile(filepath.Join(dir, "secret", "key"), []byte("k"), 0o600))
	try(t, os.Symlink("secret", filepath.Join(dir, "logs")))
	if err := Write(dir, "logs/key", strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("written through a link: %v", err)
	}
	if _, err := Read(dir, "logs/key", 10); err == nil {
		t.Error("read through a link")
	}
	if err := Remove(dir, "logs/key"); err == nil {
		t.Error("removed through a link")
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "secret", "key")); string(got) != "k" {
		t.Errorf("the file holds %q", got)
	}
}

// TestReadIsBounded: Read refuses links, directories and long files.
func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	try(t, os.WriteFile(filepath.Join(dir, "long"), []byte("12345"), 0o644))
	try(t, os.Symlink("long", filepath.Join(dir, "link")))
	try(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	for name, most := range map[string]int64{"long": 4, "link": 10, "folder": 10} {
		if _, err := Read(dir, name, most); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if _, err := Read(dir, "none", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing file: %v", err)
	}
	try(t, Remove(dir, "none"))
	try(t, Remove(dir, "folder"))
}

// TestMakeDir: an existing directory stays, and nothing else is accepted as
// one.
func TestMakeDir(t *testing.T) {
	dir := t.TempDir()
	try(t, MakeDir(dir, "new"))
	try(t, MakeDir(dir, "new"))
	try(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	try(t, os.Symlink("new", filepath.Join(dir, "link")))
	for _, name := range []string{"file", "link"} {
		if err := MakeDir(dir, name); err == nil || !strings.Contains(err.Error(), "is not a directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := MakeDir(dir, "none/new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a missing folder: %v", err)
	}
}

// Create and OpenAppend follow no link, and open nothing but regular files with
// one name.
func TestCreateAndOpenAppend(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	theirs := filepath.Join(outside, "theirs")
	try(t, os.WriteFile(theirs, []byte("theirs"), 0o644))
	for name, target := range map[string]string{"link": theirs, "dangling": filepath.Join(outside, "new"), "folder": outside, "inside": "sub"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	try(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	hard := os.Link(theirs, filepath.Join(dir, "hard")) == nil && runtime.GOOS != "windows"
	for _, name := range []string{"link", "dangling", "hard", "folder/new", "inside/new", "sub"} {
		if name == "hard" && !hard {
			continue
		}
		if err := Create(dir, name, []byte("x"), 0o644); err == nil {
			t.Errorf("%s was created", name)
		}
		if f, err := OpenAppend(dir, name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		} else if !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", name, err)
		}
		if err := Check(dir, name, true); err == nil {
			t.Errorf("%s is fine", name)
		}
	}
	try(t, Create(dir, "a/b/new", []byte("one "), 0o600))
	if err := Create(dir, "a/b/new", []byte("x"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	f, err := OpenAppend(dir, "a/b/new")
	try(t, err)
	_, err = f.WriteString("two")
	try(t, errors.Join(err, f.Close(), Check(dir, "a/b/new", true), Check(dir, "a/none", true)))
	if got, _ := Read(dir, "a/b/new", 100); string(got) != "one two" {
		t.Errorf("%q", got)
	}
	entries, _ := os.ReadDir(outside)
	if got, _ := os.ReadFile(theirs); string(got) != "theirs" || len(entries) != 1 {
		t.Errorf("outside there are %v and %q", entries, got)
	}
}
