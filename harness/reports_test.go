package harness

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hone/workspace"
)

// writeReport writes a file below a directory, with directories.
func writeReport(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func openTree(t *testing.T) (*workspace.Tree, string) {
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
	tree, dir := openTree(t)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"build/stale.xml", "build/again.xml"} {
		writeReport(t, dir, name, "old")
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	written := watchReports(tree, "build/**/*.xml")
	writeReport(t, dir, "build/again.xml", "new")
	writeReport(t, dir, "build/a/b/c.xml", "c")
	writeReport(t, dir, "build/other.txt", "x")
	writeReport(t, dir, "elsewhere/d.xml", "d")
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
	tree, dir := openTree(t)
	outside := t.TempDir()
	writeReport(t, outside, "secret.xml", "secret")
	written, linked := watchReports(tree, "build/**/*.xml"), watchReports(tree, "linked/*.xml")
	writeReport(t, dir, "real.xml", "real")
	writeReport(t, dir, "build/x", "")
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
	tree, dir := openTree(t)
	written := watchReports(tree, "*.xml")
	writeReport(t, dir, "a.xml", "")
	if err := os.Truncate(filepath.Join(dir, "a.xml"), maxReport+1); err != nil {
		t.Fatal(err)
	}
	for i := range maxReports + 5 {
		writeReport(t, dir, "b"+string(rune('a'+i/676%26))+string(rune('a'+i/26%26))+string(rune('a'+i%26))+".xml", "x")
	}
	got := written()
	if len(got) != maxReports+1 || got[0].Omitted != "it is larger than 16 MiB" || got[1].Omitted != "" || got[maxReports].Omitted == "" {
		t.Errorf("%d reports; %q, %q, %q", len(got), got[0].Omitted, got[1].Omitted, got[len(got)-1].Omitted)
	}
	if got := watchReports(tree, "*.xml")(); len(got) > 0 {
		t.Errorf("nothing was written, but: %d", len(got))
	}
}
