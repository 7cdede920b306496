package report

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hone/workspace"
)

// write writes a file below a directory, with directories.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) (*workspace.Tree, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree, dir
}

// Only what the check wrote counts: a report of an earlier run is stale.
func TestWritten(t *testing.T) {
	tree, dir := open(t)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"build/stale.xml", "build/again.xml"} {
		write(t, dir, name, "old")
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	written := Watch(tree, "build/**/*.xml")
	write(t, dir, "build/again.xml", "new")
	write(t, dir, "build/a/b/c.xml", "c")
	write(t, dir, "build/other.txt", "x")
	write(t, dir, "elsewhere/d.xml", "d")
	var got []string
	for _, r := range written() {
		got = append(got, r.Path+"="+string(r.Content)+r.Omitted)
	}
	if want := []string{"build/a/b/c.xml=c", "build/again.xml=new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A link out of the tree, or to another file in it, is no report.
func TestLinks(t *testing.T) {
	tree, dir := open(t)
	outside := t.TempDir()
	write(t, outside, "secret.xml", "secret")
	written, linked := Watch(tree, "build/**/*.xml"), Watch(tree, "linked/*.xml")
	write(t, dir, "real.xml", "real")
	write(t, dir, "build/x", "")
	for link, to := range map[string]string{"build/out.xml": filepath.Join(outside, "secret.xml"), "build/in.xml": "../real.xml", "build/dir": outside, "linked": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	if got := append(written(), linked()...); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestBounds(t *testing.T) {
	tree, dir := open(t)
	written := Watch(tree, "*.xml")
	write(t, dir, "a.xml", "")
	if err := os.Truncate(filepath.Join(dir, "a.xml"), maxReport+1); err != nil {
		t.Fatal(err)
	}
	for i := range maxReports + 5 {
		write(t, dir, "b"+string(rune('a'+i/676%26))+string(rune('a'+i/26%26))+string(rune('a'+i%26))+".xml", "x")
	}
	got := written()
	if len(got) != maxReports+1 || got[0].Omitted != "it is larger than 16 MiB" || got[1].Omitted != "" || got[maxReports].Omitted == "" {
		t.Errorf("%d reports; %q, %q, %q", len(got), got[0].Omitted, got[1].Omitted, got[len(got)-1].Omitted)
	}
	if got := Watch(tree, "*.xml")(); len(got) > 0 {
		t.Errorf("nothing was written, but: %d", len(got))
	}
}
